/* World files: reading, combining, and judging GPUs that have few peers. */
#include "../check.h"

#include "made.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/world.h"

#define HEAD                                                                                       \
    "gpumemtopo_world: {schema: 2, version: 0.1.0, first: \"2026-10\", last: \"2026-11\"}\n"
#define MODEL                                                                                      \
    "models:\n"                                                                                    \
    "  - name: Alpha 100\n"                                                                        \
    "    key: \"10de:1:1:Alpha 100\"\n"                                                            \
    "    populations:\n"
#define POPULATION(part, gpus, programs, drivers)                                                  \
    "      - part: " part "\n"                                                                     \
    "        gpus: " gpus "\n"                                                                     \
    "        programs: [" programs "]\n"                                                           \
    "        drivers: [" drivers "]\n"                                                             \
    "        figures:\n"
#define READ(n, median)                                                                            \
    "          main.bandwidth.read: {n: " n ", median: " median ", scatter: 4, spread: 8, "        \
    "quantiles: [4330, 4340, 4345, " median ", 4356, 4360, 4370]}\n"
#define WHOLE(gpus) HEAD MODEL POPULATION("900-1", gpus, "0.1.0", "580.11.01") READ(gpus, "4350")

static int read_text(const char *text, struct world *out_world, struct err *err)
{
    return world_read_text(text, strlen(text), "w", out_world, err);
}

static struct world must_read(const char *text)
{
    struct world world = {0};
    struct err err = {0};
    if (read_text(text, &world, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.text);
    return world;
}

/* What is read is printed alike. */
static void prints_what_it_read(void **state)
{
    (void)state;
    static const char text[] = HEAD MODEL POPULATION("null", "2", "0.1.0, \"0.1.0 sim\"", "")
        READ("2", "4350") POPULATION("\"900-1\"", "7", "0.1.0", "580.11.01") READ("6", "4351");
    struct world world = must_read(text);
    struct strbuf out = {0};
    world_print(&world, "0.1.0", &out);
    assert_string_equal(out.data, text);
    strbuf_fini(&out);
    world_fini(&world);
}

static const struct {
    const char *text, *said;
} bad[] = {
    {"", "empty"},
    {"models: []\n", "gpumemtopo_world"},
    {HEAD, "models"},
    {"gpumemtopo_world: {schema: 3, version: 9, first: x, last: x}\nmodels: []\n", "newer"},
    {"gpumemtopo_world: {schema: -1, version: 9, first: x, last: x}\nmodels: []\n", "schema"},
    {"gpumemtopo_world: {schema: 1, version: 9, first: x, last: x}\nmodels: []\n", "older"},
    {"gpumemtopo_world: {schema: 2, version: 9, first: now, last: 2026-11}\nmodels: []\n", "month"},
    {HEAD "models: [{name: a}]\n", "key"},
    {HEAD "models: {}\n", "expected"},
    {WHOLE("0"), "gpus"},
    {WHOLE("-5"), "gpus"},
    {WHOLE("5000000000"), "gpus"},
    {WHOLE("x"), "gpus"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0", "580.11.01") READ("6", "4350"), "5 GPUs"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0", "580.11.01") READ("5", "9999"), "quantile"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0", "580.11.01") READ("5", ".nan"), "median"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0",
                           "580.11.01") "          x: {n: 1, median: 1, scatter: "
                                        "-1, spread: 0, quantiles: [1, 1, 1, 1, "
                                        "1, 1, 1]}\n",
     "scatter"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0",
                           "580.11.01") "          x: {n: 1, median: 1, scatter: "
                                        "1, spread: 0, quantiles: [1, 1]}\n",
     "7 quantiles"},
    {HEAD MODEL POPULATION("900-1", "5", "0.1.0",
                           "580.11.01") "          x: {n: 1, host: gpu003}\n",
     "host"},
    {WHOLE("5") POPULATION("900-1", "5", "0.1.0", "580.11.01") READ("5", "4350"),
     "second population"},
    {HEAD
     "models:\n  - {name: a, key: b, populations: []}\n  - {name: a, key: b, populations: []}\n",
     "second model"},
};

