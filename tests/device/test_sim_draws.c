/* What a fleet file gives to a share of its GPUs, and faults that come and go. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "base/mem.h"
#include "bench.h"
#include "device/source.h"

static const char model_text[] =
    "name: Drawn\n"
    "sms: 8\n"
    "sms_per_tpc: 2\n"
    "sms_per_gpc: 4\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 0, memory_mhz: 2000}\n"
    "memory: {size: 1 GiB}\n"
    "caches:\n"
    "  l1: {size: 16 KiB, line: 128, ways: full}\n"
    "l2: {size: 256 KiB, line: 128, ways: 16, parts: homes, far_cycles: 50}\n"
    "bandwidth: {sm: 64, l1: 128, shared: 100, l2_read: 400, l2_write: 300, main_read: 200,"
    " main_write: 180, main_copy: 160, h2d: 24, d2h: 22, bidir: 40}\n"
    "config: {power_limit_w: 300, power_draw_w: 200}\n"
    "board: {part: USUAL, vbios: '1'}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
    " host: 1000}\n";

static char folder[] = "/tmp/gpumemtopo-draws-XXXXXX";
static char fleet_path[64], model_path[64], other_path[64];

static void write_file(const char *path, const char *first, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(first, file) >= 0 && fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(fleet_path, sizeof fleet_path, "%s/fleet.yaml", folder);
    snprintf(model_path, sizeof model_path, "%s/drawn.yaml", folder);
    snprintf(other_path, sizeof other_path, "%s/other.yaml", folder);
    write_file(model_path, "", model_text);
    write_file(other_path, "name: Other\nsms: 6\n", strchr(strchr(model_text, '\n') + 1, '\n') + 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(fleet_path);
    unlink(model_path);
    unlink(other_path);
    return rmdir(folder);
}

static struct device_source *open_fleet(const char *text, uint64_t seed, uint32_t rank,
                                        uint32_t ranks)
{
    struct device_source *source;
    struct err err = {0};
    write_file(fleet_path, "vary: none\n", text);
    if (device_source_sim(fleet_path, seed, rank, ranks, &source, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.text);
    return source;
}

static struct device *open_gpu(struct device_source *source, size_t i)
{
    struct device *device;
    struct err err = {0};
    if (device_source_open(source, i, &device, &err))
        fail_msg("%s", err.text);
    return device;
}

static double stream_rate(struct device *device, enum device_stream_kind kind)
{
    struct device_stream stream = {.kind = kind,
                                   .path = DEVICE_GLOBAL_CG,
                                   .footprint_bytes = 64 << 20,
                                   .total_bytes = UINT64_C(1) << 28,
                                   .width_bytes = 16,
                                   .threads = 1024};
    struct device_stream_answer answer;
    struct err err = {0};
    if (device_stream(device, &stream, &answer, &err))
        fail_msg("%s", err.text);
    return (double)answer.bytes / (double)answer.elapsed_ns;
}

static double latency(struct device *device, uint64_t size, int32_t sm)
{
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, size, 128));
    job.agents[0].sm = sm;
    return bench_mean(device, &job);
}

static bool near(double value, double wanted)
{
    return fabs(value - wanted) <= 0.002 * wanted;
}

static void board_of(struct device *device, char out_part[SIM_TEXT_MAX],
                     char out_vbios[SIM_TEXT_MAX])
{
    struct facts hardware = {0}, board = {0}, config = {0};
    struct err err = {0};
    assert_int_equal(device_identify(device, &hardware, &board, &config, &err), 0);
    snprintf(out_part, SIM_TEXT_MAX, "%s", facts_text(&board, "part"));
    snprintf(out_vbios, SIM_TEXT_MAX, "%s", facts_text(&board, "vbios"));
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
}

/* Batches: facts and figures go together, shares come out, and every rank draws the same. */
static void batches_have_their_share(void **state)
{
    (void)state;
    static const char text[] = "batches:\n"
                               "  - {share: 0.25, part: B, vbios: '2', main_latency: 1.1,"
                               " main_read: 1.05, main_write: 0.9}\n"
                               "  - {share: 0.5, per: node, part: C, host_bandwidth: 0.5}\n"
                               "nodes:\n  - {name: n%d, count: 50, gpus: 4, model: ./drawn.yaml}\n";
    struct device_source *all = open_fleet(text, 1, 0, 1), *own = open_fleet(text, 9, 1, 3);
    int of_b = 0, of_c = 0;
    for (size_t i = 0; i < device_source_count(all); i++) {
        struct device *device = open_gpu(all, i);
        char part[SIM_TEXT_MAX], vbios[SIM_TEXT_MAX], again[SIM_TEXT_MAX];
        board_of(device, part, vbios);
        bool b = strcmp(part, "B") == 0, c = strcmp(part, "C") == 0;
        assert_true(b || c || strcmp(part, "USUAL") == 0);
        assert_string_equal(vbios, b ? "2" : "1");
        assert_true(near(stream_rate(device, DEVICE_STREAM_READ), b ? 210 : 200));
        assert_true(near(stream_rate(device, DEVICE_STREAM_WRITE), b ? 162 : 180));
        assert_true(near(stream_rate(device, DEVICE_STREAM_H2D), c ? 12 : 24));
        if (i < 8)
            assert_true(near(latency(device, 4 << 20, 0), b ? 575 : 525)); /* half is far */
        of_b += b;
        of_c += c;
        device_destroy(device);
        if (i % 3 == 1) {
            device = open_gpu(own, i / 3);
            board_of(device, again, vbios);
            assert_string_equal(again, part);
            device_destroy(device);
        }
    }
    assert_in_range(of_b, 30, 70);  /* of 200; 50 are expected */
    assert_in_range(of_c, 60, 140); /* 100 are expected, node by node */
    device_source_destroy(all);
    device_source_destroy(own);
}

