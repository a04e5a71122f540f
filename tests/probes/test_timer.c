/* What timing adds is found for every path by itself, and two levels are told apart by both. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/sim/sim.h"
#include "probes/method/pool.h"
#include "probes/method/timer.h"
#include "probes/probe.h"

static const char model_text[] =
    "name: T\nsms: 8\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "caches: {l1: {size: 16 KiB, line: 128, ways: 4}, c1: {size: 2 KiB, line: 64, ways: 4}}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16, parts: homes, far_cycles: 80, slice_cycles: 40}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
    " read_only: [l1: 32, l2: 200, main: 500], texture: [l1: 80, l2: 250, main: 550],"
    " constant: [c1: 25, l2: 220, main: 520], shared: 20, host: 1000}\n";

static const struct {
    enum device_path path;
    double cycles;
} overheads[] = {
    {DEVICE_GLOBAL_CA, 3}, {DEVICE_GLOBAL_CG, 2.9}, {DEVICE_READ_ONLY, 3.2},
    {DEVICE_TEXTURE, 6},   {DEVICE_CONSTANT, 3.5},  {DEVICE_SHARED, 4},
};
static const char overhead_text[] =
    "overhead_cycles: {global_ca: 3, global_cg: 2.9, read_only: 3.2, texture: 6, constant: 3.5,"
    " shared: 4, host: 2.9}";

static const struct {
    const char *what, *timer, *noise;
} gpus[] = {
    {"quiet", "", "{jitter_cycles: 0.5}"},
    {"spikes", "", "{jitter_cycles: 2, spike_rate: 0.005, spike_cycles: 500}"},
    {"a step of 16 cycles", ", granularity_cycles: 16", "{jitter_cycles: 0.5}"},
    {"more scatter than a hit of L1 takes a third of", "", "{jitter_cycles: 10}"},
};

static void every_path_has_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gpus); i++) {
        char *text = str_format("%stimer: {%s%s}\nnoise: %s\n", model_text, overhead_text,
                                gpus[i].timer, gpus[i].noise);
        struct sim_model *model = NULL;
        struct device *device = NULL;
        struct err err = {0};
        assert_non_null(text);
        if (sim_model_read_text(text, strlen(text), "timer", &model, &err) ||
            sim_open(model, NULL, 0, 1, &device, &err))
            fail_msg("%s", err.text);
        const struct probe_options options = {.seed = 1};
        struct probe_context context = {.device = device, .options = &options};
        assert_int_equal(timer_calibrate(&context, &err), 0);
        for (size_t k = 0; k < COUNT_OF(overheads); k++) {
            double found = timer_overhead(&context, overheads[k].path);
            if (fabs(found - overheads[k].cycles) > 0.5)
                fail_msg("%s, path %d: %.2f instead of %.2f", gpus[i].what, (int)overheads[k].path,
                         found, overheads[k].cycles);
        }
        device_destroy(device);
        sim_model_destroy(model);
        free(text);
    }
}

static void add_loads(struct pool *pool, double cycles, int count)
{
    for (int i = 0; i < count; i++)
        pool_add_load(pool, cycles);
}

/* In the middle of nothing where nothing is misjudged; where loads of both kinds mingle, at the
 * place that misjudges the fewest. */
static void thresholds_know_both_levels(void **state)
{
    (void)state;
    struct pool fast = {0}, slow = {0};
    add_loads(&fast, 30, 1000);
    add_loads(&slow, 200, 1000);
    struct contrast c = contrast_between(&fast, &slow);
    assert_true(c.threshold > 110 && c.threshold < 120);
    assert_true(c.stray_share + c.slip_share < 1e-9);
    add_loads(&fast, 100, 500);
    add_loads(&slow, 120, 4000);
    c = contrast_between(&fast, &slow);
    assert_true(c.threshold > 100 && c.threshold < 120);
    assert_true(c.stray_share + c.slip_share < 1e-9);
    add_loads(&slow, 90, 500);
    c = contrast_between(&fast, &slow);
    assert_true(c.threshold > 100 && c.threshold < 120 && c.stray_share < 1e-9);
    assert_true(fabs(c.slip_share - 500.0 / 5500) < 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_has_its_own),
        cmocka_unit_test(thresholds_know_both_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