static void refuses_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct world world = {.model_count = 17};
        struct err err = {0};
        assert_int_equal(read_text(bad[i].text, &world, &err), -EINVAL);
        assert_int_equal(world.model_count, 17);
        if (!strstr(err.text, bad[i].said))
            fail_msg("%zu: \"%s\" instead of \"%s\"", i, err.text, bad[i].said);
    }
}

/* Every beginning of a file is refused or read, without more. */
static void survives_cut_files(void **state)
{
    (void)state;
    static const char text[] = WHOLE("5");
    for (size_t length = 0; length < sizeof text - 1; length++) {
        struct world world = {0};
        struct err err = {0};
        if (world_read_text(text, length, "w", &world, &err) == 0)
            world_fini(&world);
    }
}

/* Quantiles of a normal distribution. */
static void set_normal(struct world_figure *figure, uint32_t n, double center, double sigma)
{
    static const double z[WORLD_QUANTILES] = {-2.3263, -1.6449, -0.6745, 0, 0.6745, 1.6449, 2.3263};
    figure->n = n;
    figure->median = center;
    figure->scatter = sigma;
    figure->spread = 1;
    for (int i = 0; i < WORLD_QUANTILES; i++)
        figure->quantiles[i] = center + sigma * z[i];
}

static struct world normal_world(uint32_t n, double center, double sigma)
{
    struct world world = {0};
    struct world_model *model = world_have_model(&world, "m", "k");
    struct world_population *population = world_have_population(model, "p");
    population->gpus = n;
    set_normal(world_have_figure(population, "f"), n, center, sigma);
    return world;
}

/* The share of both normal distributions below x. */
static double exact_share(double x, double weight, double center_b, double sigma_b)
{
    return weight * 0.5 * erfc(-(x - 100) / M_SQRT2) +
           (1 - weight) * 0.5 * erfc(-(x - center_b) / sigma_b / M_SQRT2);
}

/* Two sites, equal or apart: the combined quantiles are those of all GPUs to within 2 % of the GPUs
 * (docs/share.md). */
static void combines_quantiles(void **state)
{
    (void)state;
    static const struct {
        uint32_t a, b;
        double center, sigma;
    } cases[] = {{50, 50, 100, 1}, {50, 50, 101, 1}, {90, 10, 102, 1}, {20, 80, 100.5, 2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world a = normal_world(cases[i].a, 100, 1),
                     b = normal_world(cases[i].b, cases[i].center, cases[i].sigma);
        world_add(&a, &b);
        const struct world_figure *sum = &a.models[0].populations[0].figures[0];
        assert_int_equal(sum->n, 100);
        assert_int_equal(a.models[0].populations[0].gpus, 100);
        for (int q = 0; q < WORLD_QUANTILES; q++) {
            double share =
                exact_share(sum->quantiles[q], cases[i].a / 100.0, cases[i].center, cases[i].sigma);
            if (fabs(share - world_shares[q]) > 0.02)
                fail_msg("case %zu: quantile %g has a share of %g", i, world_shares[q], share);
        }
        double apart = cases[i].center - 100;
        assert_true(sum->scatter >= 1 && sum->scatter <= cases[i].sigma + fabs(apart));
        world_fini(&a);
        world_fini(&b);
    }
}

static void tells_programs_apart(void **state)
{
    (void)state;
    char word[WORLD_PROGRAM_MAX];
    world_program("0.1.0", "cuda", word);
    assert_string_equal(word, "0.1.0");
    world_program("0.1.0", "sim", word);
    assert_string_equal(word, "0.1.0 sim");
    assert_true(world_program_alike("0.1.0", "0.1.7"));
    assert_false(world_program_alike("0.1.0", "0.2.0"));
    assert_false(world_program_alike("0.1.0", "0.11.0"));
    assert_false(world_program_alike("0.1.0", "0.1.0 sim"));
}

/* One GPU with board part 900-1, read bandwidth 4350 GB/s times `factor`. */
static struct inventory judge_lone(const char *world_text, const char *program, double factor)
{
    struct gpu_result *gpus = made_fleet(1, 1);
    struct inventory inventory = {0};
    struct world world = must_read(world_text);
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config(), .world = &world, .program = program};
    facts_set_text(&gpus[0].board, "part", "900-1");
    made_set(&gpus[0], "main.bandwidth.read", 4350 * factor);
    assert_int_equal(made_judge(gpus, 1, true, &basis, &inventory, &err), 0);
    made_free(gpus, 1);
    world_fini(&world);
    return inventory;
}