/* SMs that see the same lines near: bit i for SM i, as SM 0's. */
static unsigned near_with_first(struct device *device)
{
    unsigned same = 0;
    for (int32_t sm = 0; sm < 8; sm++) {
        struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 4096, 128));
        job.agents[0].sm = sm;
        same |= (unsigned)(bench_mean(device, &job) < 225) << sm;
    }
    unsigned first = same & 1;
    return first ? same : ~same & 0xff;
}

/* Sizes are those of the file, in another order on each card; so is the split between the parts of
 * L2. */
static void layouts_differ_from_card_to_card(void **state)
{
    (void)state;
    struct device_source *source =
        open_fleet("layouts: [{share: 1, sms_per_gpc: [2, 2, 4]}]\n"
                   "nodes:\n  - {name: n, gpus: 40, model: ./drawn.yaml}\n",
                   1, 0, 1);
    struct device_source *plain =
        open_fleet("nodes: [{name: n, gpus: 1, model: ./drawn.yaml}]", 1, 0, 1);
    unsigned seen[40];
    size_t kinds = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        struct device *device = open_gpu(source, i);
        unsigned split = near_with_first(device);
        size_t k = 0;
        while (k < kinds && seen[k] != split)
            k++;
        seen[k] = split;
        kinds += k == kinds;
        device_destroy(device);
    }
    assert_in_range(kinds, 3, 12);
    struct device *device = open_gpu(plain, 0);
    assert_int_equal(near_with_first(device), 0x0f);
    device_destroy(device);
    device_source_destroy(source);
    device_source_destroy(plain);
}

static void faults_hit_a_share(void **state)
{
    (void)state;
    struct device_source *source =
        open_fleet("racks: {nodes: 5}\n"
                   "faults:\n"
                   "  - {hits: 0.2, kind: slow_host, share: 0.5}\n"
                   "  - {hits: 0.3, per: rack, kind: slow_dram, share: 0.25}\n"
                   "nodes:\n  - {name: n%d, count: 100, gpus: 2, model: ./drawn.yaml}\n",
                   1, 0, 1);
    int slow = 0, racks = 0, before = 0;
    for (size_t i = 0; i < 200; i++) {
        struct device *device = open_gpu(source, i);
        double host = stream_rate(device, DEVICE_STREAM_H2D);
        double read = stream_rate(device, DEVICE_STREAM_READ);
        assert_true(near(host, 24) || near(host, 16));
        assert_true(near(read, 200) || near(read, 160));
        slow += near(host, 16);
        racks += i % 10 == 0 && near(read, 160);
        if (i % 10)
            assert_int_equal(near(read, 160), before); /* a rack is hit as a whole */
        before = near(read, 160);
        device_destroy(device);
    }
    assert_in_range(slow, 22, 62);
    assert_in_range(racks, 1, 12);
    device_source_destroy(source);
}

