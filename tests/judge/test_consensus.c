/* The topology of a model from inventories that are judged again: every figure is the median or the
 * majority of the GPUs, whatever the order of the inventories. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { CARDS = 5 };

/* Figures that the configuration does not judge, so that an inventory has them once per model. */
static void add_unjudged(struct gpu_result *gpu, size_t number)
{
    static const double penalties[] = {318.7, 290.6, 291.5, 288, 300},
                        clocks[] = {1.9, 1.98, 1.98, 1.5, 1.98};
    const double penalty = penalties[number % CARDS], clock = clocks[number % CARDS];
    const char *const words[] = {number % CARDS < 3 ? "texture" : "none"};
    struct measure *m = measures_add(&gpu->measures, "l2.miss_penalty", penalty, "cycles", "m");
    m->spread = 0.5;
    m->confidence = 0.9;
    m->n = 7;
    facts_set_real(&m->notes, "ns", penalty / clock);
    facts_set_int(&m->notes, "width", (int64_t)(100 + number % CARDS));
    facts_set_text(&m->notes, "page", number % CARDS < 3 ? "2 MiB" : "64 KiB");
    facts_set_text(&m->notes, "map", penalty > 300 ? "a b" : "b a");
    measure_round(m); /* as probes do */
    assert_non_null(measures_add_words(&gpu->measures, "l1_data.shared_with", words, 1, "m"));
    m = measures_add(&gpu->measures, "main.whole.latency", penalty, "cycles", "m");
    char *picture = str_format("picture of %g", penalty);
    facts_set_text(&m->notes, "map", picture);
    free(picture);
    measures_add(&gpu->measures, "main.whole.slowest_region", (double)number, "", "m");
    if (number % 2)
        measures_add(&gpu->measures, "tlb.l1.reach", 100 + (double)number, "B", "m");
    else
        measures_add_missing(&gpu->measures, "tlb.l1.reach", MEASURE_FAILED, "no step");
}

static struct gpu_result *cards(size_t count)
{
    struct gpu_result *gpus = made_fleet_of(count, 11, 0.01, 0.002);
    for (size_t i = 0; i < count; i++)
        add_unjudged(&gpus[i], i);
    return gpus;
}

/* As a file has it. */
static struct inventory filed(const struct gpu_result *gpus, size_t count)
{
    struct inventory made = made_judged(gpus, count), out = {0};
    struct strbuf text = {0};
    struct err err = {0};
    made.version = str_copy("x");
    made.generated = str_copy("x");
    made.backend = str_copy("x");
    inventory_print(&made, &text);
    if (inventory_read_text(text.data, text.length, "filed", &out, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.text);
    strbuf_fini(&text);
    inventory_fini(&made);
    return out;
}

static struct inventory judge_together(const struct inventory *files, const size_t *order,
                                       size_t count, const struct gpu_result *more,
                                       size_t more_count)
{
    struct inventory out = {0};
    struct judge *judge;
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config()};
    judge = judge_create(&basis, 64);
    for (size_t i = 0; i < more_count; i++)
        assert_int_equal(judge_add(judge, &more[i], &err), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(judge_add_inventory(judge, &files[order[i]], &err), 0);
    judge_finish(judge, &out);
    judge_destroy(judge);
    assert_int_equal(out.model_count, 1);
    return out;
}

static const struct measure *figure(const struct inventory *inventory, const char *metric)
{
    return measures_get(&inventory->models[0].memory, metric);
}

static double note_of(const struct measure *m, const char *key)
{
    const struct fact *fact = facts_get(&m->notes, key);
    assert_non_null(fact);
    return fact->kind == FACT_INT ? (double)fact->integer : fact->real;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-5 * fabs(wanted)))
        fail_msg("%g, expected %g", value, wanted);
}

/* What a survey of the five cards gives, and what their five files give together. */
static void check_cards(const struct inventory *inventory)
{
    const struct measure *m = figure(inventory, "l2.miss_penalty");
    near(m->value, 291.5);
    assert_int_equal(m->gpus, CARDS);
    assert_int_equal(m->n, 7); /* each GPU's */
    near(m->spread, (300 - 290.6) / 2);
    near(m->confidence, 0.9);
    near(m->value / note_of(m, "ns"), 1.98);
    near(note_of(m, "width"), 102);
    assert_string_equal(facts_text(&m->notes, "page"), "2 MiB");
    assert_string_equal(facts_text(&m->notes, "map"), "b a");
    m = figure(inventory, "l1_data.shared_with");
    assert_int_equal(m->word_count, 1);
    assert_string_equal(m->words[0], "texture");
    m = figure(inventory, "main.whole.latency");
    assert_string_equal(facts_text(&m->notes, "map"), "picture of 291.5");
    assert_null(figure(inventory, "main.whole.slowest_region"));
    m = figure(inventory, "tlb.l1.reach");
    assert_int_equal(m->status, MEASURE_FAILED);
    assert_string_equal(m->reason, "no step");
    m = figure(inventory, "main.latency");
    assert_int_equal(m->gpus, CARDS);
}

/* Prints the models. */
static char *topology(const struct inventory *inventory)
{
    static char word[] = "x";
    const struct inventory models = {.version = word,
                                     .generated = word,
                                     .backend = word,
                                     .models = inventory->models,
                                     .model_count = inventory->model_count};
    struct strbuf text = {0};
    inventory_print(&models, &text);
    return text.data;
}

