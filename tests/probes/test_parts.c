/* Host and shared memory, clocks, the per-SM map and what the driver claims, against the truth of
 * simulated GPUs. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probed.h"

static const char LIST[] = "host.latency,shared.latency,shared.size,main.size,clock,sm";
enum { METRICS = 8 };
static const char *const metrics[METRICS] = {"host.latency",  "shared.latency", "shared.size",
                                             "main.size",     "clock.sm",       "clock.memory",
                                             "sm.l1_latency", "sm.l2_latency"};

/* No L1 for global loads, neither shared nor host memory, L2 in two parts with fixed homes. */
static const char bare[] =
    "name: Bare\nsms: 6\nmemory: {size: 2 GiB}\nclock: {sm_mhz: 700, memory_mhz: 2600}\n"
    "noise: {jitter_cycles: 1}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16, parts: homes, far_cycles: 40}\n"
    "paths: {global_ca: [l2: 220, main: 440], global_cg: [l2: 220, main: 440]}\n";

/* Noise as bad as it gets; a shared-memory wish of nothing gets nothing. */
static const char noisy[] =
    "name: Noisy\nsms: 20\nmemory: {size: 4 GiB}\n"
    "clock: {sm_mhz: 1785, ramp_ms: 30, memory_mhz: 3201}\n"
    "timer: {overhead_cycles: 14, granularity_cycles: 2}\n"
    "noise: {jitter_cycles: 4, spike_rate: 0.01, spike_cycles: 700}\n"
    "carveout: {total: 256 KiB, steps: [0, 8 KiB, 32 KiB, 228 KiB]}\n"
    "caches: {l1: {carveout: true, line: 128, sector: 32, ways: 4}}\n"
    "l2: {size: 6 MiB, line: 128, sector: 32, ways: 16}\n"
    "paths: {global_ca: [l1: 33, l2: 260, main: 800], global_cg: [l2: 265, main: 800],"
    " shared: 29, host: 1500}\n";

static const struct {
    const char *model;
    double values[METRICS]; /* 0: unsupported */
} truths[] = {
    {probed_plain, {1000, 20, 48 << 10, 1 << 30, 1000, 2000, 30, 200}},
    {bare, {0, 0, 48 << 10, 2e9 * 1.073741824, 700, 2600, 0, 240}},
    {noisy, {1500, 29, 228 << 10, 4e9 * 1.073741824, 1785, 3201, 33, 265}},
};

static void truth_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(truths); i++) {
        struct measures all = probed_run(
            &(struct probed){.model = truths[i].model, .profile = PROFILE_STANDARD, .list = LIST});
        for (size_t k = 0; k < METRICS; k++)
            probed_expect(&all, metrics[k], truths[i].values[k], truths[i].model);
        measures_fini(&all);
    }
}

static const struct {
    const char *what;
    struct sim_fault fault;
    double factors[METRICS]; /* 0: unchanged */
    const char *throttle;
} fault_cases[] = {
    {"nothing", {.kind = SIM_DRIVER, .text = "x"}, {0}, "none"},
    {"slow DRAM", {.kind = SIM_SLOW_DRAM, .share = 0.5}, {0}, "none"},
    {"memory clock", {.kind = SIM_MEMORY_CLOCK, .mhz = 1500}, {0, 0, 0, 0, 0, 0.75}, "none"},
    /* The host's latency is time: fewer cycles at a lower clock. */
    {"heat", {.kind = SIM_SM_CLOCK, .mhz = 600, .reason = 1}, {0.6, 0, 0, 0, 0.6}, "sw_thermal"},
    {"power", {.kind = SIM_POWER_LIMIT, .w = 400.0 / 7}, {0.75, 0, 0, 0, 0.75}, "power_cap"},
    {"slow SM", {.kind = SIM_SLOW_SM, .sm = 3, .share = 0.5}, {0}, "none"},
    {"PCIe", {.kind = SIM_PCIE, .gen = 1}, {0}, "none"},
};

