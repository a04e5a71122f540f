/* The screen under pulses of current on simulated GPUs. */
#include "../check.h"

#include <stdio.h>

#include "base/mem.h"
#include "probed.h"

static const char MODEL[] =
    "name: Pulse\nsms: 8\nmemory: {size: 1 GiB}\n"
    "hardware: {compute_capability: \"%s\", cores_per_sm: 128}\n"
    "config: {power_limit_w: 700, power_limit_default_w: 700}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

static struct measures run(const char *capability, const struct sim_fault *fault)
{
    char model[sizeof MODEL + 8];
    snprintf(model, sizeof model, MODEL, capability);
    struct probed probed = {.model = model, .list = "compute.pulse", .faulty = fault != NULL};
    if (fault)
        probed.fault = *fault;
    return probed_run(&probed);
}

/* Half of the time is a pause but in the first mode; older GPUs have another path. */
static void healthy(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"9.0", "wgmma_bf16"}, {"8.0", "mma_bf16"}, {"7.0", "fp32"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measures measures = run(rows[i][0], NULL);
        const struct measure *pulse = measures_get(&measures, "compute.pulse");
        assert_true(pulse->value == 0 && pulse->n > 1000);
        assert_string_equal(facts_get(&pulse->notes, "path")->text, rows[i][1]);
        const struct fact *duty = facts_get(&pulse->notes, "duty");
        assert_true(duty->numbers[0] == 1);
        for (size_t k = 1; k < duty->count; k++)
            assert_true(duty->numbers[k] == 0.5);
        assert_true(probed_value(&measures, "compute.pulse_step") > 300);
        assert_true(probed_value(&measures, "compute.hot") == 0);
        assert_null(measures_get(&measures, "compute.pulse_sm"));
        measures_fini(&measures);
    }
}

/* What the pulses do not exercise is found while the chip is hot. */
static void wrong_sm(void **state)
{
    (void)state;
    struct sim_fault fault = {
        .kind = SIM_WRONG_SM, .sm = 6, .share = 0.01, .path = DEVICE_SCREEN_WGMMA_BF16};
    struct measures measures = run("9.0", &fault);
    assert_true(probed_value(&measures, "compute.pulse") > 0);
    assert_true(probed_value(&measures, "compute.pulse_sm") == 6);
    assert_true(probed_value(&measures, "compute.pulse_hz") >= 0);
    measures_fini(&measures);
    fault.path = DEVICE_SCREEN_SPECIAL;
    fault.share = 0.9;
    measures = run("9.0", &fault);
    assert_true(probed_value(&measures, "compute.pulse") == 0);
    assert_null(measures_get(&measures, "compute.pulse_hz"));
    assert_true(probed_value(&measures, "compute.hot") > 0);
    assert_true(probed_value(&measures, "compute.hot_sm") == 6);
    assert_null(measures_get(&measures, "compute.pulse_sm"));
    measures_fini(&measures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(healthy), cmocka_unit_test(wrong_sm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
