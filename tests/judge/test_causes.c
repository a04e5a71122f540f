/* Causes: a condition explains a deviation if it is large enough. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/sm_rates.h"

enum { COUNT = 256, SUSPECT = 37 };
static const char suspect[] = "GPU-037";

static void expect(const struct gpu_result *gpus, const char *metric, enum verdict verdict,
                   const char *cause)
{
    struct inventory inventory = made_judged(gpus, COUNT);
    const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
    const struct inventory_evidence *finding = made_finding(outlier, metric);
    if (!finding)
        fail_msg("%s is not accused (%s)", metric, cause);
    else if (!strstr(finding->cause, cause))
        fail_msg("%s: \"%s\", expected \"%s\"", metric, finding->cause, cause);
    else if (outlier->verdict != verdict)
        fail_msg("%s: %s", metric, verdict_name(outlier->verdict));
    assert_int_equal(inventory.total_outliers, 1);
    inventory_fini(&inventory);
}

static void slow_memory(struct gpu_result *gpu, double factor)
{
    made_scale(gpu, "main.bandwidth.read", factor);
    made_scale(gpu, "main.bandwidth.write", factor);
}

/* A memory clock 10 % lower explains 10 % of bandwidth, not 40 %. */
static void memory_clock(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 1);
    slow_memory(&gpus[SUSPECT], 0.9);
    expect(gpus, "main.bandwidth.read", VERDICT_DEGRADED,
           "cause unknown: memory clock, SMs and memory bus are normal");
    made_scale(&gpus[SUSPECT], "clock.memory", 0.9);
    expect(gpus, "main.bandwidth.read", VERDICT_MISCONFIGURED,
           "memory clock 2881 MHz, model runs at 3201 MHz");
    expect(gpus, "clock.memory", VERDICT_MISCONFIGURED,
           "memory clock 2881 MHz, model runs at 3201 MHz");
    slow_memory(&gpus[SUSPECT], 0.6 / 0.9);
    expect(gpus, "main.bandwidth.read", VERDICT_DEGRADED, "explains 10 % of the 4");
    made_free(gpus, COUNT);
}

static void missing_hardware(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 2);
    facts_set_int(&gpus[SUSPECT].hardware, "memory_bus_bits", 5120);
    slow_memory(&gpus[SUSPECT], 5.0 / 6);
    expect(gpus, "main.bandwidth.read", VERDICT_MISMATCHED,
           "memory bus 5120 bits, model has 6144 bits");
    made_free(gpus, COUNT);
    gpus = made_fleet(COUNT, 3);
    facts_set_int(&gpus[SUSPECT].hardware, "sms", 120);
    made_scale(&gpus[SUSPECT], "l2.bandwidth.read", 0.92);
    expect(gpus, "l2.bandwidth.read", VERDICT_MISMATCHED, "SMs 120, model has 132");
    slow_memory(&gpus[SUSPECT], 0.7); /* nine per cent of the SMs do not explain this */
    expect(gpus, "main.bandwidth.read", VERDICT_DEGRADED, "the cause of the rest is unknown");
    made_free(gpus, COUNT);
}

static void link_width(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 4);
    made_scale(&gpus[SUSPECT], "host.bandwidth.h2d", 0.5);
    made_scale(&gpus[SUSPECT], "host.bandwidth.d2h", 0.5);
    expect(gpus, "host.bandwidth.h2d", VERDICT_DEGRADED, "cause unknown: PCIe link is normal");
    facts_set_int(&gpus[SUSPECT].config, "pcie_width", 8);
    expect(gpus, "host.bandwidth.h2d", VERDICT_DEGRADED, "PCIe generation 5 x8, model has 2 times");
    made_free(gpus, COUNT);
}

static void ecc_on(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 5);
    for (size_t i = 0; i < COUNT; i++) {
        facts_set_bool(&gpus[i].config, "ecc", i == SUSPECT);
        facts_set_bool(&gpus[i].config, "ecc_pending", i == SUSPECT);
    }
    slow_memory(&gpus[SUSPECT], 0.9);
    expect(gpus, "main.bandwidth.read", VERDICT_MISCONFIGURED, "ECC on, off on its peers");
    made_free(gpus, COUNT);
}

