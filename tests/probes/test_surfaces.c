/* Surfaces on simulated GPUs: the knee is where bytes in flight / latency meets the limit of the
 * level, whatever both are, and one block more than SMs costs what it must. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/sim/stream.h"
#include "inventory/curves.h"
#include "probed.h"

static struct measures probe_model(double latency, double l2_read, const char *more)
{
    char *model = str_format(
        "name: Surface\nsms: 64\nmemory: {size: 4 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
        "noise: {bandwidth: 0.002}\nl2: {size: 32 MiB, line: 128, ways: 16}\n"
        "bandwidth: {sm: 1000, shared: 100, l2_read: %g, l2_write: %g, main_read: 800,"
        " main_write: 700, main_copy: 750%s}\n"
        "paths: {global_ca: [l2: %g, main: %g], global_cg: [l2: %g, main: %g], shared: 20}\n",
        l2_read, l2_read, more, latency, 2 * latency, latency, 2 * latency);
    assert_non_null(model);
    struct measures all = probed_run(&(struct probed){.model = model, .list = "surface"});
    free(model);
    return all;
}

/* 512 threads with four accesses of 16 bytes: 90 % of the limit, at latency / bytes each. */
static void knees(void **state)
{
    (void)state;
    static const struct {
        double latency, l2_read;
    } rows[] = {{500, 2000}, {1000, 2000}, {500, 3000}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measures all = probe_model(rows[i].latency, rows[i].l2_read, "");
        double knee = 0.9 * rows[i].l2_read * rows[i].latency / (512 * 64);
        probed_expect(&all, "surface.l2_threads.saturated", rows[i].l2_read, "L2");
        /* Points lie 8 blocks apart; between them the curve bends. */
        assert_true(fabs(probed_value(&all, "surface.l2_threads.knee") - knee) < 2);
        probed_expect(&all, "surface.copy_threads.saturated", 750, "copy");
        probed_expect(&all, "surface.count", 8, "all");
        measures_fini(&all);
    }
}

static void streams(void **state)
{
    (void)state;
    struct measures all = probe_model(500, 2000, ", main_add: 780");
    static const struct {
        const char *name;
        double gbs;
    } rows[] = {{"copy", 750}, {"mul", 750}, {"add", 780}, {"triad", 780}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char metric[64];
        snprintf(metric, sizeof metric, "surface.stream_size.%s.largest", rows[i].name);
        probed_expect(&all, metric, rows[i].gbs, "size");
        snprintf(metric, sizeof metric, "surface.stream_threads.%s.saturated", rows[i].name);
        probed_expect(&all, metric, rows[i].gbs, "threads");
    }
    measures_fini(&all);
}

/* What still rises at the last point is a lower bound. */
static void not_saturated(void **state)
{
    (void)state;
    struct measures all = probe_model(500, 2000, ", main_loaded_cycles: 0");
    assert_int_equal(measures_get(&all, "surface.l2_threads.saturated")->bound, MEASURE_EXACT);
    measures_fini(&all);
    all = probe_model(20000, 2000, "");
    assert_int_equal(measures_get(&all, "surface.l2_threads.saturated")->bound, MEASURE_AT_LEAST);
    assert_int_equal(measures_get(&all, "surface.l2_threads.knee")->bound, MEASURE_AT_LEAST);
    measures_fini(&all);
}

/* The curve of 512 threads of a surface: of 17 values the one at an index. */
static double curve_at(const struct measures *all, const char *metric, size_t index)
{
    struct surface_curves curves;
    size_t i = 0;
    assert_true(surface_curves_read(&measures_get(all, metric)->notes, &curves));
    while (i < curves.count && strcmp(curves.names[i], "512 threads") != 0)
        i++;
    assert_true(i < curves.count && index < curves.x_count);
    return curves.gbs[i][index];
}

/* Shared memory: one block takes all its SM can give, so 64 blocks take as long as one, and 65 take
 * twice as long. */
static void one_block_more(void **state)
{
    (void)state;
    struct measures all = probe_model(500, 2000, "");
    double full = curve_at(&all, "surface.shared_blocks.saturated", 8);
    double more = curve_at(&all, "surface.shared_blocks.saturated", 9);
    assert_true(fabs(full / 6400 - 1) < 0.02);
    assert_true(fabs(more / (6400 * 72 / 128.0) - 1) < 0.02);
    measures_fini(&all);
}

/* Latency that rises with the load, on blocks that share the level fairly. */
static void blocks_of_a_stream(void **state)
{
    (void)state;
    struct stream_blocks run = {.sms = 10,
                                .at_once = 2,
                                .blocks = 10,
                                .block_in_flight = 1000,
                                .sm_limit = 100,
                                .level_limit = 50,
                                .latency_ns = 1000};
    assert_true(fabs(stream_blocks_rate(&run) - 10) < 1e-6);
    run.blocks = 20;
    assert_true(fabs(stream_blocks_rate(&run) - 20) < 1e-6);
    run.blocks = 40; /* in two waves */
    assert_true(fabs(stream_blocks_rate(&run) - 20) < 1e-6);
    run.latency_ns = 10;
    assert_true(fabs(stream_blocks_rate(&run) - 50) < 1e-6);
    run.blocks = 11; /* nine SMs get 5 each, until the last one is alone and gets 50 */
    assert_true(fabs(stream_blocks_rate(&run) - 11 / (1 / 5.0 + 1 / 50.0)) < 1e-6);
    run.blocks = 10;
    run.latency_ns = 100;
    run.loaded_ns = 250;
    double rate = stream_blocks_rate(&run);
    assert_true(rate > 40 && rate < 50);
}

static void curves_as_lists(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double values[3];
        size_t count;
    } bad[] = {{"curves_at", {17, 1}, 2}, {"curves_at", {0, 17}, 2}, {"curves_at", {NAN, 17}, 2},
               {"curves_at", {1}, 1},     {"curves_1", {1}, 1},      {"curves_2", {1, 2, 3}, 3},
               {"curves_of", {1, 2}, 2},  {"curves_by", {1}, 1}};
    const struct surface_curves curves = {.axis = "blocks",
                                          .xs = {1, 17},
                                          .x_count = 2,
                                          .names = {"128 threads", "256 threads"},
                                          .gbs = {{25.5, NAN}, {51, 12346}},
                                          .count = 2};
    struct surface_curves again;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct facts notes = {0};
        assert_false(surface_curves_read(&notes, &again));
        surface_curves_put(&curves, &notes);
        assert_true(surface_curves_read(&notes, &again));
        assert_true(again.count == 2 && again.x_count == 2 && isnan(again.gbs[0][1]));
        assert_string_equal(again.axis, "blocks");
        assert_string_equal(again.names[1], "256 threads");
        assert_true(again.xs[1] == 17 && again.gbs[0][0] == 25.5 && again.gbs[1][1] == 12350);
        facts_set_numbers(&notes, bad[i].key, bad[i].values, bad[i].count);
        assert_false(surface_curves_read(&notes, &again));
        facts_remove(&notes, bad[i].key);
        assert_false(surface_curves_read(&notes, &again));
        facts_fini(&notes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knees),
        cmocka_unit_test(streams),
        cmocka_unit_test(not_saturated),
        cmocka_unit_test(one_block_more),
        cmocka_unit_test(blocks_of_a_stream),
        cmocka_unit_test(curves_as_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