static void two_models_on_a_node(void **state)
{
    (void)state;
    struct device_source *source =
        open_fleet("batches: [{share: 1, model: ./other.yaml, part: X}]\n"
                   "nodes:\n"
                   "  - {name: n, gpus: 2, model: [./drawn.yaml, ./other.yaml],"
                   " faults: [{gpu: 1, kind: memory_held, bytes: 100 MiB}]}\n",
                   1, 0, 1);
    assert_string_equal(device_source_info(source, 0)->name, "Drawn");
    assert_string_equal(device_source_info(source, 1)->name, "Other");
    for (size_t i = 0; i < 2; i++) {
        struct device *device = open_gpu(source, i);
        struct facts config = {0}, health = {0};
        struct err err = {0};
        char part[SIM_TEXT_MAX], vbios[SIM_TEXT_MAX];
        board_of(device, part, vbios);
        assert_string_equal(part, i ? "X" : "USUAL");
        assert_int_equal(device_limits(device)->sm_count, i ? 6 : 8);
        assert_int_equal(device_limits(device)->global_bytes,
                         (960u - (i ? 100u : 0u)) << 20); /* 15/16 of 1 GiB, less what is held */
        assert_int_equal(device_read_health(device, &config, &health, &err), 0);
        assert_int_equal(facts_int(&health, "processes", -1), 0);
        facts_fini(&config);
        facts_fini(&health);
        device_destroy(device);
    }
    device_source_destroy(source);
}

static struct device *open_session(struct sim_fault fault, uint32_t session)
{
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct err err = {0};
    struct sim_unit unit = {.identity_seed = 1, .noise_seed = 1, .session = session};
    assert_int_equal(sim_model_read_text(model_text, strlen(model_text), "m", &model, &err), 0);
    assert_int_equal(sim_open_unit(model, &unit, &fault, 1, &device, &err), 0);
    sim_model_destroy(model);
    return device;
}

static void a_disturbance_is_gone_in_the_next_session(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_SLOW_HOST, .share = 1, .when = {.timed = true, .sessions = 2}};
    for (uint32_t session = 0; session < 4; session++) {
        struct device *device = open_session(fault, session);
        assert_true(near(stream_rate(device, DEVICE_STREAM_H2D), session < 2 ? 12 : 24));
        device_destroy(device);
    }
}

/* A stream of 2^28 bytes at 200 GB/s takes 1.34 ms. */
static void a_window_opens_and_closes(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_SM_CLOCK,
                              .mhz = 500,
                              .reason = SIM_BY_HEAT,
                              .when = {.timed = true, .from_ms = 3, .for_ms = 4}};
    struct device *device = open_session(fault, 0);
    double ms = 0;
    int inside = 0;
    for (int i = 0; i < 10; i++, ms += (1 << 28) / 200e6) {
        bool hot = ms >= 3 && ms < 7;
        struct device_clocks clocks;
        struct facts config = {0}, health = {0};
        struct err err = {0};
        assert_int_equal(device_read_clocks(device, &clocks, &err), 0);
        assert_true(near(clocks.sm_mhz, hot ? 500 : 1000));
        assert_int_equal(clocks.throttle_reasons, hot ? 0x20 : 0);
        assert_int_equal(device_read_health(device, &config, &health, &err), 0);
        assert_int_equal(facts_int(&health, "temperature_c", 0), hot ? 87 : 50);
        facts_fini(&config);
        facts_fini(&health);
        stream_rate(device, DEVICE_STREAM_READ);
        inside += hot;
    }
    assert_in_range(inside, 2, 4);
    device_destroy(device);
}

static void drift_grows(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_SLOW_DRAM, .share = 0.2, .when = {.timed = true, .grow_ms = 10}};
    struct device *device = open_session(fault, 0);
    double before = 201, first = 0, rate = 0;
    for (int i = 0; i < 12; i++, before = rate) {
        rate = stream_rate(device, DEVICE_STREAM_READ);
        first = i ? first : rate;
        assert_true(rate <= before);
    }
    assert_true(near(first, 200) && near(rate, 200 / 1.2));
    device_destroy(device);
}

static int slow_copies(struct device *device, int count)
{
    int slow = 0;
    for (int i = 0; i < count; i++)
        slow += near(stream_rate(device, DEVICE_STREAM_H2D), 12);
    return slow;
}

