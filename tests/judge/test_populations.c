/* Models whose GPUs have different boards: figures are judged among GPUs with the same board part.
 */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

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
        const struct inventory_evidence *lost = made_finding(found, "main.bandwidth.read");
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
    const struct inventory_evidence *read =
        made_finding(made_outlier(&inventory, "GPU-052"), "main.bandwidth.read");
    assert_non_null(read);
    assert_true(read->expected > 4350 * 1.1);
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A GPU that does not know its board part is judged as the others of its kind, if they have one
 * board. */
static void unknown_part_hides_nothing(void **state)
{
    (void)state;
    static const char *const modes[][2] = {
        {NULL, NULL}, {"none", "none"}, {"passthrough", "passthrough"}, {"none", "passthrough"}};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct gpu_result *gpus = made_fleet(COUNT, 370);
        for (size_t i = 0; i < COUNT; i++) {
            facts_set_text(&gpus[i].board, "part", "692-001");
            if (modes[m][i % 2])
                facts_set_text(&gpus[i].config, "virtualization", modes[m][i % 2]);
        }
        facts_set_unknown(&gpus[9].board, "part", "not supported");
        made_scale(&gpus[9], "main.bandwidth.read", 0.95);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_non_null(made_finding(made_outlier(&inventory, "GPU-009"), "main.bandwidth.read"));
        assert_int_equal(inventory.models[0].population_count,
                         str_equal(modes[m][0], modes[m][1]) ? 0 : 2);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
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

static const char *const scattering[] = {"main.latency", "main.bandwidth.read",
                                         "main.bandwidth.write", "host.bandwidth.h2d"};

/* GPUs with clocks and scatter as the real H200 cards; every `every`th has the other board, with
 * `times` the scatter. */
static struct gpu_result *make_real(size_t count, size_t every, double times, uint64_t seed)
{
    struct gpu_result *gpus = made_fleet_of(count, seed, 0.001, 0.002);
    struct rng rng;
    rng_init(&rng, seed, "boards");
    for (size_t i = 0; i < count; i++) {
        facts_set_text(&gpus[i].board, "part", "692-001");
        if (i % every)
            continue;
        give_other_board(&gpus[i]);
        for (size_t k = 0; k < COUNT_OF(scattering); k++)
            made_scale(&gpus[i], scattering[k], 1 + 0.002 * times * rng_normal(&rng));
    }
    return gpus;
}

/* 5, 10, 20 and 50 % have the other board: nobody is named for it, and 3 % less in one of these is
 * found. */
static void three_percent_on_the_other_board(void **state)
{
    (void)state;
    enum { ALL = 160 };
    static const size_t shares[] = {20, 10, 5, 2};
    for (uint64_t seed = 0; seed < 6 * COUNT_OF(shares); seed++) {
        size_t every = shares[seed % COUNT_OF(shares)];
        struct gpu_result *gpus = make_real(ALL, every, 0, 700 + seed);
        struct inventory inventory = made_judged(gpus, ALL);
        assert_int_equal(inventory.outlier_count + inventory.watch_count, 0);
        assert_int_equal(inventory.node_finding_count, 0);
        inventory_fini(&inventory);
        made_scale(&gpus[2 * every], "main.bandwidth.read", 0.97);
        inventory = made_judged(gpus, ALL);
        assert_int_equal(inventory.outlier_count, 1);
        assert_non_null(
            made_finding(made_outlier(&inventory, gpus[2 * every].uuid), "main.bandwidth.read"));
        inventory_fini(&inventory);
        made_free(gpus, ALL);
    }
}

/* A board that scatters little is judged by its own scatter, whether there are many or few of it.
 */
static void narrow_beside_wide(void **state)
{
    (void)state;
    static const struct {
        size_t count, every, slow;
        double left;
    } rows[] = {{160, 2, 31, 0.97}, {60, 5, 31, 0.97}, {32, 2, 7, 0.95}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct gpu_result *gpus = make_real(rows[i].count, rows[i].every, 5, 800 + seed);
            made_scale(&gpus[rows[i].slow], "main.bandwidth.read", rows[i].left);
            struct inventory inventory = made_judged(gpus, rows[i].count);
            assert_int_equal(inventory.outlier_count, 1);
            assert_non_null(made_finding(made_outlier(&inventory, gpus[rows[i].slow].uuid),
                                         "main.bandwidth.read"));
            inventory_fini(&inventory);
            made_free(gpus, rows[i].count);
        }
}

/* The scatter of a few GPUs is uncertain: nobody is accused if it is ten times the usual one. */
static void few_that_scatter(void **state)
{
    (void)state;
    static const size_t shares[] = {40, 32, 20, 10}; /* three, four, six and twelve GPUs */
    size_t accused = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct gpu_result *gpus = make_real(120, shares[seed % COUNT_OF(shares)], 10, 900 + seed);
        struct inventory inventory = made_judged(gpus, 120);
        accused += inventory.outlier_count;
        inventory_fini(&inventory);
        made_free(gpus, 120);
    }
    assert_int_equal(accused, 0);
}

