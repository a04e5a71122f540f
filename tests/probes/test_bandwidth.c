/* Bandwidths against the truth of simulated GPUs, healthy and faulty. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probed.h"

static const char LIST[] = "main.bandwidth,l2.bandwidth,l1_data.bandwidth,shared.bandwidth,"
                           "host.bandwidth";
enum { METRICS = 10 };
static const char *const metrics[METRICS] = {
    "main.bandwidth.read", "main.bandwidth.write",   "main.bandwidth.copy",   "l2.bandwidth.read",
    "l2.bandwidth.write",  "l1_data.bandwidth.read", "shared.bandwidth.read", "host.bandwidth.h2d",
    "host.bandwidth.d2h",  "host.bandwidth.both",
};

/* Kepler's way: no L1 for global loads, 13 SMs that take less than L2 could give, L2 in two parts.
 * No shared memory path at all. */
static const char no_l1[] =
    "name: No L1\nsms: 13\nmemory: {size: 2 GiB}\n"
    "clock: {sm_mhz: 700, ramp_ms: 0, memory_mhz: 2600}\n"
    "l2: {size: 1280 KiB, line: 128, ways: 16, parts: homes, far_cycles: 40}\n"
    "bandwidth: {sm: 32, l2_read: 500, l2_write: 200, main_read: 150, main_write: 140,"
    " main_copy: 130, h2d: 6, d2h: 6.5, bidir: 12}\n"
    "paths: {global_ca: [l2: 220, main: 440], global_cg: [l2: 220, main: 440]}\n";

/* In the manner of Hopper, small: L1 and shared memory carved out of one array. */
static const char carved[] =
    "name: Carved\nsms: 20\nmemory: {size: 4 GiB}\nclock: {sm_mhz: 1800, memory_mhz: 3000}\n"
    "carveout: {total: 256 KiB, steps: [0, 8 KiB, 32 KiB, 64 KiB, 228 KiB], reserve: 1 KiB}\n"
    "caches: {l1: {carveout: true, nominal: 256 KiB, line: 128, sector: 32, ways: 4}}\n"
    "l2: {size: 6 MiB, line: 128, sector: 32, ways: 16, parts: copies, far_cycles: 100}\n"
    "noise: {bandwidth: 0.004}\n"
    "bandwidth: {l1: 128, shared: 128, l2_read: 1000, l2_write: 900, main_read: 700,"
    " main_write: 690, main_copy: 650, h2d: 55, d2h: 54, bidir: 100}\n"
    "paths: {global_ca: [l1: 33, l2: 260, main: 800], global_cg: [l2: 260, main: 800],"
    " shared: 29, host: 1500}\n";

/* An access takes so long that one in flight per thread gives half of L2's bandwidth,
 * and a third of main memory's. */
static const char loaded[] =
    "name: Loaded\nsms: 16\nmemory: {size: 4 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "l2: {size: 16 MiB, line: 128, ways: 16}\n"
    "bandwidth: {sm: 1000, l2_read: 1048.576, l2_write: 1048.576, main_read: 786.432,"
    " main_write: 786.432, main_copy: 786.432}\n"
    "paths: {global_ca: [l2: 1000, main: 2000], global_cg: [l2: 1000, main: 2000]}\n";

/* Bytes in flight are the limit: 4 SMs, and 1536 threads of an SM fill with blocks of 512 or 256,
 * not with those of 1024. Nor may a block have 1024. */
static const char few_threads[] =
    "name: Few\nsms: 4\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "hardware: {threads_per_sm: 1536}\n"
    "caches: {l1: {size: 64 KiB, line: 128, ways: 4}}\nl2: {size: 1 MiB, line: 128, ways: 16}\n"
    "bandwidth: {sm: 1000, l2_read: 9000, main_read: 9000}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 2000], global_cg: [l2: 200, main: 2000]}\n";

