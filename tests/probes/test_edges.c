/* Devices at the edge of what may be: a clock that never settles, blocks of one warp, no time,
 * fewer latencies than asked for, a coarse timer. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "probed.h"

static const struct device_ops *inner;
static struct device_ops outer;
static uint64_t batches;

static void wrap(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    device->ops = &outer;
    batches = 0;
}

/* Every other batch runs at a clock that is a tenth lower. */
static int restless_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    int rc = inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
    bool slow = ++batches % 2;
    for (size_t i = 0; !rc && slow && i < batch->job_count; i++)
        for (uint32_t s = 0; s < answers[i].sample_count; s++)
            answers[i].samples[s].elapsed_ns = answers[i].samples[s].elapsed_ns * 10 / 9;
    return rc;
}

static void make_restless(struct device *device)
{
    wrap(device);
    outer.calls[DEVICE_CALL_BATCH] = restless_batch;
}

static void a_restless_clock_is_measured(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "clock.sm,l1_data.latency",
                                                      .prepare = make_restless});
    const struct measure *clock = measures_get(&all, "clock.sm");
    assert_true(clock->spread > 0.03 * clock->value);
    probed_expect(&all, "l1_data.latency", 30, "cycles do not depend on the clock");
    measures_fini(&all);
}

static void leave_one_warp(struct device *device)
{
    device->limits.warp_count = 1;
}

static void one_warp_has_nothing_to_compare_with(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "cache.per_sm",
                                                      .prepare = leave_one_warp});
    probed_expect(&all, "l1_data.per_sm", 0, "one warp");
    measures_fini(&all);
}

static int timeless_stream(struct device *device, const void *request, void *answer,
                           struct err *err)
{
    const struct device_stream *stream = request;
    struct device_stream_answer *out_answer = answer;
    int rc = inner->calls[DEVICE_CALL_STREAM](device, stream, out_answer, err);
    out_answer->elapsed_ns = 0;
    return rc;
}

static int timeless_tickets(struct device *device, const void *request, void *answer,
                            struct err *err)
{
    struct device_tickets_answer *out_answer = answer;
    int rc = inner->calls[DEVICE_CALL_TICKETS](device, request, answer, err);
    out_answer->elapsed_ns = 0;
    return rc;
}

static void take_time_away(struct device *device)
{
    wrap(device);
    outer.calls[DEVICE_CALL_STREAM] = timeless_stream;
    outer.calls[DEVICE_CALL_TICKETS] = timeless_tickets;
}

static void no_time_is_no_rate(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "main.bandwidth.read,"
                                                              "main.bandwidth_equal.read",
                                                      .prepare = take_time_away});
    probed_expect(&all, "main.bandwidth.read", 0, "no time");
    probed_expect(&all, "main.bandwidth_equal.read", 0, "no time");
    measures_fini(&all);
}

static int stingy_batch(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    int rc = inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
    for (size_t i = 0; !rc && i < batch->job_count; i++)
        for (uint32_t s = 0; s < answers[i].sample_count; s++)
            if (answers[i].samples[s].kept_count)
                answers[i].samples[s].kept_count--;
    return rc;
}

static void make_stingy(struct device *device)
{
    wrap(device);
    outer.calls[DEVICE_CALL_BATCH] = stingy_batch;
}

static void latencies_that_are_missing_are_told(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "l2.latency",
                                                      .prepare = make_stingy});
    const struct measure *m = measures_get(&all, "l2.latency");
    assert_int_equal(m->status, MEASURE_FAILED);
    assert_non_null(strstr(m->reason, "asked for"));
    measures_fini(&all);
}

/* Readings jump by four cycles, more than loads scatter; L2 has two parts, and nothing between it
 * and the constant L1. */
static const char coarse[] =
    "name: Coarse\nsms: 8\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "timer: {overhead_cycles: 1, granularity_cycles: 4}\n"
    "noise: {jitter_cycles: 1.9, spike_rate: 0.0016, spike_cycles: 271}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4}, c1: {size: 2 KiB, line: 64, "
    "ways: 4}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16, parts: homes, far_cycles: 150}\n"
    "paths: {global_ca: [l1: 46, l2: 204, main: 686], global_cg: [l2: 204, main: 686],"
    " constant: [c1: 25, l2: 214, main: 696], shared: 39}\n";

static void a_coarse_timer_is_enough(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double truth;
    } cases[] = {{"l1_data.latency", 46}, {"shared.latency", 39},    {"constant_l1.latency", 25},
                 {"l2.latency", 204},     {"l2.latency_far", 354},   {"l2.parts", 2},
                 {"l2.size", 4 << 20},    {"constant_l1.size", 2048}};
    struct measures all = probed_run(
        &(struct probed){.model = coarse,
                         .profile = PROFILE_STANDARD,
                         .list = "l1_data.latency,shared.latency,constant_l1,l2.latency,l2.size"});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        probed_expect(&all, cases[i].metric, cases[i].truth, "coarse");
        assert_int_equal(measures_get(&all, cases[i].metric)->status, MEASURE_OK);
    }
    measures_fini(&all);
}