static bool next_permutation(size_t *order, size_t count)
{
    size_t i = count - 1, k = count - 1;
    while (i && order[i - 1] >= order[i])
        i--;
    if (!i)
        return false;
    while (order[k] <= order[i - 1])
        k--;
    size_t kept = order[i - 1];
    order[i - 1] = order[k];
    order[k] = kept;
    for (k = count - 1; i < k; i++, k--) {
        kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    return true;
}

static void one_card_each(void **state)
{
    (void)state;
    struct gpu_result *gpus = cards(CARDS);
    struct inventory survey = made_judged(gpus, CARDS), files[CARDS];
    size_t order[CARDS];
    check_cards(&survey);
    char *wanted = topology(&survey);
    for (size_t i = 0; i < CARDS; i++) {
        files[i] = filed(&gpus[i], 1);
        order[i] = i;
    }
    do {
        struct inventory merged = judge_together(files, order, CARDS, NULL, 0);
        check_cards(&merged);
        char *got = topology(&merged);
        assert_string_equal(got, wanted);
        free(got);
        inventory_fini(&merged);
    } while (next_permutation(order, CARDS));
    free(wanted);
    for (size_t i = 0; i < CARDS; i++)
        inventory_fini(&files[i]);
    inventory_fini(&survey);
    made_free(gpus, CARDS);
}

/* A file of four cards and one of one: the first counts four times. With cards beside the files. */
static void several_cards(void **state)
{
    (void)state;
    struct gpu_result *gpus = cards(CARDS + 3);
    struct inventory files[] = {filed(gpus, 4), filed(gpus + 4, 1)};
    const size_t orders[][2] = {{0, 1}, {1, 0}};
    near(figure(&files[0], "l2.miss_penalty")->value, (290.6 + 291.5) / 2);
    for (size_t i = 0; i < 2; i++) {
        struct inventory merged = judge_together(files, orders[i], 2, NULL, 0);
        const struct measure *m = figure(&merged, "l2.miss_penalty");
        near(m->value, 291.05);
        assert_int_equal(m->gpus, 5);
        near(m->spread, figure(&files[0], "l2.miss_penalty")->spread);
        near(m->value / note_of(m, "ns"), 1.94); /* the file of four has the median clock of four */
        inventory_fini(&merged);
        /* 4 times 291.05, once 300, and the median 291.5 of three GPUs. */
        merged = judge_together(files, orders[i], 2, gpus + CARDS, 3);
        m = figure(&merged, "l2.miss_penalty");
        near(m->value, (291.05 + 291.5) / 2);
        assert_int_equal(m->gpus, 8);
        assert_int_equal(figure(&merged, "main.latency")->gpus, 8);
        inventory_fini(&merged);
    }
    inventory_fini(&files[0]);
    inventory_fini(&files[1]);
    made_free(gpus, CARDS + 3);
}

/* An outlier and GPUs of which other files have newer results add nothing to the figures; what
 * only they have is kept. */
static void not_counted(void **state)
{
    (void)state;
    enum { MANY = 8 };
    struct gpu_result *gpus = cards(MANY);
    struct inventory files[MANY + 1];
    size_t order[MANY + 1];
    facts_set_bool(&gpus[0].health, "remap_pending", true);
    measures_add(&gpus[1].measures, "l2.parts", 2, "", "m");
    for (size_t i = 0; i < MANY; i++)
        files[i] = filed(&gpus[i], 1);
    files[MANY] = filed(&gpus[1], 1);
    struct measure *old = (struct measure *)figure(&files[MANY], "l2.miss_penalty");
    old->value = 1000;
    for (size_t i = 0; i < files[MANY].gpu_count; i++) /* as a merge leaves it */
        inventory_gpu_fini(&files[MANY].gpus[i]);
    files[MANY].gpu_count = 0;
    for (size_t i = 0; i <= MANY; i++)
        order[i] = i;
    struct inventory merged = judge_together(files, order, MANY + 1, NULL, 0);
    assert_int_equal(merged.total_outliers, 1);
    const struct measure *m = figure(&merged, "l2.miss_penalty");
    assert_int_equal(m->gpus, MANY - 1); /* 288, 290.6, 290.6, 291.5, 291.5, 300, 318.7 */
    near(m->value, 291.5);
    inventory_fini(&merged);
    order[1] = MANY; /* the second GPU is only in the file without GPUs */
    merged = judge_together(files, order, MANY, NULL, 0);
    m = figure(&merged, "l2.parts");
    near(m->value, 2);
    assert_int_equal(m->gpus, 1);
    assert_int_equal(figure(&merged, "l2.miss_penalty")->gpus, MANY - 2);
    inventory_fini(&merged);
    for (size_t i = 0; i <= MANY; i++)
        inventory_fini(&files[i]);
    made_free(gpus, MANY);
}

/* The figures that each GPU has in the file decide about kind, bound and status. */
static void own_figures_decide(void **state)
{
    (void)state;
    struct gpu_result *gpus = cards(CARDS);
    struct inventory file = filed(gpus, CARDS);
    const size_t order[] = {0};
    ((struct measure *)figure(&file, "l1_data.size"))->bound = MEASURE_AT_LEAST;
    for (size_t i = 0; i < file.gpu_count; i++)
        for (size_t k = 0; k < file.gpus[i].value_count; k++)
            if (strcmp(file.gpus[i].values[k].metric, "main.latency") == 0)
                file.gpus[i].values[k].status = MEASURE_NOISY;
    struct inventory merged = judge_together(&file, order, 1, NULL, 0);
    assert_int_equal(figure(&merged, "l1_data.size")->bound, MEASURE_EXACT);
    assert_int_equal(figure(&merged, "main.latency")->status, MEASURE_NOISY);
    assert_int_equal(figure(&merged, "l2.miss_penalty")->gpus, CARDS);
    inventory_fini(&merged);
    inventory_fini(&file);
    made_free(gpus, CARDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_card_each), cmocka_unit_test(several_cards),
        cmocka_unit_test(not_counted), cmocka_unit_test(own_figures_decide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
