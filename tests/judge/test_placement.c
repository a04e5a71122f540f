/* GPUs of one model whose SMs are placed otherwise on the die: they read less of L2, and nothing is
 * wrong with them. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge/model.h"
#include "judge/placement.h"

static const char READ[] = "l2.bandwidth.read";

enum { USUAL = 16, FEW_SMS = 12 };

/* Every `every`th GPU has a group of 12 SMs and reads 1.8 % less; 0: none. */
static struct gpu_result *make_fleet(size_t count, size_t every, double scatter, uint64_t seed)
{
    struct gpu_result *gpus = made_fleet_of(count, seed, 0, scatter);
    for (size_t i = 0; i < count; i++) {
        bool other = every && i % every == 0;
        measures_add(&gpus[i].measures, "sm.group_sms", other ? FEW_SMS : USUAL, "", "m");
        if (other)
            made_scale(&gpus[i], READ, 0.982);
    }
    return gpus;
}

static const struct inventory_evidence *told(const struct inventory *inventory, const char *uuid)
{
    const struct inventory_outlier *found = made_outlier(inventory, uuid);
    return made_finding(found ? found : made_watched(inventory, uuid), READ);
}

static void nobody_is_told(void **state)
{
    (void)state;
    static const size_t counts[] = {8, 11, 64, 400}, every[] = {2, 5, 8, 400};
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (size_t e = 0; e < COUNT_OF(every); e++) {
            struct gpu_result *gpus = make_fleet(counts[c], every[e], 0.001, 40 + 4 * c + e);
            struct inventory inventory = made_judged(gpus, counts[c]);
            assert_int_equal(inventory.outlier_count, 0);
            assert_int_equal(inventory.watch_count, 0);
            inventory_fini(&inventory);
            made_free(gpus, counts[c]);
        }
}

/* The others are not hidden behind them, nor one of them that loses more. */
static void losses_are_seen(void **state)
{
    (void)state;
    for (size_t lost = 1; lost <= 10; lost += 9) { /* a usual GPU, and one with a group of 12 */
        struct gpu_result *gpus = make_fleet(40, 5, 0.001, 7);
        made_scale(&gpus[lost], READ, 0.97);
        struct inventory inventory = made_judged(gpus, 40);
        char uuid[16];
        snprintf(uuid, sizeof uuid, "GPU-%03zu", lost);
        const struct inventory_evidence *found = told(&inventory, uuid);
        assert_non_null(found);
        assert_true(found->deviation > -0.034 && found->deviation < -0.026);
        assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
        inventory_fini(&inventory);
        made_free(gpus, 40);
    }
}

/* One GPU alone has a group of 12: it may be built so, within a few per cent, but not more. */
static void the_only_one(void **state)
{
    (void)state;
    static const struct {
        double factor;
        bool told;
    } cases[] = {{0.982, false}, {1, false}, {0.97, false}, {0.94, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = make_fleet(24, 0, 0.001, 11);
        made_set(&gpus[3], "sm.group_sms", FEW_SMS);
        made_scale(&gpus[3], READ, cases[i].factor);
        struct inventory inventory = made_judged(gpus, 24);
        assert_int_equal(told(&inventory, "GPU-003") != NULL, cases[i].told);
        assert_int_equal(inventory.outlier_count, 0);
        inventory_fini(&inventory);
        made_free(gpus, 24);
    }
}

/* All of one place lose more than any placement costs: that is a loss. */
static void a_whole_place(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 5, 0.001, 7);
    for (size_t i = 0; i < 40; i += 5)
        made_scale(&gpus[i], READ, 0.95);
    struct inventory inventory = made_judged(gpus, 40);
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 8);
    assert_true(told(&inventory, "GPU-005")->deviation < -0.06);
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

/* Each kind has its own usual place: GPUs of the other board all have a group of 12. */
static void two_boards(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 2, 0.001, 7);
    for (size_t i = 0; i < 40; i++)
        facts_set_text(&gpus[i].board, "part", i % 2 ? "692-001" : "692-000");
    made_scale(&gpus[10], READ, 0.97);
    struct inventory inventory = made_judged(gpus, 40);
    assert_non_null(told(&inventory, "GPU-010"));
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

