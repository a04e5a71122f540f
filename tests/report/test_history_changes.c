/* Since when a GPU is different, and which surveys of a long history are kept. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "report/history/history.h"
#include "report/history/history_changes.h"
#include "report/history/history_store.h"

enum { GPUS = 12, DAYS = 30, PER_NODE = 4 };

static const struct {
    const char *metric;
    double value;
} figures[] = {{"main.bandwidth.read", 4555}, {"main.latency", 640}, {"clock.sm", 1980}};

/* A factor for a figure of a GPU on a day; NaN: not measured. */
typedef double fate(size_t gpu, const char *metric, unsigned day);

struct course {
    fate *factor;
    double sigma;
    unsigned days;
    size_t accused_gpu; /* an outlier on days accused_from .. accused_to - 1 */
    unsigned accused_from, accused_to;
};

static double nothing(size_t gpu, const char *metric, unsigned day)
{
    (void)gpu, (void)metric, (void)day;
    return 1;
}

static void fill_gpu(struct inventory_gpu *gpu, size_t i, unsigned day, const struct course *course,
                     struct rng *rng)
{
    *gpu = (struct inventory_gpu){.uuid = str_format("GPU-%02zu", i),
                                  .node = str_format("n%zu", i / PER_NODE),
                                  .pci = str_format("0000:%02zx:00.0", i % PER_NODE),
                                  .index = (int32_t)(i % PER_NODE),
                                  .model = str_copy("alpha")};
    gpu->values = mem_array(COUNT_OF(figures), sizeof *gpu->values);
    for (size_t k = 0; k < COUNT_OF(figures); k++) {
        const double factor = course->factor(i, figures[k].metric, day);
        const double value = figures[k].value * (1 + 0.002 * (double)i) *
                             (1 + course->sigma * rng_normal(rng)) * factor;
        if (isfinite(factor))
            gpu->values[gpu->value_count++] = (struct inventory_value){
                str_copy(figures[k].metric), value, 0, MEASURE_OK, MEASURE_EXACT};
    }
    if (i == course->accused_gpu && day >= course->accused_from && day < course->accused_to)
        gpu->status = GPU_OUTLIER;
}

/* One survey a day, from 1970-01-05 on, a Monday. */
static void make(struct history *history, const struct course *course, uint64_t seed)
{
    struct rng rng;
    struct err err = {0};
    rng_init(&rng, seed, "course");
    for (unsigned day = 0; day < course->days; day++) {
        struct inventory inventory = {.total_gpus = GPUS, .total_measured = GPUS};
        inventory.generated = str_copy("1970-01-05T00:00:00Z");
        inventory.gpus = mem_array(GPUS, sizeof *inventory.gpus);
        inventory.gpu_count = GPUS;
        for (size_t i = 0; i < GPUS; i++)
            fill_gpu(&inventory.gpus[i], i, day, course, &rng);
        if (history_add(history, "x", day, &inventory, &err))
            fail_msg("%s", err.text);
        history->surveys[history->survey_count - 1].time_s += (int64_t)day * 86400;
        inventory_fini(&inventory);
    }
    history_finish(history, made_config());
}

static struct history_changes changes_of(const struct history *history, const char *name)
{
    struct history_changes changes = {0};
    const struct history_gpu *gpu;
    struct strbuf text = {0};
    struct err err = {0};
    if (history_changes_gpu(history, name, &gpu, &err) ||
        history_changes_find(history, gpu, made_config(), NULL, &changes, &err))
        fail_msg("%s: %s", name, err.text);
    history_changes_put_text(&changes, &text);
    history_changes_put_json(&changes, &text);
    history_changes_put_page(&changes, &text);
    assert_false(text.failed);
    strbuf_fini(&text);
    return changes;
}

