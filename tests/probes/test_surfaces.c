/* Surfaces on simulated GPUs: the knee is where bytes in flight / latency meets the limit of the
 * level, whatever both are, and one block more than SMs costs what it must. Latency under load. */
#include "../check.h"

#include <errno.h>
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
    /* Bent, and yet not level: the latency rises with the load. */
    all = probe_model(500, 4000, ", l2_loaded_cycles: 3000");
    assert_int_equal(measures_get(&all, "surface.l2_threads.saturated")->bound, MEASURE_AT_LEAST);
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

/* Latency rises with the fifth power of the share of the limit that others read. */
struct loaded_truth {
    const char *memory;
    double alone, loaded, limit;
};

static double loaded_latency(const struct loaded_truth *truth, double gbs)
{
    double share = fmin(gbs / truth->limit, 1);
    return truth->alone + (truth->loaded - truth->alone) * pow(share, 5);
}

static void expect_loaded(const struct measures *all, const struct loaded_truth *truth)
{
    char metric[64];
    struct latency_curve curve;
    snprintf(metric, sizeof metric, "%s.latency_loaded", truth->memory);
    const struct measure *m = measures_get(all, metric);
    assert_true(m && latency_curve_read(&m->notes, &curve) && curve.count == 15);
    assert_true(curve.points[0].gbs == 0 && m->n > 1000 && strcmp(m->unit, "cycles") == 0);
    for (size_t i = 0; i < curve.count; i++) {
        const struct latency_curve_point *point = &curve.points[i];
        double wanted = loaded_latency(truth, point->gbs);
        if (fabs(point->cycles / wanted - 1) > 0.03)
            fail_msg("%s: %g cycles at %g GB/s, not %g", truth->memory, point->cycles, point->gbs,
                     wanted);
        if (i && fabs(point->gbs / truth->limit - (i < 8 ? i / 10.0 : 0.9)) > 0.15)
            fail_msg("%s: point %zu at %g GB/s", truth->memory, i, point->gbs);
    }
    probed_expect(all, metric, loaded_latency(truth, 0.9 * truth->limit), truth->memory);
    snprintf(metric, sizeof metric, "%s.latency_doubles", truth->memory);
    bool doubles = truth->loaded > 2 * truth->alone;
    double share = doubles ? pow(truth->alone / (truth->loaded - truth->alone), 0.2) : 1;
    probed_expect(all, metric, share * truth->limit, truth->memory);
    assert_int_equal(measures_get(all, metric)->bound, doubles ? MEASURE_EXACT : MEASURE_AT_LEAST);
}

#define LOADED_MODEL(loaded)                                                                       \
    "name: Under load\nsms: 40\nmemory: {size: 2 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"        \
    "timer: {overhead_cycles: 10}\nnoise: {jitter_cycles: 2, bandwidth: 0.003}\n"                  \
    "l2: {size: 8 MiB, line: 128, ways: 16}\n"                                                     \
    "bandwidth: {sm: 100, l2_read: 2000, main_read: 600, " loaded "}\n"                            \
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"

static const char LOADED_LIST[] = "main.latency_loaded,l2.latency_loaded";

static void latency_under_load(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct loaded_truth truths[2];
    } rows[] = {
        {LOADED_MODEL("l2_loaded_cycles: 700, main_loaded_cycles: 1800"),
         {{"main", 500, 1800, 600}, {"l2", 200, 700, 2000}}},
        {LOADED_MODEL("l2_loaded_cycles: 1000, main_loaded_cycles: 900"),
         {{"main", 500, 900, 600}, {"l2", 200, 1000, 2000}}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measures all = probed_run(
            &(struct probed){.model = rows[i].model, .profile = PROFILE_FULL, .list = LOADED_LIST});
        for (size_t k = 0; k < COUNT_OF(rows[i].truths); k++)
            expect_loaded(&all, &rows[i].truths[k]);
        measures_fini(&all);
    }
}

static const struct device_ops *loaded_inner;
static struct device_ops loaded_outer;
static int loaded_code;

/* Loads that take a fifth longer than those of main.latency, or more bytes than there are, or an
 * error. */
static int chase_other_lines(struct device *device, const void *request, void *answer,
                             struct err *err)
{
    struct device_loaded_chase_answer *out_answer = answer;
    int rc = loaded_inner->calls[DEVICE_CALL_LOADED_CHASE](device, request, answer, err);
    if (loaded_code > 0)
        out_answer->bytes += out_answer->bytes / 20;
    else
        out_answer->cycles += out_answer->cycles / 5;
    return loaded_code < 0 ? err_set(err, loaded_code, "not all other SMs read") : rc;
}

static void set_other_lines(struct device *device)
{
    loaded_inner = device->ops;
    loaded_outer = *loaded_inner;
    loaded_outer.calls[DEVICE_CALL_LOADED_CHASE] = chase_other_lines;
    device->ops = &loaded_outer;
}

static void other_lines_under_load(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, -EBUSY};
    static const enum measure_status wanted[] = {MEASURE_NOISY, MEASURE_NOISY, MEASURE_FAILED};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        loaded_code = codes[i];
        struct measures all =
            probed_run(&(struct probed){.model = LOADED_MODEL("main_loaded_cycles: 1800"),
                                        .profile = PROFILE_FULL,
                                        .list = LOADED_LIST,
                                        .prepare = set_other_lines});
        assert_int_equal(measures_get(&all, "main.latency_loaded")->status, wanted[i]);
        assert_int_equal(measures_get(&all, "l2.latency_doubles")->status, wanted[i]);
        measures_fini(&all);
    }
}

static void latency_curves_as_lists(void **state)
{
    (void)state;
    const struct latency_curve curve = {.points = {{0, 500, 1, 20}, {600, 1800, 3, 25}},
                                        .count = 2};
    static const double bad[][3] = {{NAN, 1}, {-1, 1}};
    struct facts notes = {0};
    struct latency_curve again;
    assert_false(latency_curve_read(&notes, &again));
    latency_curve_put(&curve, &notes);
    assert_true(latency_curve_read(&notes, &again) && again.count == 2);
    assert_true(again.points[1].gbs == 600 && again.points[1].cycles == 1800 &&
                again.points[1].spread == 3 && again.points[0].deviation == 20);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        facts_set_numbers(&notes, "curve_cycles", bad[i], 2);
        assert_false(latency_curve_read(&notes, &again));
    }
    facts_set_numbers(&notes, "curve_cycles", bad[0], 1);
    assert_false(latency_curve_read(&notes, &again));
    facts_fini(&notes);
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
        cmocka_unit_test(latency_under_load),
        cmocka_unit_test(other_lines_under_load),
        cmocka_unit_test(latency_curves_as_lists),
        cmocka_unit_test(curves_as_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