/* So many places that none is usual: all are compared with all. */
static void all_different(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(24, 0, 0.001, 7);
    for (size_t i = 0; i < 24; i++)
        made_set(&gpus[i], "sm.group_sms", 10.0 + (double)i);
    made_scale(&gpus[3], READ, 0.96);
    struct inventory inventory = made_judged(gpus, 24);
    assert_non_null(told(&inventory, "GPU-003"));
    assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, 24);
}

static void told_once_per_model(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(40, 5, 0.0002, 7);
    struct inventory inventory = made_judged(gpus, 40);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_non_null(
        strstr(inventory.node_findings[0].finding,
               "8 of 40 GPUs of alpha-100 have a group of 12 SMs: l2.bandwidth.read is 1.8 % less "
               "than with 16 in the smallest"));
    inventory_fini(&inventory);
    made_free(gpus, 40);
}

/* Of GPUs with so many of each place, and of those elsewhere with these quartiles. */
static void the_usual_place(void **state)
{
    (void)state;
    static const struct {
        size_t usual, few, third; /* GPUs with 16, 12 and 14 SMs in the smallest group */
        double low, middle, high; /* elsewhere; 0: not known */
        double place;
    } cases[] = {
        {5, 0, 0, 12, 12, 12, 16},                              /* five outvote the world */
        {4, 0, 0, 12, 12, 12, 12},   {0, 0, 0, 12, 12, 12, 12}, /* four do not, nor none */
        {4, 0, 0, 12, 16, 16, 16},   {4, 0, 0, 12, 12, 16, 16}, /* places differ there */
        {0, 0, 0, 12, 16, 16, NAN},  {0, 0, 0, 0, 0, 0, NAN},
        {2, 2, 0, 0, 0, 0, 16},      {2, 3, 0, 0, 0, 0, 12},
        {10, 10, 0, 12, 12, 12, 16}, {9, 5, 5, 0, 0, 0, NAN}, /* less than half */
        {9, 5, 4, 0, 0, 0, 16},      {0, 2, 2, 0, 0, 0, 14},  /* as many: the larger one */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct place_counts counts = {
            .places = {USUAL, FEW_SMS, 14},
            .counts = {cases[i].usual, cases[i].few, cases[i].third},
            .count = cases[i].third ? 3
                     : cases[i].few ? 2
                                    : cases[i].usual > 0,
            .known = cases[i].usual + cases[i].few + cases[i].third};
        const struct world_figure elsewhere = {
            .n = 20,
            .median = cases[i].middle,
            .quantiles = {10, 10, cases[i].low, cases[i].middle, cases[i].high, 18, 18}};
        double place = placement_usual(&counts, cases[i].middle > 0 ? &elsewhere : NULL);
        if (isnan(cases[i].place) ? !isnan(place) : place != cases[i].place)
            fail_msg("case %zu: %g instead of %g", i, place, cases[i].place);
    }
}

/* The effect is the median of the others, drawn towards 1 by the assumption that it is within 2 %.
 */
static void what_a_place_changes(void **state)
{
    (void)state;
    enum { OTHERS = 8, THIRD = 14, MANY = 2 * OTHERS_MAX };
    struct placements placements = {0};
    for (uint32_t gpu = 0; gpu <= OTHERS; gpu++)
        placement_add(&placements, gpu, FEW_SMS, gpu ? 0.982 : 0.99);
    placement_add(&placements, 20, THIRD, 0.982);
    for (uint32_t gpu = 0; gpu < MANY; gpu++)
        placement_add(&placements, 100 + gpu, 18, gpu ? 0.94 : 1);
    struct placement usual = placement_of(&placements, 30, NAN, 0.9, 0.001);
    assert_true(usual.effect == 1 && usual.error == 0 && !usual.few);
    /* The weight of eight medians against 1 / 0.02^2, as docs/JUDGE.md has it. */
    double known = OTHERS / pow(1.2533 * 0.01, 2), weight = known / (known + 2500);
    struct placement few = placement_of(&placements, 0, FEW_SMS, 0.99, 0.01);
    assert_true(fabs(few.effect - (1 - 0.018 * weight)) < 1e-5 && !few.few);
    assert_true(fabs(few.error - 1 / sqrt(known + 2500)) < 1e-6);
    /* Without others nothing is known but the assumption, and a larger loss is not explained. */
    struct placement alone = placement_of(&placements, 20, THIRD, 0.982, 0.01);
    assert_true(alone.effect == 1 && alone.few);
    assert_true(fabs(alone.error - model_constants[PLACES_APART]) < 1e-12);
    struct placement lost = placement_of(&placements, 20, THIRD, 0.95, 0.01);
    assert_true(lost.effect == 1 && lost.error == 0 && lost.few);
    /* All of a place lose more than a placement costs. */
    struct placement whole = placement_of(&placements, 101, 18, 0.99, 0.001);
    assert_true(whole.effect == 1 && whole.error == 0 && !whole.few);
    placement_fini(&placements);
}