static void intermittent_faults_come_and_go(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_SLOW_HOST, .share = 1, .when = {.timed = true, .chance = 0.3}};
    struct device *device = open_session(fault, 0), *again = open_session(fault, 0);
    int slow = slow_copies(device, 200);
    assert_in_range(slow, 35, 85);
    assert_int_equal(slow_copies(again, 200), slow);
    device_destroy(device);
    device_destroy(again);
    fault.when.each_session = true;
    int sessions = 0;
    for (uint32_t session = 0; session < 60; session++) {
        device = open_session(fault, session);
        slow = slow_copies(device, 5);
        assert_true(slow == 0 || slow == 5);
        sessions += slow == 5;
        device_destroy(device);
    }
    assert_in_range(sessions, 8, 30);
}

/* The real variation leaves L1 and the clock alone; L2 is at another distance from each TPC. */
static void variation_has_kinds(void **state)
{
    (void)state;
    write_file(fleet_path, "vary: {main_bandwidth: 0.01, l2_distance_cycles: 5}\n",
               "nodes: [{name: n, gpus: 3, model: ./drawn.yaml}]\n");
    struct device_source *source;
    struct err err = {0};
    double reads[3], far[8];
    assert_int_equal(device_source_sim(fleet_path, 1, 0, 1, &source, &err), 0);
    for (size_t i = 0; i < 3; i++) {
        struct device *device = open_gpu(source, i);
        reads[i] = stream_rate(device, DEVICE_STREAM_READ);
        assert_true(near(stream_rate(device, DEVICE_STREAM_H2D), 24));
        for (int32_t sm = 0; sm < 8; sm++)
            far[sm] = latency(device, 64 << 10, sm);
        assert_true(far[0] == far[1] && far[0] != far[2]);
        device_destroy(device);
    }
    assert_true(reads[0] != reads[1] && reads[1] != reads[2]);
    device_source_destroy(source);
}

/* Cycles over time is wrong by the timer's error, what the driver reports is not. */
static void timers_go_wrong(void **state)
{
    (void)state;
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct err err = {0};
    struct sim_unit unit = {.identity_seed = 1, .vary = {.timer = 0.01}};
    assert_int_equal(sim_model_read_text(model_text, strlen(model_text), "m", &model, &err), 0);
    assert_int_equal(sim_open_unit(model, &unit, NULL, 0, &device, &err), 0);
    sim_model_destroy(model);
    struct device_clocks clocks;
    double mhz;
    assert_int_equal(device_warm_up(device, &mhz, &err), 0);
    assert_int_equal(device_read_clocks(device, &clocks, &err), 0);
    assert_true(clocks.sm_mhz == 1000 && fabs(mhz - 1000) > 0.1 && fabs(mhz - 1000) < 40);
    device_destroy(device);
}

/* A read of each of three GPUs under this `vary`. */
static void reads_under(const char *vary, double out_reads[3])
{
    struct device_source *source;
    struct err err = {0};
    write_file(fleet_path, vary, "nodes: [{name: n, gpus: 3, model: ./drawn.yaml}]\n");
    assert_int_equal(device_source_sim(fleet_path, 1, 0, 1, &source, &err), 0);
    for (size_t i = 0; i < 3; i++) {
        struct device *device = open_gpu(source, i);
        out_reads[i] = stream_rate(device, DEVICE_STREAM_READ);
        device_destroy(device);
    }
    device_source_destroy(source);
}

static void real_variation_is_the_default(void **state)
{
    (void)state;
    static const size_t size = 3 * sizeof(double);
    double usual[3], real[3], none[3], published[3], shares[3];
    reads_under("", usual);
    reads_under("vary: real\n", real);
    reads_under("vary: none\n", none);
    reads_under("vary: published\n", published);
    reads_under("vary: {sm_clock: 0.04, other: 0.005}\n", shares);
    assert_memory_equal(usual, real, size);
    assert_memory_equal(published, shares, size);
    assert_true(none[0] == none[1] && real[0] != real[1]);
    for (size_t i = 0; i < 3; i++)
        assert_true(fabs(real[i] / none[i] - 1) < fabs(published[i] / none[i] - 1));
}

struct bad_fleet {
    const char *text;
    int column;
    const char *message;
};