/* A clock that is 5 % low counts only if a condition lowers it. */
static void sm_clock(void **state)
{
    (void)state;
    static const struct {
        const char *throttle;
        int64_t power_limit_w, clock_limit_mhz;
        double factor;
        enum verdict verdict;
        const char *cause;
    } rows[] = {
        {"sw_thermal", 700, 1980, 0.95, VERDICT_DEGRADED,
         "throttled for heat at 50 C (sw_thermal)"},
        {"power_cap", 700, 1980, 0.95, VERDICT_DEGRADED,
         "at its power cap of 700 W, the limit that its peers keep within (power_cap)"},
        {"power_cap", 600, 1980, 0.95, VERDICT_MISCONFIGURED, "power limit 600 W, model has 700 W"},
        {"none", 700, 1881, 0.95, VERDICT_MISCONFIGURED,
         "SM clock limit 1881 MHz, model has 1980 MHz"},
        {"applications_clocks", 700, 1980, 0.9, VERDICT_MISCONFIGURED,
         "held at its application clock (applications_clocks)"},
        /* A limit 5 % lower does not explain 30 %. */
        {"sw_thermal", 665, 1980, 0.7, VERDICT_DEGRADED, "throttled for heat at 50 C (sw_thermal)"},
        /* One 29 % lower could explain it, but the driver says that it is the heat. */
        {"power_cap,sw_thermal", 500, 1980, 0.8, VERDICT_DEGRADED, "throttled for heat at 50 C"},
        {"none", 700, 1980, 0.6, VERDICT_DEGRADED, "cause unknown: no limit, setting or throttle"},
        {"none", 700, 1980, 0.9, VERDICT_DEGRADED, "cause unknown: no limit, setting or throttle"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 6);
        double before = measures_get(&gpus[SUSPECT].measures, "clock.sm")->value;
        for (size_t k = 0; k < COUNT; k++)
            facts_set_int(&gpus[k].config, "sm_clock_limit_mhz", 1980);
        facts_set_text(&gpus[SUSPECT].health, "throttle", rows[i].throttle);
        facts_set_int(&gpus[SUSPECT].config, "power_limit_w", rows[i].power_limit_w);
        facts_set_int(&gpus[SUSPECT].config, "sm_clock_limit_mhz", rows[i].clock_limit_mhz);
        made_clock(&gpus[SUSPECT], rows[i].factor * 1980 / before);
        expect(gpus, "clock.sm", rows[i].verdict, rows[i].cause);
        if (rows[i].factor <= 0.9)
            expect(gpus, "l2.bandwidth.read", rows[i].verdict, rows[i].cause);
        made_free(gpus, COUNT);
    }
}

static void small_clock_losses(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 7);
    double before = measures_get(&gpus[SUSPECT].measures, "clock.sm")->value;
    made_clock(&gpus[SUSPECT], 0.94 * 1980 / before); /* below all others, but nothing holds it */
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_clock(&gpus[SUSPECT], 0.98 / 0.94); /* throttled, but it costs next to nothing */
    facts_set_text(&gpus[SUSPECT].health, "throttle", "sw_thermal");
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    assert_non_null(made_finding(made_watched(&inventory, suspect), "clock.sm"));
    inventory_fini(&inventory);
    made_clock(&gpus[SUSPECT], 0.95 / 0.98); /* all GPUs are throttled */
    for (size_t i = 0; i < COUNT; i++)
        facts_set_text(&gpus[i].health, "throttle", "power_cap");
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* If many GPUs have low clocks, a low clock is not unusual. */
static void lopsided_clocks(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 9);
    for (size_t i = 0; i < COUNT; i += 10)
        made_clock(&gpus[i], 0.93);
    double before = measures_get(&gpus[SUSPECT].measures, "clock.sm")->value;
    made_clock(&gpus[SUSPECT], 0.9 * 1980 / before);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

