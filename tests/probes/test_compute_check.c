/* The check of the SMs on simulated GPUs: a wrong SM is found and named, and healthy ones are not.
 */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/check_program.h"
#include "probed.h"

static const char MODEL[] =
    "name: Check\nsms: 8\nmemory: {size: 1 GiB}\n"
    "hardware: {compute_capability: \"9.0\", cores_per_sm: 128}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

static void healthy(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "compute.check"};
    struct measures measures = probed_run(&probed);
    assert_true(probed_value(&measures, "compute.wrong") == 0);
    const struct measure *wrong = measures_get(&measures, "compute.wrong");
    assert_int_equal(facts_get(&wrong->notes, "units")->integer, DEVICE_UNIT_COUNT);
    assert_int_equal(facts_get(&wrong->notes, "sub_cores")->integer, 8 * DEVICE_SUB_CORES);
    assert_null(measures_get(&measures, "compute.wrong_sm"));
    assert_true(probed_value(&measures, "compute.slowest") < 1.001);
    probed_expect(&measures, "compute.rate.fp32", 256, "rate");
    measures_fini(&measures);
}

/* The rate of a unit by the check and by its instruction count operations alike. */
static void one_way_to_count(void **state)
{
    (void)state;
    char model[sizeof MODEL + 128];
    snprintf(model, sizeof model, "%sinstructions: {fp32_fma: [4, 1], fp64_fma: [8, 2]}\n", MODEL);
    const struct probed probed = {.model = model, .list = "compute.check,instructions"};
    struct measures measures = probed_run(&probed);
    static const char *const pairs[][2] = {
        {"compute.rate.fp32", "instructions.fp32_fma.rate"},
        {"compute.rate.fp64", "instructions.fp64_fma.rate"},
    };
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        double check = probed_value(&measures, pairs[i][0]);
        double instruction = probed_value(&measures, pairs[i][1]);
        if (fabs(check / instruction - 1) > 0.1)
            fail_msg("%s %g, %s %g", pairs[i][0], check, pairs[i][1], instruction);
        assert_string_equal(measures_get(&measures, pairs[i][0])->unit,
                            measures_get(&measures, pairs[i][1])->unit);
    }
    measures_fini(&measures);
}

static void wrong_sm(void **state)
{
    (void)state;
    struct probed probed = {.model = MODEL, .list = "compute.check", .faulty = true};
    probed.fault =
        (struct sim_fault){.kind = SIM_WRONG_SM, .sm = 5, .share = 0.9, .path = DEVICE_SCREEN_FP32};
    struct measures measures = probed_run(&probed);
    const struct measure *wrong = measures_get(&measures, "compute.wrong_in.fp32");
    assert_true(probed_value(&measures, "compute.wrong") == wrong->value);
    assert_true(probed_value(&measures, "compute.wrong_sm") == 5);
    assert_int_equal(facts_get(&wrong->notes, "sub_core")->integer, 2);
    assert_null(measures_get(&measures, "compute.wrong_in.int"));
    measures_fini(&measures);
}

/* An SM that takes longer for the same work. */
static void slow_sm(void **state)
{
    (void)state;
    struct probed probed = {.model = MODEL, .list = "compute.check", .faulty = true};
    probed.fault = (struct sim_fault){.kind = SIM_SLOW_SM, .sm = 3, .share = 0.05};
    struct measures measures = probed_run(&probed);
    const struct measure *slowest = measures_get(&measures, "compute.slowest");
    assert_true(fabs(slowest->value - 1.05) < 1e-4);
    assert_true(probed_value(&measures, "compute.slowest_sm") == 3);
    assert_non_null(facts_get(&slowest->notes, "in"));
    measures_fini(&measures);
}

static int answer_otherwise(struct device *device, const void *request, void *answer,
                            struct err *err)
{
    const struct device_check *check = request;
    struct device_check_answer *out_answer = answer;
    (void)device, (void)err;
    out_answer->places = mem_array(2 * DEVICE_SUB_CORES, sizeof *out_answer->places);
    assert_non_null(out_answer->places);
    out_answer->place_count = 2 * DEVICE_SUB_CORES;
    for (size_t i = 0; i < out_answer->place_count; i++)
        out_answer->places[i] =
            (struct device_check_place){.count = 4, .wrong = 4, .wrong_hash = 99 + check->unit};
    return 0;
}

static void use_other_answers(struct device *device)
{
    static struct device_ops ops;
    ops = *device->ops;
    ops.calls[DEVICE_CALL_CHECK] = answer_otherwise;
    device->ops = &ops;
}

/* All SMs agree, but not with the host: that is no fault of an SM. */
static void not_as_host(void **state)
{
    (void)state;
    const struct probed probed = {
        .model = MODEL, .list = "compute.check", .prepare = use_other_answers};
    struct measures measures = probed_run(&probed);
    assert_true(probed_value(&measures, "compute.wrong") == 0);
    const struct measure *wrong = measures_get(&measures, "compute.wrong");
    assert_non_null(strstr(facts_get(&wrong->notes, "not_as_host")->text, "mma_f16"));
    measures_fini(&measures);
}

/* Each program's hash depends on its seed, on its length, and on every word. */
static void hashes_differ(void **state)
{
    (void)state;
    for (int unit = 0; unit < DEVICE_UNIT_COUNT; unit++) {
        struct check_run run = {.unit = (enum device_unit)unit,
                                .seed = 1,
                                .periods = 3,
                                .warps = 8,
                                .section_words = 64};
        uint64_t hash = check_hash(&run, 0);
        assert_true(check_hash(&run, 1) != hash);
        run.seed = 2;
        assert_true(check_hash(&run, 0) != hash);
        run.seed = 1;
        run.periods = 4;
        assert_true(check_hash(&run, 0) != hash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),       cmocka_unit_test(one_way_to_count),
        cmocka_unit_test(wrong_sm),      cmocka_unit_test(not_as_host),
        cmocka_unit_test(hashes_differ), cmocka_unit_test(slow_sm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