static void faults_show_where_they_act(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fault_cases); i++) {
        struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                          .fault = fault_cases[i].fault,
                                                          .faulty = true,
                                                          .profile = PROFILE_STANDARD,
                                                          .list = LIST});
        for (size_t k = 0; k < METRICS; k++) {
            double factor = fault_cases[i].factors[k];
            probed_expect(&all, metrics[k], truths[0].values[k] * (factor > 0 ? factor : 1),
                          fault_cases[i].what);
        }
        assert_string_equal(facts_text(&measures_get(&all, "clock.sm")->notes, "throttle"),
                            fault_cases[i].throttle);
        measures_fini(&all);
    }
}

static void expect_map(const struct measures *all, const char *metric, int slow_sm, double slow,
                       double others)
{
    const struct measure *m = measures_get(all, metric);
    size_t count = 0;
    const double *map = facts_numbers(&m->notes, "map", &count);
    assert_non_null(map);
    assert_int_equal(count, 8);
    for (int sm = 0; sm < 8; sm++) {
        double wanted = sm == slow_sm ? slow : others;
        if (!(fabs(map[sm] - wanted) <= 0.02 * wanted))
            fail_msg("%s: SM %d takes %g", metric, sm, map[sm]);
    }
    double worst = facts_get(&m->notes, "worst_cycles")->real;
    if (slow_sm >= 0)
        assert_int_equal(facts_int(&m->notes, "worst_sm", -1), slow_sm);
    assert_true(fabs(worst - slow) <= 0.02 * slow);
    /* The odd one does not widen the spread of the others. */
    assert_true(m->spread < 0.01 * others);
}

/* A backend may run a job that names no SM wherever it likes: here always on the first. */
static const struct device_ops *inner;
static struct device_ops outer;

static int run_on_first(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    struct device_job *jobs = mem_array(batch->job_count, sizeof *jobs);
    struct device_batch moved = *batch;
    assert_non_null(jobs);
    memcpy(jobs, batch->jobs, batch->job_count * sizeof *jobs);
    for (size_t i = 0; i < batch->job_count; i++)
        if (jobs[i].agents[0].sm == DEVICE_SM_ANY)
            jobs[i].agents[0].sm = 0;
    moved.jobs = jobs;
    int rc = inner->calls[DEVICE_CALL_BATCH](device, &moved, answers, err);
    free(jobs);
    return rc;
}

static void prefer_first(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_BATCH] = run_on_first;
    device->ops = &outer;
}

static void one_odd_sm_is_seen(void **state)
{
    (void)state;
    struct probed probed = {
        .model = probed_plain, .profile = PROFILE_STANDARD, .list = "sm", .prepare = prefer_first};
    struct measures all = probed_run(&probed);
    expect_map(&all, "sm.l1_latency", -1, 30, 30);
    expect_map(&all, "sm.l2_latency", -1, 200, 200);
    measures_fini(&all);
    for (uint32_t sm = 0; sm < 8; sm += 7) {
        probed.faulty = true;
        probed.fault = (struct sim_fault){.kind = SIM_SLOW_SM, .sm = sm, .share = 0.1};
        all = probed_run(&probed);
        expect_map(&all, "sm.l1_latency", (int)sm, 33, 30);
        expect_map(&all, "sm.l2_latency", (int)sm, 220, 200);
        measures_fini(&all);
    }
}

static double note_real(const struct measures *all, const char *metric, const char *key)
{
    const struct fact *fact = facts_get(&measures_get(all, metric)->notes, key);
    if (!fact || fact->kind != FACT_REAL)
        fail_msg("%s has no note %s", metric, key);
    return fact->real;
}