/* In steps of 64 cycles a constant L1 and what is 40 cycles behind it look alike. */
static const char very_coarse[] =
    "name: Very coarse\nsms: 12\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "timer: {overhead_cycles: 30, granularity_cycles: 64}\n"
    "noise: {jitter_cycles: 4.6, spike_rate: 0.0038, spike_cycles: 890}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4}, c1: {size: 6 KiB, line: 32, "
    "ways: 4}, c15: {size: 90 KiB, line: 256, sector: 64, ways: 8, scope: gpc}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l1: 32, l2: 241, main: 556], global_cg: [l2: 241, main: 556],"
    " constant: [c1: 32, c15: 73, l2: 311, main: 626], shared: 43}\n";

static void what_a_timer_cannot_tell_is_not_told(void **state)
{
    (void)state;
    static const char *const untold[] = {"constant_l1.size", "constant_l1.line",
                                         "constant_l1.fetch", "constant_l15.size", "sm.groups"};
    struct measures all = probed_run(
        &(struct probed){.model = very_coarse,
                         .profile = PROFILE_STANDARD,
                         .list = "l1_data.latency,shared.latency,constant_l1,constant_l15,"
                                 "sm.groups"});
    probed_expect(&all, "l1_data.latency", 32, "steps of 64");
    probed_expect(&all, "shared.latency", 43, "steps of 64");
    for (size_t i = 0; i < COUNT_OF(untold); i++) {
        const struct measure *m = measures_get(&all, untold[i]);
        assert_int_equal(m->status, MEASURE_FAILED);
        assert_non_null(strstr(m->reason, "the timer counts in steps of 6"));
    }
    measures_fini(&all);
}

/* Readings have nothing between the ordinary ones and a spike: L1's slowest load is not half way.
 */
static const char spiked[] =
    "name: Spiked\nsms: 8\nsms_per_tpc: 2\nsms_per_gpc: [4, 4]\nmemory: {size: 1 GiB}\n"
    "clock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "noise: {jitter_cycles: 0.8, spike_rate: 0.002, spike_cycles: 660}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4}, c1: {size: 1280, line: 64, "
    "ways: full, policy: random}, c15: {size: 112128, line: 256, sector: 128, ways: 16, "
    "scope: gpc}}\n"
    "l2: {size: 4 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l1: 27, l2: 226, main: 605], global_cg: [l2: 226, main: 605],"
    " constant: [c1: 22, c15: 75, l2: 296, main: 675], shared: 43}\n";

static void spikes_do_not_hide_a_cache(void **state)
{
    (void)state;
    struct measures all =
        probed_run(&(struct probed){.model = spiked,
                                    .profile = PROFILE_STANDARD,
                                    .list = "constant_l1,constant_l15,sm.groups"});
    probed_expect(&all, "constant_l1.size", 1280, "spikes");
    probed_expect(&all, "constant_l1.fetch", 64, "spikes");
    probed_expect(&all, "constant_l15.latency", 75, "spikes");
    probed_expect(&all, "sm.groups", 2, "spikes");
    measures_fini(&all);
}

/* A TLB that reaches less far than L2 is large: its misses must not pass for L2's. */
static void a_tlb_within_l2_is_no_size_of_l2(void **state)
{
    (void)state;
    for (int far = 0; far < 2; far++) {
        char model[1024];
        snprintf(model, sizeof model,
                 "name: T\nsms: 8\nmemory: {size: 4 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
                 "noise: {jitter_cycles: 1}\n"
                 "l2: {size: 5811712, line: 128, sector: 32, ways: 8}\n"
                 "tlb: [{entries: %d, ways: full, page: 4096, miss_cycles: 404}]\n"
                 "paths: {global_ca: [l2: 245, main: 584], global_cg: [l2: 245, main: 584]}\n",
                 far ? 65536 : 543);
        struct measures all = probed_run(&(struct probed){
            .model = model, .profile = PROFILE_STANDARD, .list = "l2.line,l2.size"});
        const struct measure *size = measures_get(&all, "l2.size");
        const struct measure *line = measures_get(&all, "l2.line");
        assert_int_equal(size->status, far ? MEASURE_OK : MEASURE_NOISY);
        assert_int_equal(line->status, far ? MEASURE_OK : MEASURE_NOISY);
        if (far)
            probed_expect(&all, "l2.size", 5811712, "a TLB beyond L2");
        else
            assert_non_null(strstr(size->reason, "a TLB reaches no further"));
        measures_fini(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restless_clock_is_measured),
        cmocka_unit_test(one_warp_has_nothing_to_compare_with),
        cmocka_unit_test(no_time_is_no_rate),
        cmocka_unit_test(latencies_that_are_missing_are_told),
        cmocka_unit_test(a_coarse_timer_is_enough),
        cmocka_unit_test(what_a_timer_cannot_tell_is_not_told),
        cmocka_unit_test(spikes_do_not_hide_a_cache),
        cmocka_unit_test(a_tlb_within_l2_is_no_size_of_l2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