/* Streams with equal work per SM lose some of what there is. */
#define BY_TICKET                                                                                  \
    "name: By ticket\nsms: 8\nmemory: {size: 2 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"          \
    "bandwidth: {sm: 64, l2_read: 400, l2_write: 300, main_read: 200, main_write: 180,"            \
    " equal_main_read: 0.98, equal_main_write: 0.94, equal_l2_read: 0.99,"                         \
    " equal_l2_write: 0.97}\n"                                                                     \
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
/* The second has fewer threads per SM, smaller blocks and less L2 than the shapes were made for. */
static const char *const by_ticket[] = {
    BY_TICKET "l2: {size: 8 MiB, line: 128, ways: 16}\n",
    BY_TICKET "l2: {size: 512 KiB, line: 128, ways: 16}\n"
              "hardware: {threads_per_sm: 768, threads_per_block: 256}\n",
};

struct truth {
    const char *model;
    double gbs[METRICS]; /* 0: unsupported */
};
static const struct truth truths[] = {
    {probed_plain, {200, 180, 160, 400, 300, 1024, 800, 24, 22, 40}},
    {no_l1, {150, 140, 130, 13 * 32 * 0.7, 200, 0, 0, 6, 6.5, 12}},
    {carved, {700, 690, 650, 1000, 900, 20 * 128 * 1.8, 20 * 128 * 1.8, 55, 54, 100}},
};

static void truth_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(truths); i++) {
        struct measures all = probed_run(
            &(struct probed){.model = truths[i].model, .profile = PROFILE_STANDARD, .list = LIST});
        for (size_t k = 0; k < METRICS; k++) {
            probed_expect(&all, metrics[k], truths[i].gbs[k], truths[i].model);
            const struct measure *m = measures_get(&all, metrics[k]);
            if (m->status == MEASURE_OK && (m->n < 3 || strcmp(m->unit, "GB/s") != 0 || !m->method))
                fail_msg("%s lacks evidence", metrics[k]);
        }
        measures_fini(&all);
    }
}

struct fault_case {
    const char *what;
    struct sim_fault fault;
    double factors[METRICS]; /* on the healthy figures; 0: unchanged */
};
static const struct fault_case fault_cases[] = {
    {"nothing", {.kind = SIM_VBIOS, .text = "x"}, {0}},
    {"slow DRAM", {.kind = SIM_SLOW_DRAM, .share = 0.25}, {0.8, 0.8, 0.8}},
    {"memory clock", {.kind = SIM_MEMORY_CLOCK, .mhz = 1200}, {0.6, 0.6, 0.6}},
    {"SM clock", {.kind = SIM_SM_CLOCK, .mhz = 500}, {0, 0, 0, 0.5, 0.5, 0.5, 0.5}},
    {"L2 slice", {.kind = SIM_L2_SLICE, .share = 0.3}, {0, 0, 0, 0.7, 0.7}},
    /* One SM of eight gives two thirds. */
    {"slow SM",
     {.kind = SIM_SLOW_SM, .sm = 3, .share = 0.5},
     {0, 0, 0, 0, 0, 23 / 24.0, 23 / 24.0}},
    {"PCIe width", {.kind = SIM_PCIE, .width = 8}, {0, 0, 0, 0, 0, 0, 0, 0.5, 0.5, 0.5}},
    {"PCIe generation", {.kind = SIM_PCIE, .gen = 2}, {0, 0, 0, 0, 0, 0, 0, 0.25, 0.25, 0.25}},
};

static void faults_show_where_they_act(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fault_cases); i++) {
        const struct fault_case *c = &fault_cases[i];
        struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                          .fault = c->fault,
                                                          .faulty = true,
                                                          .profile = PROFILE_STANDARD,
                                                          .list = LIST});
        for (size_t k = 0; k < METRICS; k++)
            probed_expect(&all, metrics[k],
                          truths[0].gbs[k] * (c->factors[k] > 0 ? c->factors[k] : 1), c->what);
        measures_fini(&all);
    }
}

static void best_shape_is_taken(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){
        .model = few_threads, .profile = PROFILE_STANDARD, .list = "main.bandwidth_equal.read"});
    const struct measure *m = measures_get(&all, "main.bandwidth_equal.read");
    /* Little: 4 SMs, 1536 threads, 4 accesses of 16 bytes in 2000 ns; or half the threads, 8. */
    probed_expect(&all, "main.bandwidth_equal.read", 4 * 1536 * 4 * 16 / 2000.0, "few threads");
    assert_non_null(strstr(m->method, "16 B, 512 threads, 3 blocks per SM, 4 in flight"));
    measures_fini(&all);
}

