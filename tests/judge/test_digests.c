/* Digests of the screen: GPUs that run the same machine code must agree. */
#include "made.h"

#include <stdio.h>
#include <string.h>

#include "../check.h"
#include "judge/world.h"

enum { COUNT = 8, WRONG = 3, RIGHT = 123456 };

static void add(struct gpu_result *gpu, const char *metric, double value)
{
    measures_add(&gpu->measures, metric, value, "id", "made");
}

static struct gpu_result *fleet_with(double code_of_wrong)
{
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++) {
        add(&gpus[i], "compute.code", i == WRONG ? code_of_wrong : 7);
        add(&gpus[i], "compute.digest.half", i == WRONG ? 99 : RIGHT);
        add(&gpus[i], "compute.digest.int", RIGHT);
    }
    return gpus;
}

static void one_of_many(void **state)
{
    (void)state;
    struct gpu_result *gpus = fleet_with(7);
    struct inventory inventory = made_judged(gpus, COUNT);
    const struct inventory_outlier *entry = made_outlier(&inventory, gpus[WRONG].uuid);
    assert_int_equal(inventory.total_outliers, 1);
    assert_int_equal(entry->verdict, VERDICT_FAILING);
    assert_string_equal(
        made_finding(entry, "compute.digest.half")->cause,
        "FP16 and BF16 units give another result than on 7 of 8 GPUs with the same program: digest "
        "99 instead of 123456");
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Another driver compiled other code: that is no fault. */
static void other_code(void **state)
{
    (void)state;
    struct gpu_result *gpus = fleet_with(8);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.watch_count + inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Of two, nobody knows who is right; alone, nothing is known. */
static void too_few(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        struct gpu_result *gpus = fleet_with(7);
        struct inventory inventory = made_judged(gpus + WRONG - count + 1, count);
        assert_int_equal(inventory.watch_count, count == 2 ? 2 : 0);
        if (count == 2)
            assert_string_equal(
                made_finding(made_watched(&inventory, gpus[WRONG].uuid), "compute.digest.half")
                    ->cause,
                "FP16 and BF16 units do not give the same result on 2 GPUs with the same program: "
                "too few agree to tell who is right");
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Where the host knows the answer, those that agree with it are right, however few they are. A GPU
 * with their digest is right even if its own host computes something else. */
static void other_than_the_host(void **state)
{
    (void)state;
    static const char DIFFERS[] = "FP64 units: all SMs give another result than the host, ";
    static const struct {
        size_t count, wrong;
        bool host_is_wrong;
        const char *words;
    } rows[] = {
        {COUNT, 1, false, "with which 7 of 8 GPUs of its model agree: digest 99 instead of 123456"},
        {COUNT, COUNT - 1, false, DIFFERS},
        {2, 1, false, DIFFERS},
        {1, 1, false, DIFFERS},
        {COUNT, 4, true,
         "FP64 units give the result of the other GPUs (4); the CPU of the node computes another "
         "one"}};
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct gpu_result *gpus = made_fleet(rows[r].count, 3);
        bool told = rows[r].wrong == rows[r].count || rows[r].host_is_wrong;
        for (size_t i = 0; i < rows[r].count; i++) {
            if (i % 3) /* what the driver compiled has no name; other builds have another one */
                add(&gpus[i], "compute.code", 6 + (double)(i % 3));
            add(&gpus[i], "compute.digest.fp64",
                i < rows[r].wrong && !rows[r].host_is_wrong ? 99 + (double)i : RIGHT);
            if (i < rows[r].wrong)
                add(&gpus[i], "compute.not_as_host.fp64", 1);
        }
        struct inventory inventory = made_judged(gpus, rows[r].count);
        assert_int_equal(inventory.total_outliers, told ? 0 : rows[r].wrong);
        assert_int_equal(inventory.watch_count, told ? rows[r].wrong : 0);
        const struct inventory_outlier *entry =
            told ? made_watched(&inventory, gpus[0].uuid) : made_outlier(&inventory, gpus[0].uuid);
        assert_non_null(
            strstr(made_finding(entry, "compute.not_as_host.fp64")->cause, rows[r].words));
        assert_true(made_finding(entry, "compute.not_as_host.fp64")->value == 1);
        inventory_fini(&inventory);
        made_free(gpus, rows[r].count);
    }
}

static void add_figure(struct world_population *population, const char *metric, double value,
                       double last)
{
    struct world_figure *figure = world_have_figure(population, metric);
    figure->n = population->gpus;
    figure->median = value;
    for (size_t i = 0; i < WORLD_QUANTILES; i++)
        figure->quantiles[i] = i + 1 < WORLD_QUANTILES ? value : last;
}

/* Two GPUs elsewhere with a board part. last: the digest of one of them. */
static void add_elsewhere(struct world_model *model, const char *part, double code, double digest,
                          double last)
{
    struct world_population *population = world_have_population(model, part);
    population->gpus = 2;
    world_add_word(&population->programs, "0.2.0");
    add_figure(population, "compute.code", code, code);
    add_figure(population, "compute.digest.half", digest, last);
}

/* A lone GPU is compared with GPUs elsewhere that run the same code and agree, on any board. */
static void elsewhere(void **state)
{
    (void)state;
    static const struct {
        double code, last, other_code, other;
        bool told;
    } cases[] = {{7, RIGHT, 7, RIGHT, true},
                 {8, RIGHT, 8, RIGHT, false},      /* of other code */
                 {7, RIGHT, 8, RIGHT, false},      /* too few */
                 {7, RIGHT + 1, 7, RIGHT, false},  /* that do not agree */
                 {7, RIGHT, 7, RIGHT + 1, false}}; /* on two boards */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gpu_result *gpus = fleet_with(7);
        struct world world = {0};
        struct world_model *model = world_have_model(&world, "Alpha 100", "10de:1:1:Alpha 100");
        add_elsewhere(model, "692-000", cases[i].code, RIGHT, cases[i].last);
        add_elsewhere(model, "692-001", cases[i].other_code, cases[i].other, cases[i].other);
        const struct judge_basis basis = {
            .config = made_config(), .world = &world, .program = "0.2.0"};
        struct inventory inventory = {0};
        struct err err = {0};
        facts_set_text(&gpus[WRONG].board, "part", "692-000");
        assert_int_equal(made_judge(gpus + WRONG, 1, true, &basis, &inventory, &err), 0);
        const struct inventory_outlier *entry = made_watched(&inventory, gpus[WRONG].uuid);
        const struct inventory_evidence *found =
            entry ? made_finding(entry, "compute.digest.half") : NULL;
        assert_int_equal(found != NULL, cases[i].told);
        if (found)
            assert_string_equal(
                found->cause,
                "FP16 and BF16 units give another result than on 4 GPUs elsewhere with the "
                "same program: digest 99 instead of 123456");
        inventory_fini(&inventory);
        world_fini(&world);
        made_free(gpus, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_many), cmocka_unit_test(other_code),
        cmocka_unit_test(too_few),     cmocka_unit_test(other_than_the_host),
        cmocka_unit_test(elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