enum listed { NOTHING, WATCHED, ACCUSED };

static const struct {
    const char *what, *world, *program;
    double factor;
    enum listed listed;
    const char *said; /* in the cause; NULL: anything */
} lone[] = {
    {"healthy", WHOLE("12"), "0.1.0", 1, NOTHING, NULL},
    {"better", WHOLE("12"), "0.1.0", 1.1, NOTHING, NULL},
    {"1.5 % slower", WHOLE("12"), "0.1.0", 0.985, WATCHED, "12 GPUs elsewhere with its board part"},
    {"5 % slower", WHOLE("12"), "0.1.0", 0.95, ACCUSED, "12 GPUs elsewhere with its board part"},
    {"5 % slower than five", WHOLE("5"), "0.1.0", 0.95, ACCUSED, NULL},
    {"5 % slower than four", WHOLE("4"), "0.1.0", 0.95, WATCHED, NULL},
    {"5 % slower, another patch version", WHOLE("12"), "0.1.9", 0.95, ACCUSED, NULL},
    {"5 % slower, another version", WHOLE("12"), "0.2.0", 0.95, NOTHING, NULL},
    {"5 % slower, simulated", WHOLE("12"), "0.1.0 sim", 0.95, NOTHING, NULL},
    {"5 % slower, another driver",
     HEAD MODEL POPULATION("900-1", "12", "0.1.0", "570.1.2") READ("12", "4350"), "0.1.0", 0.95,
     WATCHED, "another driver"},
    {"5 % slower, another part",
     HEAD MODEL POPULATION("900-2", "12", "0.1.0", "580.1.2") READ("12", "4350"), "0.1.0", 0.95,
     NOTHING, NULL},
    {"30 % slower, another part",
     HEAD MODEL POPULATION("900-2", "12", "0.1.0", "580.1.2") READ("12", "4350"), "0.1.0", 0.7,
     WATCHED, "another board part"},
    {"5 % slower, no such model", HEAD "models: []\n", "0.1.0", 0.95, NOTHING, NULL},
};

static void judges_lone_gpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lone); i++) {
        struct inventory inventory = judge_lone(lone[i].world, lone[i].program, lone[i].factor);
        /* The world alone causes no action: what is sure is told, too. */
        assert_null(made_outlier(&inventory, "GPU-000"));
        const struct inventory_outlier *told = made_watched(&inventory, "GPU-000");
        const struct inventory_evidence *finding =
            told ? made_finding(told, "main.bandwidth.read") : NULL;
        enum listed listed = !finding                           ? NOTHING
                             : told->verdict != VERDICT_UNKNOWN ? ACCUSED
                                                                : WATCHED;
        if (listed != lone[i].listed)
            fail_msg("%s: listed %d instead of %d", lone[i].what, listed, lone[i].listed);
        if (finding)
            assert_string_equal(finding->basis, "world");
        if (lone[i].said)
            assert_non_null(strstr(finding->cause, lone[i].said));
        inventory_fini(&inventory);
    }
}

/* Rates of units repeat within 0.02 %: a third of one is accused, also of a lone GPU (NVIDIA/DCGM
 * issue 122), and 2 % is watched. */