/* With one block per SM. */
static double surface_figure(const struct facts *notes, double bytes, double threads)
{
    size_t rows = 0, columns = 0, widths_count = 0, threads_count = 0;
    const double *gbs = facts_rows(notes, "surface", &rows, &columns);
    const double *widths = facts_numbers(notes, "surface_bytes", &widths_count);
    const double *by = facts_numbers(notes, "surface_threads", &threads_count);
    assert_true(gbs && columns == 4 && widths_count == rows && threads_count == rows);
    for (size_t r = 0; r < rows; r++)
        if (widths[r] == bytes && by[r] == threads)
            return gbs[r * columns];
    fail_msg("no row of %g bytes and %g threads", bytes, threads);
    return NAN;
}

static void full_keeps_the_surface(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){
        .model = probed_plain, .profile = PROFILE_FULL, .list = "main.bandwidth_equal.read"});
    const struct facts *notes = &measures_get(&all, "main.bandwidth_equal.read")->notes;
    size_t count = 0, best_count = 0, at_count = 0;
    probed_expect(&all, "main.bandwidth_equal.read", 200, "full");
    /* One block of 32 threads per SM, 8 accesses in flight, 500 ns. */
    assert_true(fabs(surface_figure(notes, 1, 32) - 8 * 32 * 8 / 500.0) < 0.1);
    assert_true(fabs(surface_figure(notes, 4, 64) - 8 * 64 * 4 * 8 / 500.0) < 0.7);
    assert_true(fabs(surface_figure(notes, 16, 1024) - 200) < 4);
    const double *blocks = facts_numbers(notes, "surface_blocks", &count);
    assert_true(blocks && count == 4 && blocks[0] == 1 && blocks[3] == 8);
    const double *best = facts_numbers(notes, "surface_in_flight_by", &best_count);
    assert_true(best && best_count == 3 && best[0] <= 16 && best[1] <= 1024 && best[2] <= 8);
    const double *at = facts_numbers(notes, "surface_in_flight_at", &at_count);
    const double *gbs = facts_numbers(notes, "surface_in_flight", &count);
    assert_true(at && gbs && count && count == at_count && at[0] == 1 && gbs[0] <= 204);
    measures_fini(&all);

    all = probed_run(&(struct probed){
        .model = probed_plain, .profile = PROFILE_STANDARD, .list = "main.bandwidth_equal.read"});
    assert_null(facts_get(&measures_get(&all, "main.bandwidth_equal.read")->notes, "surface"));
    measures_fini(&all);
}

/* What an SM has of its own: stores to L1 go on to L2; an SM executes one access of a warp per
 * cycle, so that narrow ones get less. */
