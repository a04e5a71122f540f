/* Lines that return drained nodes to service: only where every GPU is known to be healthy. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "report/commands/commands.h"

/* The nodes were drained at 2026-11-17T09:54:12Z. */

struct undrain_case {
    const char *what, *list;
    const char *generated;
    enum gpu_status second; /* of the second GPU */
    bool failing;           /* the first GPU still is */
    uint32_t model_count;
    const char *line, *note;
};

#define FAILING "n1|1794909252|gpumemtopo:failing:GPU-1:a cause:-:-\n"
#define DEGRADED "n1|1794909252|gpumemtopo:degraded:GPU-1:a cause:-:-30.0%\n"
#define REASON(metric) "n1|1794909252|gpumemtopo:failing:GPU-1:a cause:" metric ":-:+1 finding\n"
#define RESUME "scontrol update NodeName=n1 State=RESUME\n"
#define AFTER "2026-11-17T09:54:13Z"
#define NOT_MEASURED "n1: not all of its GPUs were measured since it was drained\n"

static const struct undrain_case cases[] = {
    {"healthy again", FAILING, AFTER, GPU_OK, false, 2, RESUME, NULL},
    {"in two partitions", FAILING FAILING, AFTER, GPU_OK, false, 2, RESUME, NULL},
    {"nothing drained", "", AFTER, GPU_OK, false, 2, NULL, NULL},
    {"drained by hand", "n1|1794909252|disk: is: gone: gpumemtopo:failing:GPU-1\n", AFTER, GPU_OK,
     false, 2, NULL, NULL},
    {"surveyed in the same second", FAILING, "2026-11-17T09:54:12Z", GPU_OK, false, 2, NULL,
     NOT_MEASURED},
    {"surveyed before", FAILING, "2026-11-16T09:54:13Z", GPU_OK, false, 2, NULL, NOT_MEASURED},
    {"another GPU is busy", FAILING, AFTER, GPU_BUSY, false, 2, NULL, NOT_MEASURED},
    {"another GPU is misconfigured", FAILING, AFTER, GPU_OUTLIER, false, 2, RESUME, NULL},
    {"still failing", FAILING, AFTER, GPU_OK, true, 2, NULL, "n1: is still bad\n"},
    {"another node", "n2|1794909252|gpumemtopo:failing:GPU-1:a cause:-:-\n", AFTER, GPU_OK, false,
     2, NULL, "n2: not all of its GPUs were measured since it was drained\n"},
    {"the card is gone", "n1|1794909252|gpumemtopo:failing:GPU-9:a cause:-:-\n", AFTER, GPU_OK,
     false, 2, NULL,
     "n1: the GPU for which it was drained is no longer there: look at it yourself\n"},
    {"the missing card is back",
     "n1|1794909252|gpumemtopo:failing:-:1 of 2 GPUs are there, twice:-:-\n", AFTER, GPU_OK, false,
     2, RESUME, NULL},
    {"cards are still missing",
     "n1|1794909252|gpumemtopo:failing:-:1 of 3 GPUs are there, twice:-:-\n", AFTER, GPU_OK, false,
     2, NULL, "n1: GPUs are still missing\n"},
    {"a finding of the node", "n1|1794909252|gpumemtopo:degraded:-:all slow:-:-\n", AFTER, GPU_OK,
     false, 9, NULL, "n1: was drained for a finding that is not of one GPU: look at it yourself\n"},
    {"too few to compare", DEGRADED, AFTER, GPU_OK, false, 4, NULL,
     "n1: too few GPUs of its model were surveyed to tell whether it is still slower\n"},
    {"looked for again", REASON("compute.wrong_on.fp32"), AFTER, GPU_OK, false, 2, RESUME, NULL},
    {"a fact that every survey reads", REASON("health.remap_pending"), AFTER, GPU_OK, false, 2,
     RESUME, NULL},
    {"not looked for", REASON("main.march.errors"), AFTER, GPU_OK, false, 2, NULL,
     "n1: what it was drained for was not measured since: survey it with the profile that found "
     "it\n"},
    {"looked for in vain", REASON("main.latency"), AFTER, GPU_OK, false, 2, NULL,
     "n1: what it was drained for was not measured since: survey it with the profile that found "
     "it\n"},
    {"no longer slower than others", DEGRADED, AFTER, GPU_OK, false, 5, RESUME, NULL},
};