/* The second line of a fleet file; its first one are the nodes. */
static const struct bad_fleet bad_fleets[] = {
    {"vary: some\n", 7, "real, published, none"},
    {"vary: {main_bandwidth: 1}\n", 24, "outside"},
    {"vary: {main_bandwith: 0.1}\n", 8, "did you mean"},
    {"vary: {timer: 0.1}\n", 15, "outside"},
    {"racks: {nodes: 0}\n", 16, "outside"},
    {"racks: {node: 1}\n", 9, "did you mean"},
    {"batches: {share: 1}\n", 10, "a list"},
    {"batches: [{part: B}]\n", 11, "\"share\" is missing"},
    {"batches: [{share: 2}]\n", 19, "outside"},
    {"batches: [{share: 0.6}, {share: 0.6}]\n", 10, "more than 1"},
    {"batches: [{share: 1, main_read: 3}]\n", 33, "outside"},
    {"batches: [{share: 1, main_reed: 1}]\n", 22, "did you mean"},
    {"batches: [{share: 1, l2_latency: 2, main_latency: 0.5}]\n", 11, "rise with depth"},
    {"batches: [{share: 1, per: rack}]\n", 27, "no section `racks`"},
    {"batches: [{share: 1, model: ./other.yaml}]\n", 29, "no node of the fleet"},
    {"layouts: [{share: 1}]\n", 11, "\"sms_per_gpc\" is missing"},
    {"layouts: [{share: 1, sms_per_gpc: [4, 2]}]\n", 35, "add up to 6 SMs, the model has 8"},
    {"layouts: [{share: 1, sms_per_gpc: [3, 5]}]\n", 35, "whole number of TPCs"},
    {"layouts: [{share: 1, sms_per_gpc: []}]\n", 35, "sizes of 1 to"},
    {"faults: [{gpu: 0, kind: ecc_off}]\n", 11, "unknown key \"gpu\""},
    {"faults: [{hits: 2, kind: ecc_off}]\n", 17, "outside"},
    {"faults: [{per: rack, kind: ecc_off}]\n", 16, "no section `racks`"},
    {"faults: [{kind: slow_sm, sm: 8, share: 0.1}]\n", 10, "only 8 SMs"},
    {"faults: [{kind: memory_held, bytes: 900 MiB}]\n", 10, "more than half"},
    {"faults: [{kind: ecc_off, when: {chance: 1}}]\n", 32, "always present"},
    {"faults: [{kind: noisy, factor: 2, when: {chance: 0}}]\n", 50, "outside"},
    {"faults: [{kind: noisy, factor: 2, when: {each: day}}]\n", 48, "launch, session"},
    {"faults: [{kind: noisy, factor: 2, when: {session: 1}}]\n", 42, "did you mean"},
    {"faults: [{kind: noisy, factor: 2, when: {sessions: 0}}]\n", 52, "outside"},
};

static void mistakes_have_a_position(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_fleets); i++) {
        const struct bad_fleet *c = &bad_fleets[i];
        struct device_source *source = NULL;
        struct err err = {0};
        write_file(fleet_path, "nodes: [{name: n, gpus: 2, model: ./drawn.yaml}]\n", c->text);
        int rc = device_source_sim(fleet_path, 1, 0, 1, &source, &err);
        if (rc != -EINVAL || source || err.line != 2 || err.column != c->column ||
            !strstr(err.text, c->message))
            fail_msg("%s: %d at %d:%d: %s", c->text, rc, err.line, err.column, err.text);
    }
    struct device_source *source = NULL;
    struct err err = {0};
    write_file(fleet_path, "", "nodes: [{name: n, gpus: 2, model: [./drawn.yaml]}]\n");
    assert_int_equal(device_source_sim(fleet_path, 1, 0, 1, &source, &err), -EINVAL);
    assert_non_null(strstr(err.text, "one for each of 2 GPUs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_have_their_share),
        cmocka_unit_test(layouts_differ_from_card_to_card),
        cmocka_unit_test(faults_hit_a_share),
        cmocka_unit_test(two_models_on_a_node),
        cmocka_unit_test(a_disturbance_is_gone_in_the_next_session),
        cmocka_unit_test(a_window_opens_and_closes),
        cmocka_unit_test(drift_grows),
        cmocka_unit_test(intermittent_faults_come_and_go),
        cmocka_unit_test(variation_has_kinds),
        cmocka_unit_test(timers_go_wrong),
        cmocka_unit_test(real_variation_is_the_default),
        cmocka_unit_test(mistakes_have_a_position),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