static const char paths[] =
    "name: Paths\nsms: 8\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4},"
    " constant_l1: {size: 2 KiB, line: 64, ways: 4}}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "bandwidth: {sm: 64, l1: 128, shared: 128, shared_write: 96, read_only: 100, texture: 64,"
    " constants: 60, l2_read: 400, l2_write: 300}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
    " read_only: [l1: 32, l2: 210, main: 510], texture: [l1: 80, l2: 260, main: 560],"
    " constant: [constant_l1: 28, l2: 200, main: 500], shared: 20}\n";

static void every_path_has_its_rate_by_width(void **state)
{
    (void)state;
    enum { WIDTHS = 5 };
    static const struct {
        const char *metric;
        double gbs, by_width[WIDTHS];
    } rows[] = {
        {"l1_data.bandwidth.read", 1024, {256, 512, 1024, 1024, 1024}},
        /* Little: 512 threads of 8 SMs, 8 bytes of each in flight, 200 ns. */
        {"l1_data.bandwidth.write", 300, {512 * 8 * 8 / 200.0, 300, 300, 300, 300}},
        {"shared.bandwidth.read", 1024, {256, 512, 1024, 1024, 1024}},
        {"shared.bandwidth.write", 768, {256, 512, 768, 768, 768}},
        {"texture.bandwidth.read", 512, {256, 512, 512, 512, 512}},
        {"read_only.bandwidth.read", 800, {256, 512, 800, 800, 800}},
        {"constant_l1.bandwidth.read", 480, {256, 480, 480, 480, 480}},
    };
    struct measures all = probed_run(&(struct probed){
        .model = paths, .profile = PROFILE_STANDARD, .list = "sm.bandwidth_by_width"});
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char metric[64];
        size_t count = 0;
        snprintf(metric, sizeof metric, "%s_by_width", rows[i].metric);
        probed_expect(&all, rows[i].metric, rows[i].gbs, "paths");
        probed_expect(&all, metric, rows[i].by_width[2], "paths");
        const struct facts *notes = &measures_get(&all, metric)->notes;
        const double *gbs = facts_numbers(notes, "by_width", &count);
        assert_int_equal(count, WIDTHS);
        for (size_t k = 0; k < WIDTHS; k++)
            if (fabs(gbs[k] / rows[i].by_width[k] - 1) > 0.03)
                fail_msg("%s: %g GB/s with %d bytes, not %g", metric, gbs[k], 1 << k,
                         rows[i].by_width[k]);
    }
    measures_fini(&all);
    all = probed_run(&(struct probed){
        .model = no_l1, .profile = PROFILE_STANDARD, .list = "sm.bandwidth_by_width"});
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(measures_get(&all, rows[i].metric)->status, MEASURE_UNSUPPORTED);
    measures_fini(&all);
}

static void scattering_rates_are_noisy(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .fault = {.kind = SIM_NOISY, .factor = 200},
                                                      .faulty = true,
                                                      .profile = PROFILE_QUICK,
                                                      .list = "host.bandwidth.h2d"});
    const struct measure *m = measures_get(&all, "host.bandwidth.h2d");
    assert_int_equal(m->status, MEASURE_NOISY);
    assert_true(m->confidence <= 0.5 && m->reason);
    measures_fini(&all);
}

static void forget_host(struct device *device)
{
    device->limits.host_bytes = 0;
}

static void forget_l2(struct device *device)
{
    device->limits.l2_reported_bytes = 0;
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){
        .model = probed_plain, .profile = PROFILE_FULL, .list = "host", .prepare = forget_host});
    probed_expect(&all, "host.bandwidth.h2d", 0, "no host");
    probed_expect(&all, "host.bandwidth.d2h", 0, "no host");
    probed_expect(&all, "host.bandwidth.both", 0, "no host");
    probed_expect(&all, "host.latency", 0, "no host");
    measures_fini(&all);
    all = probed_run(&(struct probed){.model = probed_plain,
                                      .profile = PROFILE_QUICK,
                                      .list = "l2.bandwidth.read",
                                      .prepare = forget_l2});
    probed_expect(&all, "l2.bandwidth.read", 0, "no L2 reported");
    measures_fini(&all);
}

static const struct device_ops *inner;
static struct device_ops outer;

static int one_in_flight(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    struct device_stream changed = *stream;
    changed.unroll = 1;
    return inner->calls[DEVICE_CALL_STREAM](device, &changed, out_answer, err);
}

static void keep_one_in_flight(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_STREAM] = one_in_flight;
    device->ops = &outer;
}

static void enough_is_in_flight(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double gbs, one; /* 16 SMs, 2048 threads, 16 bytes in 1000 or 2000 ns */
    } rows[] = {{"l2.bandwidth_equal.read", 1048.576, 524.288},
                {"l2.bandwidth_equal.write", 1048.576, 524.288},
                {"main.bandwidth_equal.read", 786.432, 262.144},
                {"main.bandwidth_equal.write", 786.432, 262.144},
                {"main.bandwidth_equal.copy", 786.432, 262.144}};
    struct probed probed = {.model = loaded,
                            .profile = PROFILE_STANDARD,
                            .list = "l2.bandwidth_equal,main.bandwidth_equal"};
    struct measures all = probed_run(&probed);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        probed_expect(&all, rows[i].metric, rows[i].gbs, "loaded");
    measures_fini(&all);
    probed.prepare = keep_one_in_flight;
    all = probed_run(&probed);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        probed_expect(&all, rows[i].metric, rows[i].one, "one in flight");
    measures_fini(&all);
}