static void check_case(const struct undrain_case *c)
{
    struct inventory_value values[] = {{.metric = (char *)"compute.screen", .value = 0},
                                       {.metric = (char *)"main.latency", .value = NAN}};
    struct inventory_gpu gpus[] = {
        {.uuid = (char *)"GPU-1",
         .node = (char *)"n1",
         .model = (char *)"m",
         .values = values,
         .value_count = COUNT_OF(values)},
        {.uuid = (char *)"GPU-2", .node = (char *)"n1", .model = (char *)"m", .status = c->second},
    };
    struct inventory_model model = {.id = (char *)"m", .count = c->model_count};
    struct inventory_outlier outlier = {.uuid = (char *)"GPU-1",
                                        .node = (char *)"n1",
                                        .verdict = VERDICT_FAILING,
                                        .action = ACTION_DRAIN};
    const struct inventory inventory = {.generated = (char *)c->generated,
                                        .gpus = gpus,
                                        .gpu_count = COUNT_OF(gpus),
                                        .models = &model,
                                        .model_count = 1,
                                        .outliers = &outlier,
                                        .outlier_count = c->failing};
    struct undrain_times times = {0};
    struct strbuf lines = {0}, notes = {0};
    struct err err = {0};
    assert_int_equal(undrain_times_add(&times, &inventory, "a.yaml", &err), 0);
    assert_int_equal(undrain_times_add(&times, &inventory, "b.yaml", &err), 0);
    assert_int_equal(report_undrain(c->list, "list", &inventory, &times, &lines, &notes, &err), 0);
    if (!str_equal(lines.data, c->line) || !str_equal(notes.data, c->note))
        fail_msg("%s: %s%s", c->what, lines.data ? lines.data : "(no line) ",
                 notes.data ? notes.data : "(no note)");
    undrain_times_fini(&times);
    strbuf_fini(&lines);
    strbuf_fini(&notes);
}

static void which_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_case(&cases[i]);
}

static void bad_lists(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "n1",
        "n1|1794909252\n",
        "n1|2026-11-17T09:54:12|gpumemtopo:failing:GPU-1:a:-:-\n",
        "n1||gpumemtopo:failing:GPU-1:a:-:-\n",
        "n1 ; reboot|1794909252|gpumemtopo:failing:GPU-1:a:-:-\n",
        "ALL|1794909252|gpumemtopo:failing:GPU-1:a:-:-\n",
        "n1|99999999999999999999|gpumemtopo:failing:GPU-1:a:-:-\n",
        FAILING "\n",
    };
    const struct inventory inventory = {0};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct undrain_times times = {0};
        struct strbuf lines = {0}, notes = {0};
        struct err err = {0};
        assert_int_equal(report_undrain(lists[i], "list", &inventory, &times, &lines, &notes, &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "expected NODE|SECONDS|REASON"));
        assert_int_equal(lines.length, 0);
        strbuf_fini(&lines);
        strbuf_fini(&notes);
    }
}

/* A merged inventory does not tell when its GPUs were measured. */
static void merged_is_refused(void **state)
{
    (void)state;
    char *command[] = {(char *)"gpumemtopo-report", (char *)"merge"};
    const struct inventory merged = {
        .generated = (char *)AFTER, .command = command, .command_count = 2};
    struct undrain_times times = {0};
    struct err err = {0};
    assert_int_equal(undrain_times_add(&times, &merged, "fleet.yaml", &err), -ESTALE);
    assert_non_null(strstr(err.text, "made by merge"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_nodes),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(merged_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