static const struct history_figure *figure_of(const struct history_changes *changes,
                                              const char *metric)
{
    for (size_t i = 0; i < changes->figure_count; i++)
        if (strcmp(changes->figures[i].rule->metric, metric) == 0)
            return &changes->figures[i];
    fail_msg("no %s", metric);
    return NULL;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static double planted(size_t gpu, const char *metric, unsigned day)
{
    const double passed = (double)day / (DAYS - 1);
    if (is(metric, "main.bandwidth.read"))
        return gpu == 1                          ? (day < 17 ? 1 : 0.95)
               : gpu == 2                        ? 1 - 0.08 * passed
               : gpu == 3                        ? (day >= 10 && day < 20 ? 0.97 : 1)
               : gpu == 4                        ? (day == 11 ? 0.5 : 1)
               : gpu == 5 && day > 9 && day < 25 ? NAN
               : gpu == 5                        ? (day < 17 ? 1 : 0.9)
                                                 : 1;
    if (is(metric, "main.latency")) /* a new driver for all */
        return day < 12 ? 1 : 1.04;
    return 1;
}

static void check_change(const struct history_change *change, uint32_t before, uint32_t after,
                         double share)
{
    assert_int_equal(change->before, before);
    assert_int_equal(change->after, after);
    assert_true(fabs(change->change - share) < 0.003);
    assert_true(change->confidence > 0.98);
}

static void since_when(void **state)
{
    (void)state;
    const struct course course = {.factor = planted, .sigma = 0.001, .days = DAYS};
    static const char read[] = "main.bandwidth.read";
    struct history history = {0};
    make(&history, &course, 1);
    struct history_changes changes = changes_of(&history, "n0:1");
    const struct history_figure *figure = figure_of(&changes, read);
    assert_int_equal(figure->course, HISTORY_STEPS);
    assert_int_equal(figure->change_count, 1);
    check_change(&figure->changes[0], 16, 17, -0.05);
    assert_true(history_change_is_worse(figure, &figure->changes[0]));
    assert_true(figure->changes[0].value_before > 4500 && figure->changes[0].value_after < 4400);
    /* What happened to all GPUs is no change of this one. */
    figure = figure_of(&changes, "main.latency");
    assert_int_equal(figure->course, HISTORY_STEADY);
    assert_int_equal(figure->model_change_count, 1);
    check_change(&figure->model_changes[0], 11, 12, 0.04);
    history_changes_fini(&changes);
    changes = changes_of(&history, "n0:2");
    figure = figure_of(&changes, read);
    assert_int_equal(figure->course, HISTORY_GRADUAL);
    assert_int_equal(figure->change_count, 1);
    check_change(&figure->changes[0], 0, DAYS - 1, -0.08);
    history_changes_fini(&changes);
    changes = changes_of(&history, "n0:3"); /* falls and rises again */
    figure = figure_of(&changes, read);
    assert_int_equal(figure->change_count, 2);
    check_change(&figure->changes[0], 9, 10, -0.03);
    check_change(&figure->changes[1], 19, 20, 0.03);
    assert_false(history_change_is_worse(figure, &figure->changes[1]));
    history_changes_fini(&changes);
    changes = changes_of(&history, "n1:0"); /* one wild value */
    assert_int_equal(figure_of(&changes, read)->course, HISTORY_STEADY);
    history_changes_fini(&changes);
    changes = changes_of(&history, "n1:1"); /* not measured for two weeks: that long is uncertain */
    figure = figure_of(&changes, read);
    assert_int_equal(figure->count, 15);
    assert_int_equal(figure->change_count, 1);
    check_change(&figure->changes[0], 9, 25, -0.1);
    history_changes_fini(&changes);
    history_fini(&history);
}

/* Noise far below the floor never makes a change; noise as large as the floor seldom does. */
static void no_false_changes(void **state)
{
    (void)state;
    for (int noisy = 0; noisy < 2; noisy++) {
        size_t figure_count = 0, found = 0;
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct history history = {0};
            const struct course course = {
                .factor = nothing, .sigma = noisy ? 0.02 : 0.001, .days = DAYS};
            make(&history, &course, seed);
            for (size_t g = 0; g < history.gpu_count; g++) {
                struct history_changes changes = changes_of(
                    &history, symbols_data(&history.symbols, history.gpus[g].sightings[0].uuid));
                for (size_t i = 0; i < changes.figure_count; i++)
                    found += changes.figures[i].change_count > 0;
                figure_count += changes.figure_count;
                history_changes_fini(&changes);
            }
            history_fini(&history);
        }
        assert_int_equal(figure_count, 4 * GPUS * COUNT_OF(figures));
        print_message("%zu of %zu figures have a change\n", found, figure_count);
        if (noisy ? found > figure_count / 20 : found > 0)
            fail_msg("%zu of %zu figures have a change", found, figure_count);
    }
}

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *uuid; /* NULL: refused, with: */
        const char *part;
    } cases[] = {{"n0:1", "GPU-01", NULL},
                 {"n1:0000:02:00.0", "GPU-06", NULL},
                 {"n1:02:00.0", "GPU-06", NULL},
                 {"gpu-07", "GPU-07", NULL},
                 {"07", "GPU-07", NULL},
                 {"GPU-", NULL, "12 GPUs begin"},
                 {"n0:9", NULL, "no GPU \"9\" was ever seen on n0"},
                 {"n0:", NULL, "was ever seen"},
                 {"node:1", NULL, "no node \"node\""},
                 {"", NULL, "NODE:INDEX"},
                 {"x", NULL, "NODE:INDEX"}};
    const struct course course = {.factor = nothing, .sigma = 0.001, .days = 2};
    struct history history = {0};
    make(&history, &course, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct history_gpu *gpu = NULL;
        struct err err = {0};
        int rc = history_changes_gpu(&history, cases[i].name, &gpu, &err);
        if (cases[i].uuid)
            assert_string_equal(symbols_data(&history.symbols, gpu->sightings[0].uuid),
                                cases[i].uuid);
        else if (!rc || !strstr(err.text, cases[i].part))
            fail_msg("%s: %d %s", cases[i].name, rc, err.text);
    }
    history_fini(&history);
}