/* Of the shapes by ticket only some have enough in flight for this memory: the best ones count. */
static void best_tickets_are_taken(void **state)
{
    (void)state;
    struct measures all = probed_run(
        &(struct probed){.model = loaded, .profile = PROFILE_QUICK, .list = "main.bandwidth"});
    probed_expect(&all, "main.bandwidth.read", 786.432, "loaded, by ticket");
    probed_expect(&all, "main.bandwidth.write", 786.432, "loaded, by ticket");
    measures_fini(&all);
}

/* Every thread has the same to do in each pass, all of it in flight at once; L2's footprint fits
 * into half of one of two parts. */
static uint32_t shapes_seen;

static int check_shape(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    const struct device_limits *limits = device_limits(device);
    bool whole = stream->path == DEVICE_GLOBAL_CG;
    uint64_t round = (uint64_t)stream->threads * stream->width_bytes * stream->unroll *
                     (whole ? stream->blocks : 1) * (stream->kind == DEVICE_STREAM_COPY ? 2 : 1);
    if (stream->kind < DEVICE_STREAM_H2D) {
        assert_true(stream->unroll && stream->blocks % limits->sm_count == 0);
        assert_true(round && stream->footprint_bytes % round == 0);
        assert_true(stream->blocks / limits->sm_count * stream->threads <= limits->threads_per_sm);
        assert_true(!whole || stream->footprint_bytes <= limits->l2_reported_bytes / 4 ||
                    stream->footprint_bytes > 4 * limits->l2_reported_bytes);
        shapes_seen++;
    }
    return inner->calls[DEVICE_CALL_STREAM](device, stream, out_answer, err);
}

static void check_shapes(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_STREAM] = check_shape;
    device->ops = &outer;
}

static void no_thread_is_idle(void **state)
{
    (void)state;
    const char *const models[] = {probed_plain, no_l1, carved, loaded, few_threads};
    shapes_seen = 0;
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        struct measures all = probed_run(&(struct probed){.model = models[i],
                                                          .profile = PROFILE_STANDARD,
                                                          .list = LIST,
                                                          .prepare = check_shapes});
        measures_fini(&all);
    }
    assert_true(shapes_seen > 0);
}

/* By ticket: all blocks run at once, and no chunk is under way twice. */
static int check_tickets(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_tickets *tickets = request;
    const struct device_limits *limits = device_limits(device);
    uint64_t at_once =
        (uint64_t)device_stream_arrays(tickets->kind) * tickets->blocks_per_sm * limits->sm_count;
    uint64_t least = (uint64_t)tickets->threads * tickets->unroll * 16;
    assert_true(tickets->blocks_per_sm * tickets->threads <= limits->threads_per_sm);
    assert_true(tickets->threads <= 32 * limits->warp_count);
    assert_true(at_once * tickets->chunk_bytes <= tickets->footprint_bytes ||
                tickets->chunk_bytes <= least);
    assert_true(at_once * least <= tickets->footprint_bytes);
    shapes_seen++;
    return inner->calls[DEVICE_CALL_TICKETS](device, request, answer, err);
}

static void check_all_tickets(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_TICKETS] = check_tickets;
    device->ops = &outer;
}

static void expect_by_ticket(const char *model)
{
    static const struct {
        const char *metric;
        double gbs;
    } rows[] = {{"main.bandwidth.read", 200},
                {"main.bandwidth.write", 180},
                {"l2.bandwidth.read", 400},
                {"l2.bandwidth.write", 300},
                {"main.bandwidth_equal.read", 200 * 0.98},
                {"main.bandwidth_equal.write", 180 * 0.94},
                {"l2.bandwidth_equal.read", 400 * 0.99},
                {"l2.bandwidth_equal.write", 300 * 0.97}};
    shapes_seen = 0;
    struct measures all = probed_run(&(struct probed){.model = model,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "l2.bandwidth,main.bandwidth,"
                                                              "l2.bandwidth_equal,"
                                                              "main.bandwidth_equal",
                                                      .prepare = check_all_tickets});
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        probed_expect(&all, rows[i].metric, rows[i].gbs, "by ticket");
    measures_fini(&all);
    assert_true(shapes_seen > 0);
}