static void judges_rates_of_units(void **state)
{
    (void)state;
    static const char text[] = WHOLE(
        "12") "          compute.rate.fp32: {n: 12, median: 238.5, scatter: 0.002, spread: 0, "
              "quantiles: [238.4, 238.4, 238.5, 238.5, 238.5, 238.6, 238.6]}\n";
    static const struct {
        double rate;
        bool accused, watched;
    } rows[] = {{238.5, false, false}, {233.7, false, true}, {79.5, true, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(1, 1);
        struct inventory inventory = {0};
        struct world world = must_read(text);
        struct err err = {0};
        const struct judge_basis basis = {
            .config = made_config(), .world = &world, .program = "0.1.0"};
        facts_set_text(&gpus[0].board, "part", "900-1");
        measures_add(&gpus[0].measures, "compute.rate.fp32", rows[i].rate, "", "m");
        assert_int_equal(made_judge(gpus, 1, true, &basis, &inventory, &err), 0);
        const struct inventory_outlier *told = made_watched(&inventory, "GPU-000");
        bool found = made_finding(told, "compute.rate.fp32") != NULL;
        assert_int_equal(found, rows[i].accused || rows[i].watched);
        assert_true(!found || (told->verdict == VERDICT_DEGRADED) == rows[i].accused);
        inventory_fini(&inventory);
        world_fini(&world);
        made_free(gpus, 1);
    }
}

static bool tells(const struct inventory *inventory, const char *text)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (strstr(inventory->node_findings[i].finding, text))
            return true;
    return false;
}

/* The inventory says why a GPU was not compared. */
static void says_why_not(void **state)
{
    (void)state;
    struct inventory other = judge_lone(WHOLE("12"), "0.2.0", 1);
    struct inventory none = judge_lone(HEAD "models: []\n", "0.1.0", 1);
    struct inventory fine = judge_lone(WHOLE("12"), "0.1.0", 1);
    assert_true(tells(&other, "another version"));
    assert_true(tells(&none, "no --world file has this model"));
    assert_false(tells(&fine, "world"));
    assert_false(tells(&fine, "too few"));
    inventory_fini(&other);
    inventory_fini(&none);
    inventory_fini(&fine);
}

/* A fleet judges itself: the world does not change its verdicts. */
/* Two to four GPUs with the world are told of at most; five accuse. */
static void few_are_told(void **state)
{
    (void)state;
    for (size_t count = 2; count <= 5; count++) {
        struct gpu_result *gpus = made_fleet_of(count, 3, 0, 0.0005);
        struct world world = must_read(WHOLE("12"));
        struct inventory inventory = {0};
        struct err err = {0};
        const struct judge_basis basis = {
            .config = made_config(), .world = &world, .program = "0.1.0"};
        for (size_t i = 0; i < count; i++) {
            facts_set_text(&gpus[i].board, "part", "900-1");
            made_set(&gpus[i], "main.bandwidth.read", i ? 4260 + 45 * (double)i : 2600);
        }
        assert_int_equal(made_judge(gpus, count, true, &basis, &inventory, &err), 0);
        assert_int_equal(made_outlier(&inventory, "GPU-000") != NULL, count == 5);
        assert_int_equal(made_watched(&inventory, "GPU-000") != NULL, count < 5);
        inventory_fini(&inventory);
        world_fini(&world);
        made_free(gpus, count);
    }
}

static void leaves_fleets_alone(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(16, 3);
    struct world world = must_read(WHOLE("12"));
    struct inventory inventory = {0};
    struct err err = {0};
    const struct judge_basis basis = {.config = made_config(), .world = &world};
    for (size_t i = 0; i < 16; i++) {
        facts_set_text(&gpus[i].board, "part", "900-1");
        made_scale(&gpus[i], "main.bandwidth.read", 0.8);
    }
    assert_int_equal(made_judge(gpus, 16, true, &basis, &inventory, &err), 0);
    assert_int_equal(inventory.total_outliers, 0);
    assert_int_equal(inventory.watch_count, 0);
    inventory_fini(&inventory);
    world_fini(&world);
    made_free(gpus, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_what_it_read),   cmocka_unit_test(refuses_bad_files),
        cmocka_unit_test(survives_cut_files),    cmocka_unit_test(combines_quantiles),
        cmocka_unit_test(tells_programs_apart),  cmocka_unit_test(judges_lone_gpus),
        cmocka_unit_test(judges_rates_of_units), cmocka_unit_test(says_why_not),
        cmocka_unit_test(few_are_told),          cmocka_unit_test(leaves_fleets_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