static void nanoseconds_and_claims_stand_beside(void **state)
{
    (void)state;
    struct measures all =
        probed_run(&(struct probed){.model = noisy, .profile = PROFILE_STANDARD, .list = LIST});
    assert_true(fabs(note_real(&all, "host.latency", "ns") - 1500 / 1.785) < 17);
    assert_true(fabs(note_real(&all, "shared.latency", "ns") - 29 / 1.785) < 0.4);
    assert_true(fabs(note_real(&all, "clock.sm", "reported") - 1785) < 1);
    const char *const claims[] = {"main.size", "clock.memory", "shared.size_per_sm"};
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        const struct measure *m = measures_get(&all, claims[i]);
        assert_string_equal(m->method, "reported");
        assert_true(isnan(m->confidence)); /* nothing was measured that could tell */
    }
    assert_int_equal(facts_int(&measures_get(&all, "shared.size")->notes, "reported", 0),
                     228 << 10);
    probed_expect(&all, "shared.size_per_sm", 228 << 10, "noisy");
    measures_fini(&all);
}

static int no_clocks(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request, (void)answer;
    return err_set(err, -ENOTSUP, "no management library");
}

static int some_clocks(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)device, (void)request, (void)err;
    *(struct device_clocks *)answer = (struct device_clocks){.sm_mhz = -1, .memory_mhz = -1};
    return 0;
}

static struct device_ops changed_ops;

static void hide_library(struct device *device)
{
    changed_ops = *device->ops;
    changed_ops.calls[DEVICE_CALL_CLOCKS] = no_clocks;
    device->ops = &changed_ops;
}

static void hide_clocks(struct device *device)
{
    changed_ops = *device->ops;
    changed_ops.calls[DEVICE_CALL_CLOCKS] = some_clocks;
    device->ops = &changed_ops;
}

static void hide_shared(struct device *device)
{
    device->limits.shared_bytes_max = device->limits.shared_array_bytes = 0;
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    void (*const hides[])(struct device *) = {hide_library, hide_clocks};
    for (size_t i = 0; i < COUNT_OF(hides); i++) {
        struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                          .profile = PROFILE_STANDARD,
                                                          .list = "clock",
                                                          .prepare = hides[i]});
        probed_expect(&all, "clock.memory", 0, "no clocks");
        probed_expect(&all, "clock.sm", 1000, "no clocks");
        const struct fact *throttle = facts_get(&measures_get(&all, "clock.sm")->notes, "throttle");
        assert_true(throttle && throttle->kind == FACT_UNKNOWN);
        measures_fini(&all);
    }
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "shared",
                                                      .prepare = hide_shared});
    probed_expect(&all, "shared.size", 0, "no shared memory");
    probed_expect(&all, "shared.latency", 0, "no shared memory");
    probed_expect(&all, "shared.bandwidth.read", 0, "no shared memory");
    measures_fini(&all);
}

/* L1 and shared memory in one array, and each in its own. */
static const char carved[] =
    "name: Carved\nsms: 8\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "noise: {jitter_cycles: 1}\n"
    "carveout: {total: 128 KiB, steps: [32 KiB, 48 KiB, 64 KiB, 80 KiB, 96 KiB, 100 KiB],"
    " reserve: 1 KiB}\n"
    "caches: {l1: {carveout: true, line: 128, sector: 32, ways: 4}}\n"
    "l2: {size: 4 MiB, line: 128, sector: 32, ways: 16}\n"
    "paths: {global_ca: [l1: 33, l2: 260, main: 800], global_cg: [l2: 260, main: 800], shared: "
    "29}\n";