static void tickets_give_what_the_memory_delivers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(by_ticket); i++)
        expect_by_ticket(by_ticket[i]);
}

/* The smaller part of L2 is done first: then the other one has the memory alone, and gets 0.6 of
 * it. The SMs of the simulator end evenly apart. */
static void unequal_parts_lose_with_equal_work(void **state)
{
    (void)state;
    static const char model[] =
        "name: Unequal\nsms: 16\nsms_per_gpc: 4\nmemory: {size: 2 GiB}\n"
        "clock: {sm_mhz: 1000, ramp_ms: 0}\n"
        "l2: {size: 8 MiB, line: 128, ways: 16, parts: copies, far_cycles: 80, part_sms: [6, 10]}\n"
        "bandwidth: {sm: 64, l2_read: 400, l2_write: 300, main_read: 200, main_write: 180}\n"
        "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n";
    const double share = 16 / (12 + 4 / pow(0.5, 0.74));
    struct measures all =
        probed_run(&(struct probed){.model = model,
                                    .profile = PROFILE_STANDARD,
                                    .list = "main.bandwidth,main.bandwidth_equal,l2.bandwidth,"
                                            "main.first_end,l2.first_end"});
    probed_expect(&all, "main.bandwidth.read", 200, "unequal parts");
    probed_expect(&all, "main.bandwidth_equal.read", 200 * share, "unequal parts");
    probed_expect(&all, "main.bandwidth_equal.write", 180 * share, "unequal parts");
    probed_expect(&all, "main.first_end.read", 1 - 2 * (1 - share) * 15 / 16, "unequal parts");
    const struct facts *notes = &measures_get(&all, "main.first_end.write")->notes;
    size_t count = 0;
    const double *parts = facts_numbers(notes, "by_part", &count);
    assert_true(parts && count == 2 && parts[0] <= 1 && parts[1] <= 1);
    assert_int_equal(facts_int(notes, "first_sm", -1), 0);
    assert_int_equal(facts_int(notes, "last_sm", -1), 15);
    assert_non_null(measures_get(&all, "l2.first_end.write"));
    measures_fini(&all);
}

/* A link between probe and device that counts streams, and adds what a launch costs. */
static struct {
    uint32_t count, disturbed; /* the number of the stream that something disturbs; 0: none */
    uint32_t every;            /* also each with a multiple of this number; 0: none */
    double all_ns, longest_ns;
} streams;

static int counted_stream(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    int rc = inner->calls[DEVICE_CALL_STREAM](device, stream, out_answer, err);
    out_answer->elapsed_ns += 6000;
    if (++streams.count == streams.disturbed ||
        (streams.every && streams.count % streams.every == 0))
        out_answer->elapsed_ns *= 2;
    double ns = (double)out_answer->elapsed_ns;
    streams.all_ns += ns;
    streams.longest_ns = ns > streams.longest_ns ? ns : streams.longest_ns;
    return rc;
}

static void count_streams(struct device *device)
{
    streams.count = 0;
    streams.all_ns = streams.longest_ns = 0;
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_STREAM] = counted_stream;
    device->ops = &outer;
}

static void one_disturbance_is_measured_again(void **state)
{
    (void)state;
    streams.disturbed = 4;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_QUICK,
                                                      .list = "main.bandwidth.read",
                                                      .prepare = count_streams});
    streams.disturbed = 0;
    probed_expect(&all, "main.bandwidth.read", 200, "disturbed");
    measures_fini(&all);
}

static void slowed_copies_are_told_but_do_not_count(void **state)
{
    (void)state;
    streams.every = 3;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_QUICK,
                                                      .list = "host.bandwidth.h2d",
                                                      .prepare = count_streams});
    streams.every = 0;
    probed_expect(&all, "host.bandwidth.h2d", 24, "slowed");
    const struct measure *m = measures_get(&all, "host.bandwidth.h2d");
    const struct fact *slowest = facts_get(&m->notes, "slowest");
    assert_int_equal(m->status, MEASURE_OK);
    assert_non_null(slowest);
    assert_true(fabs(slowest->real - 12) < 0.5);
    measures_fini(&all);
}