static void slow_sm(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 8);
    made_scale(&gpus[SUSPECT], "sm.l1_worst", 1.1);
    made_set(&gpus[SUSPECT], "sm.l1_worst_sm", 99);
    expect(gpus, "sm.l1_worst", VERDICT_DEGRADED, "SM 99 is slower than the others, cause unknown");
    made_free(gpus, COUNT);
}

/* A sub-core that is slower than those of the other GPUs is told with its SM, or flagged. */
static void slow_sub_core(void **state)
{
    (void)state;
    static const struct {
        double worse;
        bool told, accused;
    } rows[] = {{0.015, false, false}, {0.03, true, false}, {0.2, false, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 8);
        for (size_t k = 0; k < COUNT; k++)
            measures_add(&gpus[k].measures, "compute.slowest",
                         k == SUSPECT ? 1.001 + rows[i].worse : 1.001 + 1e-5 * (double)(k % 7), "",
                         "test");
        measures_add(&gpus[SUSPECT].measures, "compute.slowest_sm", 99, "id", "test");
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, rows[i].accused);
        const struct inventory_outlier *entry = rows[i].accused
                                                    ? made_outlier(&inventory, gpus[SUSPECT].uuid)
                                                    : made_watched(&inventory, gpus[SUSPECT].uuid);
        assert_int_equal(entry != NULL, rows[i].told || rows[i].accused);
        if (entry)
            assert_string_equal(made_finding(entry, "compute.slowest")->cause,
                                "SM 99 is slower than the others, cause unknown");
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* A low bandwidth of L2 is that of SMs 16 to 31, which are a group. */
static void slow_group(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 9);
    struct sm_rates rates = {.sms = 128, .groups = 8, .noise = 0.001};
    for (size_t i = 0; i < rates.sms; i++) {
        rates.group_of[i] = (uint8_t)(i / 16);
        rates.group_gbs[i / 16] = 1200;
        rates.gbs[i] = i / 16 == 1 ? 45 : 90;
    }
    sm_rates_put(&rates, &gpus[SUSPECT].board);
    made_scale(&gpus[SUSPECT], "l2.bandwidth.read", 0.9);
    expect(gpus, "l2.bandwidth.read", VERDICT_DEGRADED,
           "the 16 SMs of group 1 read L2 50 % slower than the others, cause unknown");
    made_free(gpus, COUNT);
}

/* A site may set the loss that matters to 0; a GPU may lack a figure that its clock would lower. */
static void clock_of_a_gpu_without_a_figure(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 10);
    const struct judge_config *usual = made_config();
    struct judge_config config = *usual;
    struct inventory inventory = {0};
    struct err err = {0};
    config.metrics = mem_array(config.metric_count, sizeof *config.metrics);
    memcpy(config.metrics, usual->metrics, config.metric_count * sizeof *config.metrics);
    for (size_t i = 0; i < config.metric_count; i++)
        if (strcmp(config.metrics[i].metric, "main.latency") == 0)
            config.metrics[i].floor = config.metrics[i].accuse = 0;
    made_clock(&gpus[SUSPECT], 0.6);
    for (size_t i = 0; i < gpus[SUSPECT].measures.count; i++)
        if (strcmp(gpus[SUSPECT].measures.items[i].metric, "main.latency") == 0)
            gpus[SUSPECT].measures.items[i].status = MEASURE_FAILED;
    const struct judge_basis basis = {.config = &config};
    assert_int_equal(made_judge(gpus, COUNT, true, &basis, &inventory, &err), 0);
    const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
    assert_non_null(made_finding(outlier, "clock.sm"));
    assert_null(made_finding(outlier, "main.latency"));
    inventory_fini(&inventory);
    free(config.metrics);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_clock),
        cmocka_unit_test(missing_hardware),
        cmocka_unit_test(link_width),
        cmocka_unit_test(ecc_on),
        cmocka_unit_test(sm_clock),
        cmocka_unit_test(small_clock_losses),
        cmocka_unit_test(lopsided_clocks),
        cmocka_unit_test(slow_sm),
        cmocka_unit_test(slow_sub_core),
        cmocka_unit_test(slow_group),
        cmocka_unit_test(clock_of_a_gpu_without_a_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