static void what_l1_loses_to_shared_memory(void **state)
{
    (void)state;
    struct measures all = probed_run(
        &(struct probed){.model = carved, .profile = PROFILE_STANDARD, .list = "shared"});
    const struct measure *with = measures_get(&all, "shared.shared_with");
    const struct measure *lost = measures_get(&all, "shared.carveout");
    probed_expect(&all, "shared.carveout", (100 - 32) << 10, "carved");
    assert_int_equal(with->word_count, 1);
    assert_true(with->confidence > 0.99 && with->confidence <= 1);
    assert_int_equal(lost->n, 5);
    assert_true(lost->spread > 0 && lost->confidence < 1);
    assert_true(facts_int(&lost->notes, "l1_and_granted_max", 0) > 125 << 10);
    static const double steps_kib[] = {32, 48, 64, 80, 96, 100};
    size_t count = 0, at_count = 0;
    const struct facts *notes = &measures_get(&all, "l1_data.size_by_carveout")->notes;
    const double *left = facts_numbers(notes, "by_carveout", &count);
    const double *at = facts_numbers(notes, "by_carveout_at", &at_count);
    probed_expect(&all, "l1_data.size_by_carveout", (128 - 100) << 10, "carved");
    assert_int_equal(count, COUNT_OF(steps_kib));
    assert_int_equal(at_count, COUNT_OF(steps_kib));
    for (size_t i = 0; i < COUNT_OF(steps_kib); i++) {
        assert_true(at[i] == steps_kib[i] * 1024);
        assert_true(fabs(left[i] / ((128 - steps_kib[i]) * 1024) - 1) < 0.03);
    }
    probed_expect(&all, "texture.size_by_carveout", 0, "carved");
    measures_fini(&all);
    all = probed_run(&(struct probed){
        .model = probed_plain, .profile = PROFILE_STANDARD, .list = "shared.carveout"});
    probed_expect(&all, "shared.carveout", 0, "apart");
    with = measures_get(&all, "shared.shared_with");
    assert_int_equal(with->word_count, 0);
    assert_true(with->confidence > 0.9);
    measures_fini(&all);
}

static void tell_fetch_limit(struct device *device)
{
    device->limits.l2_fetch_limit_bytes = 64;
}

static void the_drivers_limit_stands_beside_l2_fetch(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "l2.line",
                                                      .prepare = tell_fetch_limit});
    assert_int_equal(facts_int(&measures_get(&all, "l2.fetch")->notes, "driver_limit", 0), 64);
    measures_fini(&all);
}

#define SPLIT_WAY(l2, way)                                                                         \
    "name: Split\nsms: 16\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"             \
    "noise: {jitter_cycles: 2, spike_rate: 0.001, spike_cycles: 300}\n"                            \
    "l2: {size: 4 MiB, line: 128, ways: 16" l2 "}\n"                                               \
    "bandwidth: {l2_read: 600, l2_write: 300, main_read: 200, main_write: 180" way "}\n"           \
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"

#define SPLIT(l2) SPLIT_WAY(l2, ", sm: 64")

static const struct {
    const char *model;
    size_t parts;
    double sizes[4];
} split_cases[] = {
    {SPLIT(""), 1, {16}},
    {SPLIT(", slice_cycles: 20"), 1, {16}},
    {SPLIT(", parts: homes, far_cycles: 60"), 2, {8, 8}},
    {SPLIT(", parts: copies, far_cycles: 60"), 2, {8, 8}},
    {SPLIT(", parts: copies, far_cycles: 100, slice_cycles: 30, part_sms: [10, 6]"), 2, {10, 6}},
    {SPLIT(", parts: homes, far_cycles: 100, part_sms: [7, 9]"), 2, {7, 9}},
    {SPLIT(", parts: homes, far_cycles: [60, 120]"), 4, {4, 4, 4, 4}},
};

static void parts_have_their_sms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(split_cases); i++) {
        struct measures all = probed_run(&(struct probed){
            .model = split_cases[i].model, .profile = PROFILE_STANDARD, .list = "l2.part_sms"});
        const struct measure *m = measures_get(&all, "l2.part_sms");
        size_t count = 0;
        const double *sizes = facts_numbers(&m->notes, "sizes", &count);
        if (m->status != MEASURE_OK || count != split_cases[i].parts)
            fail_msg("case %zu: %zu parts, %s", i, count, m->reason ? m->reason : "");
        for (size_t k = 0; k < count; k++)
            assert_true(sizes[k] == split_cases[i].sizes[k]);
        measures_fini(&all);
    }
}