/* The rates of an H200: all of quick must stay far below a second. */
static const char fast[] =
    "name: Fast\nsms: 132\nmemory: {size: 64 GiB}\nclock: {sm_mhz: 1980, ramp_ms: 0}\n"
    "caches: {l1: {size: 200 KiB, line: 128, ways: 4}}\n"
    "l2: {size: 50 MiB, line: 128, ways: 16}\n"
    "bandwidth: {l2_read: 7000, main_read: 4500, h2d: 55, d2h: 55}\n"
    "paths: {global_ca: [l1: 33, l2: 270, main: 800], global_cg: [l2: 270, main: 800]}\n";

static void streams_are_short(void **state)
{
    (void)state;
    struct measures all = probed_run(
        &(struct probed){.model = fast,
                         .profile = PROFILE_QUICK,
                         .list = "main.bandwidth.read,l2.bandwidth.read,host.bandwidth.h2d,"
                                 "host.bandwidth.d2h",
                         .prepare = count_streams});
    probed_expect(&all, "main.bandwidth.read", 4500, "fast");
    probed_expect(&all, "l2.bandwidth.read", 7000, "fast");
    probed_expect(&all, "host.bandwidth.h2d", 55, "fast");
    measures_fini(&all);
    if (streams.longest_ns > 6e6 || streams.all_ns > 0.2e9)
        fail_msg("%u streams, %.1f ms, the longest %.1f ms", streams.count, streams.all_ns / 1e6,
                 streams.longest_ns / 1e6);
}

/* A quarter of 540 KB is no room for what 12 SMs must have in flight; a quarter of 4 MiB is. If
 * half of it gives four fifths, as for an L2 of 220 GB/s, it is not shown that more would not help.
 */
static void a_small_l2_gives_a_lower_bound(void **state)
{
    (void)state;
    static const struct {
        int size, gbs;
    } rows[] = {{539136, 640}, {539136, 220}, {4 << 20, 640}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char model[640];
        bool large = rows[i].size > 1 << 20;
        snprintf(model, sizeof model,
                 "name: S\nsms: 12\nmemory: {size: 4 GiB}\nclock: {sm_mhz: 842, ramp_ms: 0}\n"
                 "caches: {l1: {size: 16 KiB, line: 128, ways: 4}}\n"
                 "l2: {size: %d, line: 128, ways: 8}\nbandwidth: {l2_write: %d, main_read: 80}\n"
                 "paths: {global_ca: [l1: 32, l2: 241, main: 556],"
                 " global_cg: [l2: 241, main: 556]}\n",
                 rows[i].size, rows[i].gbs);
        struct measures all = probed_run(&(struct probed){
            .model = model, .profile = PROFILE_STANDARD, .list = "l2.bandwidth_equal.write"});
        const struct measure *m = measures_get(&all, "l2.bandwidth_equal.write");
        assert_int_equal(m->bound, large ? MEASURE_EXACT : MEASURE_AT_LEAST);
        if (large)
            probed_expect(&all, "l2.bandwidth_equal.write", 640, "enough room");
        else
            assert_true(m->value < 600);
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tickets_give_what_the_memory_delivers),
        cmocka_unit_test(unequal_parts_lose_with_equal_work),
        cmocka_unit_test(best_tickets_are_taken),
        cmocka_unit_test(truth_is_found),
        cmocka_unit_test(faults_show_where_they_act),
        cmocka_unit_test(best_shape_is_taken),
        cmocka_unit_test(enough_is_in_flight),
        cmocka_unit_test(no_thread_is_idle),
        cmocka_unit_test(full_keeps_the_surface),
        cmocka_unit_test(every_path_has_its_rate_by_width),
        cmocka_unit_test(scattering_rates_are_noisy),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(one_disturbance_is_measured_again),
        cmocka_unit_test(slowed_copies_are_told_but_do_not_count),
        cmocka_unit_test(streams_are_short),
        cmocka_unit_test(a_small_l2_gives_a_lower_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
