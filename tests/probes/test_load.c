/* The sustained load on simulated GPUs: figures follow from the model, and what falls, or ends
 * early, is uncertain or seen. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "probed.h"

static const char MODEL[] =
    "name: Load\nsms: 8\nmemory: {size: 4 GiB}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "noise: {jitter_cycles: 1, spike_rate: 0.001, spike_cycles: 500, bandwidth: 0.004}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n"
    "config: {power_limit_w: 350, power_draw_w: 210}\n";

static struct measures run(const struct sim_fault *fault)
{
    struct probed probed = {.model = MODEL, .profile = PROFILE_QUICK, .list = "load"};
    probed.faulty = fault != NULL;
    if (fault)
        probed.fault = *fault;
    return probed_run(&probed);
}

static void near(const struct measures *measures, const char *metric, double value, double share)
{
    double found = probed_value(measures, metric);
    if (!(fabs(found - value) <= share * value))
        fail_msg("%s is %g, expected %g", metric, found, value);
}

static void healthy(void **state)
{
    (void)state;
    struct measures measures = run(NULL);
    near(&measures, "load.clock.first", 585, 0.001);
    near(&measures, "load.clock.steady", 585, 0.001);
    near(&measures, "load.clock.kept", 1, 0.001);
    near(&measures, "load.flops", 8 * 4040 * 585e6 / 1e12, 0.01);
    near(&measures, "load.bandwidth", 147, 0.01);
    near(&measures, "load.power.steady", 350, 0.01);
    near(&measures, "load.per_joule", 8 * 4040 * 0.585 / 350.0, 0.01);
    near(&measures, "load.seconds", 10, 0.001);
    assert_true(probed_value(&measures, "load.throttle") == 0x4); /* the power cap is usual */
    assert_true(probed_value(&measures, "load.drift") < 0.01);
    assert_int_equal(measures_get(&measures, "load.flops")->status, MEASURE_OK);
    measures_fini(&measures);
}

/* A clock that falls early is steady at the end, one that falls in the last third is not. */
static void falls(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        enum measure_status status;
    } rows[] = {{3, MEASURE_OK}, {8.5, MEASURE_NOISY}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct sim_fault fault = {.kind = SIM_FALLS_UNDER_LOAD,
                                  .share = 0.2,
                                  .seconds = rows[i].seconds,
                                  .reason = SIM_BY_HEAT};
        struct measures measures = run(&fault);
        near(&measures, "load.clock.first", 585, 0.001);
        const struct measure *clock = measures_get(&measures, "load.clock.steady");
        assert_int_equal(clock->status, rows[i].status);
        if (rows[i].status == MEASURE_OK)
            near(&measures, "load.clock.steady", 0.8 * 585, 0.001);
        else
            assert_non_null(strstr(clock->reason, "not steady"));
        assert_true(probed_value(&measures, "load.throttle") == 0x24);
        assert_string_equal(facts_text(&clock->notes, "throttle"), "power_cap,sw_thermal");
        measures_fini(&measures);
    }
}

/* 100 of 350 W cost a quarter of the clock. */
static void power_limit(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_POWER_LIMIT, .w = 100};
    struct measures measures = run(&fault);
    near(&measures, "load.clock.steady", 0.75 * 585, 0.01);
    near(&measures, "load.power.steady", 100, 0.01);
    assert_true(probed_value(&measures, "load.throttle") == 0x4);
    measures_fini(&measures);
}

static void slowdown_ends_it(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_FALLS_UNDER_LOAD, .share = 0.5, .seconds = 2, .reason = SIM_BY_SLOWDOWN};
    struct measures measures = run(&fault);
    near(&measures, "load.seconds", 2, 0.05);
    const struct measure *flops = measures_get(&measures, "load.flops");
    assert_int_equal(flops->status, MEASURE_NOISY);
    assert_non_null(strstr(flops->reason, "the hardware slowed itself down"));
    measures_fini(&measures);
}

static void not_beside_others(void **state)
{
    (void)state;
    struct sim_fault fault = {.kind = SIM_BUSY};
    struct measures measures = run(&fault);
    const struct measure *flops = measures_get(&measures, "load.flops");
    assert_int_equal(flops->status, MEASURE_FAILED);
    assert_non_null(strstr(flops->reason, "another process"));
    measures_fini(&measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),           cmocka_unit_test(falls),
        cmocka_unit_test(power_limit),       cmocka_unit_test(slowdown_ends_it),
        cmocka_unit_test(not_beside_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