/* With more places than are counted, the effect of the others is not known. */
static void too_many_places(void **state)
{
    (void)state;
    struct placements placements = {0};
    for (uint32_t gpu = 0; gpu <= 6 * PLACES_MAX; gpu++)
        placement_add(&placements, gpu, gpu / 6, 0.98);
    for (uint32_t place = 0; place <= PLACES_MAX; place++) {
        struct placement found = placement_of(&placements, UINT32_MAX, place, 0.98, 0.001);
        assert_true(place < PLACES_MAX ? found.effect < 0.99 && !found.few
                                       : found.effect == 1 && found.few);
    }
    placement_fini(&placements);
}

/* What 20 GPUs elsewhere read of L2, and how their SMs are placed: the lower quarter, the median
 * and the upper quarter. */
static struct world make_world(const double places[3])
{
    struct world world = {0};
    struct world_model *model = world_have_model(&world, "Alpha 100", "10de:1:1:Alpha 100");
    struct world_population *population = world_have_population(model, "692-000");
    population->gpus = 20;
    world_add_word(&population->programs, "0.2.0");
    world_add_word(&population->drivers, "580.00");
    static const double read[WORLD_QUANTILES] = {5885, 5890, 5896, 5900, 5904, 5910, 5915};
    struct world_figure *figure = world_have_figure(population, READ);
    figure->n = 20;
    figure->median = 5900;
    figure->scatter = 6;
    memcpy(figure->quantiles, read, sizeof read);
    figure = world_have_figure(population, "sm.group_sms");
    figure->n = 20;
    figure->median = places[1];
    for (int i = 0; i < WORLD_QUANTILES; i++)
        figure->quantiles[i] = places[i < 3 ? 0 : i == 3 ? 1 : 2];
    return world;
}

/* A lone GPU is compared with GPUs elsewhere that have the usual place. With the same one a loss of
 * 3 % is told. With another one it may be the place, up to 4.5 %; so it may if places differ there
 * and none is usual. */
static void lone_gpus(void **state)
{
    (void)state;
    static const double same[] = {16, 16, 16}, mixed[] = {12, 14, 16};
    static const struct {
        const double *elsewhere;
        double place, factor;
        bool told;
    } cases[] = {
        {same, 16, 1, false},   {same, 16, 0.982, true}, {same, 16, 0.97, true},
        {same, 12, 1, false},   {same, 12, 0.97, false}, {same, 12, 0.9, true},
        {mixed, 16, 1, false},  {mixed, 16, 0.97, true}, {mixed, 12, 0.97, true},
        {mixed, 12, 0.9, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = made_fleet_of(1, 3, 0, 0);
        struct world world = make_world(cases[i].elsewhere);
        struct inventory inventory = {0};
        struct err err = {0};
        const struct judge_basis basis = {
            .config = made_config(), .world = &world, .program = "0.2.0"};
        facts_set_text(&gpus[0].board, "part", "692-000");
        made_set(&gpus[0], READ, 5900 * cases[i].factor);
        measures_add(&gpus[0].measures, "sm.group_sms", cases[i].place, "", "m");
        assert_int_equal(made_judge(gpus, 1, true, &basis, &inventory, &err), 0);
        if ((told(&inventory, "GPU-000") != NULL) != cases[i].told)
            fail_msg("case %zu: told %d", i, !cases[i].told);
        inventory_fini(&inventory);
        world_fini(&world);
        made_free(gpus, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_is_told),
                                       cmocka_unit_test(losses_are_seen),
                                       cmocka_unit_test(the_only_one),
                                       cmocka_unit_test(a_whole_place),
                                       cmocka_unit_test(two_boards),
                                       cmocka_unit_test(all_different),
                                       cmocka_unit_test(told_once_per_model),
                                       cmocka_unit_test(the_usual_place),
                                       cmocka_unit_test(what_a_place_changes),
                                       cmocka_unit_test(too_many_places),
                                       cmocka_unit_test(lone_gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
