/* Devices at the edge of what may be: a clock that never settles, blocks of one warp, no time,
 * fewer latencies than asked for. */
#include "../check.h"

#include <errno.h>
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
static int restless_batch(struct device *device, const struct device_batch *batch,
                          struct device_answer *answers, struct err *err)
{
    int rc = inner->run_batch(device, batch, answers, err);
    bool slow = ++batches % 2;
    for (size_t i = 0; !rc && slow && i < batch->job_count; i++)
        for (uint32_t s = 0; s < answers[i].sample_count; s++)
            answers[i].samples[s].elapsed_ns = answers[i].samples[s].elapsed_ns * 10 / 9;
    return rc;
}

static void make_restless(struct device *device)
{
    wrap(device);
    outer.run_batch = restless_batch;
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

static int timeless_stream(struct device *device, const struct device_stream *stream,
                           struct device_stream_answer *out_answer, struct err *err)
{
    int rc = inner->run_stream(device, stream, out_answer, err);
    out_answer->elapsed_ns = 0;
    return rc;
}

static void take_time_away(struct device *device)
{
    wrap(device);
    outer.run_stream = timeless_stream;
}

static void no_time_is_no_rate(void **state)
{
    (void)state;
    struct measures all = probed_run(&(struct probed){.model = probed_plain,
                                                      .profile = PROFILE_STANDARD,
                                                      .list = "main.bandwidth.read",
                                                      .prepare = take_time_away});
    probed_expect(&all, "main.bandwidth.read", 0, "no time");
    measures_fini(&all);
}

static int stingy_batch(struct device *device, const struct device_batch *batch,
                        struct device_answer *answers, struct err *err)
{
    int rc = inner->run_batch(device, batch, answers, err);
    for (size_t i = 0; !rc && i < batch->job_count; i++)
        for (uint32_t s = 0; s < answers[i].sample_count; s++)
            if (answers[i].samples[s].kept_count)
                answers[i].samples[s].kept_count--;
    return rc;
}

static void make_stingy(struct device *device)
{
    wrap(device);
    outer.run_batch = stingy_batch;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restless_clock_is_measured),
        cmocka_unit_test(one_warp_has_nothing_to_compare_with),
        cmocka_unit_test(no_time_is_no_rate),
        cmocka_unit_test(latencies_that_are_missing_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
