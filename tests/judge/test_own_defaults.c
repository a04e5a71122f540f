/* Settings below the GPU's own default: locked clocks and lowered power limits and
 * application clocks. */
#include "../check.h"

#include "made.h"

#include <string.h>

enum { COUNT = 64, SUSPECT = 21 };
static const char suspect[] = "GPU-021";

static struct gpu_result *make_fleet(uint64_t seed)
{
    struct gpu_result *gpus = made_fleet(COUNT, seed);
    for (size_t i = 0; i < COUNT; i++) {
        double clock = measures_get(&gpus[i].measures, "clock.sm")->value;
        facts_set_int(&gpus[i].config, "sm_clock_limit_mhz", 1980);
        facts_set_int(&gpus[i].config, "sm_clock_application_mhz", 1980);
        facts_set_int(&gpus[i].config, "power_limit_w", 700);
        facts_set_int(&gpus[i].config, "power_limit_default_w", 700);
        facts_set_text(&gpus[i].health, "throttle", "none");
        assert_non_null(
            measures_add(&gpus[i].measures, "clock.sm_reported", clock, "MHz", "reported"));
    }
    return gpus;
}

/* A locked clock is steady, at a fraction of the limit, and the driver reports it as it is. */
static void lock_clock(struct gpu_result *gpu)
{
    made_clock(gpu, 900 / measures_get(&gpu->measures, "clock.sm")->value);
    made_set(gpu, "clock.sm_reported", 900);
    for (size_t i = 0; i < gpu->measures.count; i++)
        if (strcmp(gpu->measures.items[i].metric, "clock.sm") == 0)
            gpu->measures.items[i].spread = 0.01;
}

static bool tells(const struct inventory *inventory, const char *text)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strstr(inventory->node_findings[i].finding, text))
            return true;
    return false;
}

static void one_locked_clock(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(1);
    lock_clock(&gpus[SUSPECT]);
    made_scale(&gpus[SUSPECT], "main.bandwidth.read", 0.6);
    struct inventory inventory = made_judged(gpus, COUNT);
    const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
    assert_non_null(outlier);
    assert_int_equal(outlier->verdict, VERDICT_MISCONFIGURED);
    const struct inventory_evidence *clock = made_finding(outlier, "clock.sm");
    assert_non_null(clock);
    assert_non_null(strstr(clock->cause, "locked at 900 of 1980 MHz"));
    const struct inventory_evidence *read = made_finding(outlier, "main.bandwidth.read");
    assert_non_null(read);
    assert_non_null(strstr(read->cause, "SM clock 900 MHz"));
    assert_int_equal(inventory.outlier_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The same clock is not locked if the driver names a reason, or if it is not steady. */
static void lowered_but_not_locked(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct gpu_result *gpus = make_fleet(2);
        lock_clock(&gpus[SUSPECT]);
        if (how)
            facts_set_text(&gpus[SUSPECT].health, "throttle", "sw_thermal");
        for (size_t i = 0; i < gpus[SUSPECT].measures.count && !how; i++)
            if (strcmp(gpus[SUSPECT].measures.items[i].metric, "clock.sm") == 0)
                gpus[SUSPECT].measures.items[i].spread = 20;
        struct inventory inventory = made_judged(gpus, COUNT);
        const struct inventory_outlier *outlier = made_outlier(&inventory, suspect);
        assert_non_null(outlier);
        assert_int_equal(outlier->verdict, VERDICT_DEGRADED);
        assert_null(strstr(made_finding(outlier, "clock.sm")->cause, "locked"));
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* What the whole model has is one finding, and nobody is accused. */
static void all_have_it(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(3);
    for (size_t i = 0; i < COUNT; i++) {
        lock_clock(&gpus[i]);
        facts_set_int(&gpus[i].config, "power_limit_w", 300);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.outlier_count, 0);
    for (size_t i = 0; i < inventory.watch_count; i++) {
        assert_null(made_finding(&inventory.watch[i], "config.power_limit_w"));
        assert_null(made_finding(&inventory.watch[i], "clock.sm"));
    }
    assert_true(tells(&inventory, "64 of 64 GPUs of alpha-100: power limit 300 W, the default of "
                                  "the card is 700 W"));
    assert_true(tells(&inventory, "64 of 64 GPUs of alpha-100: the SM clock is locked at 900"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A single GPU has no peers, and is told of its own default. */
static void a_lone_gpu(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(4);
    facts_set_int(&gpus[0].config, "power_limit_w", 300);
    struct inventory inventory = made_judged(gpus, 1);
    assert_true(tells(&inventory, "1 of 1 GPUs of alpha-100: power limit 300 W"));
    inventory_fini(&inventory);
    /* Ten of 64: the majority accuses them. */
    for (size_t i = 0; i < 10; i++)
        facts_set_int(&gpus[i].config, "power_limit_w", 300);
    inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 10);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Of a pair, the other one does not say what is usual: the card's own default does, and nobody is
 * accused. So it is of a locked clock among three. */
static void a_pair(void **state)
{
    (void)state;
    for (size_t count = 2; count <= 3; count++)
        for (int locked = 0; locked < 2; locked++) {
            struct gpu_result *gpus = make_fleet(6);
            if (locked)
                lock_clock(&gpus[0]);
            else
                facts_set_int(&gpus[0].config, "power_limit_w", 300);
            struct inventory inventory = made_judged(gpus, count);
            assert_int_equal(inventory.total_outliers, 0);
            const char *words = locked ? "locked at 900 of 1980 MHz" : "power limit 300 W, the";
            assert_int_equal(tells(&inventory, words), count == 2);
            if (count == 3)
                assert_non_null(made_watched(&inventory, "GPU-000"));
            inventory_fini(&inventory);
            made_free(gpus, COUNT);
        }
}

static void half_of_a_model(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(5);
    for (size_t i = 0; i < COUNT; i += 2)
        facts_set_int(&gpus[i].config, "power_limit_w", 300);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.outlier_count, 0);
    assert_true(tells(&inventory, "power limit of alpha-100: "));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* All GPUs of a model, or a lone one: it is told, and nobody is accused. */
static void low_application_clock(void **state)
{
    (void)state;
    static const size_t counts[] = {COUNT, 1};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        struct gpu_result *gpus = make_fleet(5);
        for (size_t i = 0; i < COUNT; i++) {
            facts_set_int(&gpus[i].config, "sm_clock_application_mhz", 1200);
            facts_set_int(&gpus[i].config, "sm_clock_application_default_mhz", 1980);
        }
        struct inventory inventory = made_judged(gpus, counts[c]);
        assert_true(tells(&inventory, "SM application clock 1200 MHz, the default of the card is "
                                      "1980 MHz"));
        assert_int_equal(inventory.outlier_count, 0);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_locked_clock),
        cmocka_unit_test(lowered_but_not_locked),
        cmocka_unit_test(all_have_it),
        cmocka_unit_test(a_lone_gpu),
        cmocka_unit_test(a_pair),
        cmocka_unit_test(half_of_a_model),
        cmocka_unit_test(low_application_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
