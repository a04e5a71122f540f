/* Models whose GPUs have different boards: figures are judged among GPUs with the same board part.
 */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 128 };

/* The board as the H200 has it: other memory with 4 % more latency and 2.5 % more bandwidth. */
static void give_other_board(struct gpu_result *gpu)
{
    facts_set_text(&gpu->board, "part", "692-000");
    made_scale(gpu, "main.latency", 1.04);
    made_scale(gpu, "main.bandwidth.read", 1.025);
    made_scale(gpu, "main.bandwidth.write", 1.025);
}

/* Every `every`th GPU, and with 2 every other one, has the other board. */
static struct gpu_result *make_fleet(size_t every, uint64_t seed)
{
    struct gpu_result *gpus = made_fleet(COUNT, seed);
    for (size_t i = 0; i < COUNT; i++) {
        facts_set_text(&gpus[i].board, "part", "692-001");
        if (i % every == 0)
            give_other_board(&gpus[i]);
    }
    return gpus;
}

static void boards_are_no_outliers(void **state)
{
    (void)state;
    static const size_t shares[] = {20, 10, 5, 2};
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        struct gpu_result *gpus = make_fleet(shares[i], 100 + i);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.outlier_count, 0);
        assert_int_equal(inventory.node_finding_count, 0);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* 3 % less bandwidth than its own board has is as much as the other board has: it is found, with
 * the expected value of its own board. */
static void loss_in_the_smaller_population(void **state)
{
    (void)state;
    for (uint64_t seed = 200; seed < 204; seed++) {
        struct gpu_result *gpus = make_fleet(10, seed);
        made_scale(&gpus[30], "main.bandwidth.read", 0.97);
        made_scale(&gpus[30], "main.bandwidth.write", 0.97);
        struct inventory inventory = made_judged(gpus, COUNT);
        const struct inventory_outlier *found = made_outlier(&inventory, "GPU-030");
        if (!found)
            found = made_watched(&inventory, "GPU-030");
        const struct inventory_finding *lost = made_finding(found, "main.bandwidth.read");
        if (!lost) /* healthy GPUs scatter by 0.5 %, this one with it */
            lost = made_finding(found, "main.bandwidth.write");
        assert_non_null(lost);
        assert_true(lost->deviation < -0.015 && lost->deviation > -0.045);
        assert_int_equal(inventory.outlier_count, made_outlier(&inventory, "GPU-030") != NULL);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Three GPUs do not show what is usual for their board: a few per cent are no reason to accuse
 * them, half of the bandwidth is. */
static void too_small_a_population(void **state)
{
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        struct gpu_result *gpus = make_fleet(50, 300);
        if (broken)
            made_scale(&gpus[50], "main.bandwidth.read", 0.5);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.outlier_count, broken);
        if (broken)
            assert_non_null(
                made_finding(made_outlier(&inventory, "GPU-050"), "main.bandwidth.read"));
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* A GPU that was not measured, and whose board is unknown, makes no population. */
static void unmeasured_gpus_have_none(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 350);
    for (size_t i = 0; i < COUNT; i++)
        facts_set_text(&gpus[i].board, "part", "692-001");
    gpus[3].status = GPU_CRASHED;
    facts_fini(&gpus[3].board);
    measures_fini(&gpus[3].measures);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.models[0].population_count, 0);
    assert_int_equal(inventory.total_outliers, 0);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The level of five GPUs does not change when one of them is accused: the GPU is expected to be as
 * its own board is. */
static void five_gpus_and_one_of_them_slow(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(26, 360); /* five have the other board */
    for (size_t i = 0; i < COUNT; i += 26)
        made_scale(&gpus[i], "main.bandwidth.read", 1.1);
    made_scale(&gpus[52], "main.bandwidth.read", 0.85);
    struct inventory inventory = made_judged(gpus, COUNT);
    const struct inventory_finding *read =
        made_finding(made_outlier(&inventory, "GPU-052"), "main.bandwidth.read");
    assert_non_null(read);
    assert_true(read->expected > 4350 * 1.1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A GPU that does not know its board part is judged as the others, if they have one board. */
static void unknown_part_hides_nothing(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 370);
    for (size_t i = 0; i < COUNT; i++)
        facts_set_text(&gpus[i].board, "part", "692-001");
    facts_set_unknown(&gpus[9].board, "part", "not supported");
    made_scale(&gpus[9], "main.bandwidth.read", 0.9);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_non_null(made_finding(made_outlier(&inventory, "GPU-009"), "main.bandwidth.read"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* All GPUs of a board may be bad: that is told, and nobody is accused. Its own power limit is no
 * finding. */
static void a_board_far_apart(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(10, 380);
    for (size_t i = 0; i < COUNT; i += 10) {
        made_scale(&gpus[i], "main.bandwidth.write", 0.8);
        facts_set_int(&gpus[i].config, "power_limit_w", 600);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 0);
    assert_int_equal(inventory.node_finding_count, 1);
    assert_non_null(strstr(inventory.node_findings[0].finding,
                           "all GPUs of alpha-100, board part 692-000: main.bandwidth.write is 18 "
                           "% worse"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* Without another board part, GPUs that differ are not excused. */
static void figures_alone_excuse_nobody(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 400);
    for (size_t i = 0; i < COUNT; i++) {
        facts_set_text(&gpus[i].board, "part", "692-001");
        facts_set_text(&gpus[i].board, "vbios", i < 12 ? "96.01" : "96.00");
        if (i < 12)
            made_scale(&gpus[i], "main.bandwidth.read", 0.9);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 12);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A VBIOS belongs to its board. */
static void vbios_of_a_board(void **state)
{
    (void)state;
    struct gpu_result *gpus = make_fleet(10, 500);
    for (size_t i = 0; i < COUNT; i++)
        facts_set_text(&gpus[i].board, "vbios", i % 10 ? "96.1A" : "96.1E");
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.outlier_count, 0);
    assert_null(made_watched(&inventory, "GPU-010"));
    inventory_fini(&inventory);
    facts_set_text(&gpus[20].board, "vbios", "96.1A");
    inventory = made_judged(gpus, COUNT);
    const struct inventory_finding *vbios =
        made_finding(made_outlier(&inventory, "GPU-020"), "board.vbios");
    assert_non_null(vbios);
    assert_string_equal(vbios->cause, "VBIOS 96.1A, 12 of 13 of its board part: 96.1E");
    assert_int_equal(inventory.outlier_count, 1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* One slow direction of the host link may be other work of the host. */
static void one_copy_disturbed(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 600);
    made_scale(&gpus[7], "host.bandwidth.h2d", 0.9);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.outlier_count, 0);
    assert_non_null(made_finding(made_watched(&inventory, "GPU-007"), "host.bandwidth.h2d"));
    inventory_fini(&inventory);
    made_scale(&gpus[7], "host.bandwidth.d2h", 0.9);
    inventory = made_judged(gpus, COUNT);
    assert_non_null(made_finding(made_outlier(&inventory, "GPU-007"), "host.bandwidth.h2d"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_are_no_outliers),
        cmocka_unit_test(loss_in_the_smaller_population),
        cmocka_unit_test(too_small_a_population),
        cmocka_unit_test(unmeasured_gpus_have_none),
        cmocka_unit_test(five_gpus_and_one_of_them_slow),
        cmocka_unit_test(unknown_part_hides_nothing),
        cmocka_unit_test(a_board_far_apart),
        cmocka_unit_test(figures_alone_excuse_nobody),
        cmocka_unit_test(vbios_of_a_board),
        cmocka_unit_test(one_copy_disturbed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