/* Four GPUs of each board do not show their scatter. One that is far worse than the other three is
 * watched. */
static void two_boards_of_four(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct gpu_result *gpus = make_real(8, 2, 0, 1100 + seed);
        struct inventory inventory = made_judged(gpus, 8);
        assert_int_equal(inventory.outlier_count + inventory.watch_count, 0);
        inventory_fini(&inventory);
        made_scale(&gpus[2 + seed % 4], "main.bandwidth.read", 0.9);
        inventory = made_judged(gpus, 8);
        const char *uuid = gpus[2 + seed % 4].uuid;
        const struct inventory_outlier *named = made_outlier(&inventory, uuid);
        assert_non_null(
            made_finding(named ? named : made_watched(&inventory, uuid), "main.bandwidth.read"));
        assert_int_equal(inventory.outlier_count + inventory.watch_count, 1);
        inventory_fini(&inventory);
        made_free(gpus, 8);
    }
}

/* Many GPUs that only their figures separate, by as much as boards may differ: nobody is accused,
 * and all are watched and named. */
static void groups_without_a_board(void **state)
{
    (void)state;
    static const size_t shares[] = {20, 10, 5, 3};
    for (uint64_t seed = 0; seed < 3 * COUNT_OF(shares); seed++) {
        size_t every = shares[seed % COUNT_OF(shares)], worse = 0;
        struct gpu_result *gpus = made_fleet_of(COUNT, 1200 + seed, 0.001, 0.002);
        for (size_t i = 0; i < COUNT; i += every, worse++)
            made_scale(&gpus[i], "main.bandwidth.read", 0.975);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.outlier_count, 0);
        assert_int_equal(inventory.watch_count, worse);
        assert_int_equal(inventory.node_finding_count, 1);
        assert_int_equal(inventory.node_findings[0].gpu_count, worse);
        assert_non_null(strstr(inventory.node_findings[0].finding,
                               "the model is divided, cause unknown: nobody is flagged"));
        assert_non_null(made_finding(made_watched(&inventory, "GPU-000"), "main.bandwidth.read"));
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
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
    const struct inventory_evidence *vbios =
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

/* Some of 48 GPUs are of another kind: every second node, or the first `few`. Their host links are
 * slower by the factor; main memory is as that of all. */
struct kind_case {
    const char *key, *word;
    size_t few; /* 0: every second node */
    double host, latency;
    /* GPU-001 is of that kind; then its bandwidth of main memory, or of the host link, falls. */
    double own_main, own_host;
    const char *accused_of; /* NULL: nobody */
    const char *by, *value; /* of the second population that is listed; NULL: any */
};

static void judge_kind(const struct kind_case *c, size_t number)
{
    enum { GPUS = 48 };
    struct gpu_result *gpus = made_fleet(GPUS, 700 + number);
    for (size_t i = 0; i < GPUS; i++) {
        bool other = c->few ? i < c->few : i / MADE_PER_NODE % 2 == 0;
        facts_set_text(&gpus[i].config, c->key,
                       strcmp(c->key, "virtualization") == 0 ? "none" : "off");
        if (!other)
            continue;
        facts_set_text(&gpus[i].config, c->key, c->word);
        made_scale(&gpus[i], "host.bandwidth.h2d", c->host);
        made_scale(&gpus[i], "host.bandwidth.d2h", c->host);
        made_scale(&gpus[i], "main.latency", c->latency);
    }
    made_scale(&gpus[1], "main.bandwidth.read", c->own_main);
    made_scale(&gpus[1], "host.bandwidth.h2d", c->own_host);
    made_scale(&gpus[1], "host.bandwidth.d2h", c->own_host);
    struct inventory inventory = made_judged(gpus, GPUS);
    const struct inventory_model *model = &inventory.models[0];
    if (inventory.total_outliers != (c->accused_of ? 1 : 0) || inventory.node_finding_count)
        fail_msg("case %zu: %u outliers, %zu places: %s", number, inventory.total_outliers,
                 inventory.node_finding_count,
                 inventory.node_finding_count ? inventory.node_findings[0].finding : "");
    if (c->accused_of)
        assert_non_null(made_finding(made_outlier(&inventory, "GPU-001"), c->accused_of));
    assert_int_equal(model->population_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(model->populations[i].by, c->by);
    bool first = strcmp(model->populations[0].value, c->value) == 0;
    assert_string_equal(model->populations[first ? 0 : 1].value, c->value);
    inventory_fini(&inventory);
    made_free(gpus, GPUS);
}

static void kinds_are_no_outliers(void **state)
{
    (void)state;
#define PASSTHROUGH "virtualization", "passthrough"
#define BY_PASSTHROUGH "config.virtualization", "virtualization passthrough"
#define CONFIDENTIAL "confidential_computing", "on"
#define BY_CONFIDENTIAL "config.confidential_computing", "confidential computing on"
    static const struct kind_case cases[] = {
        {PASSTHROUGH, 0, 1, 1, 1, 1, NULL, BY_PASSTHROUGH},
        {PASSTHROUGH, 0, 0.8, 1, 1, 1, NULL, BY_PASSTHROUGH},
        {PASSTHROUGH, 2, 0.8, 1, 1, 1, NULL, BY_PASSTHROUGH},
        {CONFIDENTIAL, 0, 0.15, 1, 1, 1, NULL, BY_CONFIDENTIAL},
        {CONFIDENTIAL, 2, 0.15, 1, 1, 1, NULL, BY_CONFIDENTIAL},
        {CONFIDENTIAL, 4, 0.15, 1, 1, 1, NULL, BY_CONFIDENTIAL},
        /* A fault of the GPU is found whatever its kind is; one of its link, among its like. */
        {PASSTHROUGH, 0, 0.8, 1, 0.8, 1, "main.bandwidth.read", BY_PASSTHROUGH},
        {PASSTHROUGH, 2, 0.8, 1, 0.8, 1, "main.bandwidth.read", BY_PASSTHROUGH},
        {CONFIDENTIAL, 0, 0.15, 1, 0.8, 1, "main.bandwidth.read", BY_CONFIDENTIAL},
        {CONFIDENTIAL, 2, 0.15, 1, 0.8, 1, "main.bandwidth.read", BY_CONFIDENTIAL},
        {CONFIDENTIAL, 0, 0.15, 1, 1, 0.6, "host.bandwidth.h2d", BY_CONFIDENTIAL},
        {CONFIDENTIAL, 2, 0.15, 1, 1, 0.6, NULL, BY_CONFIDENTIAL},
        {"confidential_computing", "protected_pcie", 0, 0.15, 1, 1, 1, NULL,
         "config.confidential_computing", "confidential computing protected_pcie"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        judge_kind(&cases[i], i);
}

/* MIG instances of seven places, of which one is 8 % farther from its memory: no fault. One that
 * lost a fifth of its bandwidth is found; of two GPUs one that lost half. On one GPU alone nobody
 * knows what places are like: it is watched. */
static void instances(void **state)
{
    (void)state;
    enum { PLACES = 7 };
    static const struct {
        size_t gpus;
        double far, broken;
    } cases[] = {{20, 1.08, 1}, {20, 1.08, 0.8}, {1, 1.04, 1}, {1, 1, 0.5}, {2, 1.04, 0.5}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        size_t count = cases[c].gpus * PLACES;
        struct gpu_result *gpus = made_fleet_of(count, 800 + c, 0, 0.003);
        for (size_t i = 0; i < count; i++) {
            facts_set_bool(&gpus[i].config, "mig", true);
            facts_set_text(&gpus[i].config, "health_of", "whole GPU");
            facts_set_int(&gpus[i].config, "mig_gpu_instance", (int64_t)(7 + i % PLACES));
            if (i % PLACES == 3)
                made_scale(&gpus[i], "main.latency", cases[c].far);
        }
        made_scale(&gpus[5], "main.bandwidth.read", cases[c].broken);
        facts_set_int(&gpus[2].health, "ecc_uncorrected_volatile", 1);
        struct inventory inventory = made_judged(gpus, count);
        bool broken = cases[c].broken < 1;
        bool alone = cases[c].gpus == 1;
        if (inventory.total_outliers != (broken && !alone ? 2 : 1) ||
            (broken && !made_finding(alone ? made_watched(&inventory, "GPU-005")
                                           : made_outlier(&inventory, "GPU-005"),
                                     "main.bandwidth.read")))
            fail_msg("case %zu: %u outliers", c, inventory.total_outliers);
        const struct inventory_evidence *error =
            made_finding(made_outlier(&inventory, "GPU-002"), "health.ecc_uncorrected_volatile");
        assert_string_equal(error->cause, "uncorrectable ECC errors since the driver was loaded: 1 "
                                          "(of the whole GPU)");
        inventory_fini(&inventory);
        made_free(gpus, count);
    }
}

/* Its own past counts only if it was of the same kind then. */
static void kind_has_changed(void **state)
{
    (void)state;
    enum { GPUS = 16 };
    static const char *const words[] = {"off", "on"};
    for (size_t c = 0; c < 4; c++) {
        struct gpu_result *gpus = made_fleet(GPUS, 900);
        facts_set_text(&gpus[3].config, "confidential_computing", words[c / 2]);
        struct inventory then = made_judged(gpus, GPUS), now = {0};
        const struct judge_basis basis = {
            .config = made_config(), .baseline = &then, .drift_only = true};
        facts_set_text(&gpus[3].config, "confidential_computing", words[c % 2]);
        made_scale(&gpus[3], "host.bandwidth.h2d", 0.4);
        made_scale(&gpus[3], "host.bandwidth.d2h", 0.4);
        assert_int_equal(made_judge(gpus, GPUS, false, &basis, &now, NULL), 0);
        bool changed = c / 2 != c % 2;
        const struct inventory_outlier *found = made_outlier(&now, "GPU-003");
        if ((found != NULL) == changed)
            fail_msg("case %zu: %s", c, found ? found->evidence[0].cause : "not found");
        if (changed)
            assert_non_null(
                made_finding(made_watched(&now, "GPU-003"), "config.confidential_computing"));
        inventory_fini(&now);
        inventory_fini(&then);
        made_free(gpus, GPUS);
    }
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
        cmocka_unit_test(three_percent_on_the_other_board),
        cmocka_unit_test(narrow_beside_wide),
        cmocka_unit_test(few_that_scatter),
        cmocka_unit_test(two_boards_of_four),
        cmocka_unit_test(groups_without_a_board),
        cmocka_unit_test(figures_alone_excuse_nobody),
        cmocka_unit_test(vbios_of_a_board),
        cmocka_unit_test(one_copy_disturbed),
        cmocka_unit_test(kinds_are_no_outliers),
        cmocka_unit_test(instances),
        cmocka_unit_test(kind_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