static size_t count_kept(const bool *keep, size_t from, size_t to)
{
    size_t count = 0;
    for (size_t i = from; i < to; i++)
        count += keep[i];
    return count;
}

static void thinned(void **state)
{
    (void)state;
    enum {
        LONG = 400,
        RECENT = LONG - 1 - HISTORY_THIN_DAYS,
        WEEKLY = RECENT - 7 * HISTORY_THIN_WEEKS
    };
    const struct course course = {.factor = nothing,
                                  .sigma = 0.001,
                                  .days = LONG,
                                  .accused_gpu = 3,
                                  .accused_from = 60,
                                  .accused_to = 80};
    struct history history = {0};
    bool keep[LONG];
    make(&history, &course, 1);
    history_thin(&history, keep);
    assert_true(keep[0] && keep[LONG - 1]);
    assert_true(keep[59] && keep[60] && keep[79] && keep[80]);
    assert_false(keep[70] || keep[61] || keep[78]);
    assert_int_equal(count_kept(keep, RECENT, LONG), LONG - RECENT);
    for (size_t day = WEEKLY; day < RECENT; day++)
        if (keep[day])
            assert_true(day % 7 == 0 || day == WEEKLY); /* Mondays */
    assert_in_range(count_kept(keep, WEEKLY, RECENT), HISTORY_THIN_WEEKS, HISTORY_THIN_WEEKS + 1);
    assert_in_range(count_kept(keep, 0, WEEKLY), 4 + WEEKLY / 31, 4 + WEEKLY / 28 + 1);
    history_fini(&history);
}

static void thinned_little(void **state)
{
    (void)state;
    for (unsigned days = 0; days <= 20; days++) {
        const struct course course = {.factor = nothing, .sigma = 0.001, .days = days};
        struct history history = {0};
        bool keep[20] = {0};
        make(&history, &course, 1);
        history_thin(&history, keep);
        for (unsigned day = 0; day < days; day++)
            assert_true(keep[day] || (days > HISTORY_THIN_DAYS && day % 7));
        history_fini(&history);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(since_when), cmocka_unit_test(no_false_changes), cmocka_unit_test(names),
        cmocka_unit_test(thinned),    cmocka_unit_test(thinned_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