/* A part reads 300 GB/s near its SMs and writes 150. The way is seen if it lets less pass than
 * that, and no more than half of its SMs, which take 64 each, can move. */
static void the_way_between_parts(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double gbs[2]; /* read, written; 0: unsupported */
        enum measure_bound bounds[2];
    } rows[] = {
        {SPLIT_WAY(", parts: copies, far_cycles: 60", ", l2_way: 120, sm: 64"),
         {120, 120},
         {MEASURE_EXACT, MEASURE_EXACT}},
        {SPLIT_WAY(", parts: homes, far_cycles: 100, part_sms: [7, 9]", ", l2_way: 200, sm: 64"),
         {200, 150},
         {MEASURE_EXACT, MEASURE_AT_LEAST}},
        {SPLIT_WAY(", parts: copies, far_cycles: 60", ", l2_way: 260, sm: 36"),
         {260, 150},
         {MEASURE_AT_LEAST, MEASURE_AT_LEAST}},
        {SPLIT(", parts: copies, far_cycles: 60"),
         {300, 150},
         {MEASURE_AT_LEAST, MEASURE_AT_LEAST}},
        {SPLIT(""), {0, 0}, {MEASURE_EXACT, MEASURE_EXACT}},
        {SPLIT(", parts: homes, far_cycles: [60, 120]"), {0, 0}, {MEASURE_EXACT, MEASURE_EXACT}},
    };
    static const char *const names[] = {"l2.way.read", "l2.way.write"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measures all = probed_run(
            &(struct probed){.model = rows[i].model, .profile = PROFILE_FULL, .list = "l2.way"});
        for (size_t k = 0; k < COUNT_OF(names); k++) {
            probed_expect(&all, names[k], rows[i].gbs[k], rows[i].model);
            if (measures_get(&all, names[k])->bound != rows[i].bounds[k])
                fail_msg("case %zu: the bound of %s", i, names[k]);
        }
        measures_fini(&all);
    }
}

/* Atomics that see other SMs near than loads do. */
static int mix_up_sms(struct device *device, const void *request, void *answer, struct err *err)
{
    int rc = inner->calls[DEVICE_CALL_SM_MAP](device, request, answer, err);
    struct device_sm_map_answer *map = answer;
    size_t lines = map->value_count / 16;
    for (size_t i = 0; i < lines; i++) {
        uint64_t first = map->values[i];
        map->values[i] = map->values[15 * lines + i];
        map->values[15 * lines + i] = first;
    }
    return rc;
}

static void set_mixed_up(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_SM_MAP] = mix_up_sms;
    device->ops = &outer;
}

static void two_ways_that_disagree(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = split_cases[3].model,
                                                      .profile = PROFILE_FULL,
                                                      .list = "l2.part_sms,l2.way",
                                                      .prepare = set_mixed_up});
    const struct measure *m = measures_get(&all, "l2.part_sms");
    size_t count = 0;
    double value;
    assert_int_equal(m->status, MEASURE_FAILED);
    assert_false(measures_value(&all, "l2.part_sms", &value));
    assert_non_null(facts_numbers(&m->notes, "by_atomics", &count));
    assert_int_equal(count, 16);
    /* There are two parts: that the way between them is not known is no lack of the GPU. */
    assert_int_equal(measures_get(&all, "l2.way.read")->status, MEASURE_FAILED);
    measures_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth_is_found),
        cmocka_unit_test(faults_show_where_they_act),
        cmocka_unit_test(parts_have_their_sms),
        cmocka_unit_test(two_ways_that_disagree),
        cmocka_unit_test(the_way_between_parts),
        cmocka_unit_test(one_odd_sm_is_seen),
        cmocka_unit_test(nanoseconds_and_claims_stand_beside),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(what_l1_loses_to_shared_memory),
        cmocka_unit_test(the_drivers_limit_stands_beside_l2_fetch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
