/* Allocation failures in src/judge: -ENOMEM, no leak, and results that are complete or absent. */
#include "../check.h"

#include "made.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "judge/consensus.h"
#include "judge/reference.h"
#include "sweep.h"

/* One figure of each case: the same kind, another kind, another status, new. */
static void fill(struct measures *now, struct measures *earlier)
{
    static const char *const words[] = {"texture"};
    measures_add(earlier, "l1_data.size", 65536, "B", "m");
    measures_add(now, "l1_data.size", 65536, "B", "m");
    measures_add(earlier, "l2.size", 1048576, "B", "m")->bound = MEASURE_AT_LEAST;
    measures_add(now, "l2.size", 1048576, "B", "m");
    measures_add_words(earlier, "l1_data.shared_with", words, 1, "m");
    measure_set_status(measures_add(now, "main.latency", 600, "cycles", "m"), MEASURE_NOISY, "no");
    measures_add(earlier, "main.latency", 600, "cycles", "m");
    measures_add(now, "host.latency", 600, "cycles", "m");
}

struct figures {
    struct measures now, earlier;
};

static void make_figures(void *context)
{
    struct figures *figures = context;
    fill(&figures->now, &figures->earlier);
}

static int complete(void *context)
{
    struct figures *figures = context;
    struct measures *now = &figures->now;
    int rc = consensus_complete(now, &figures->earlier);
    assert_int_equal(now->count, rc ? 4 : 5);
    for (size_t i = 0; i < now->count; i++)
        assert_non_null(now->items[i].metric);
    memory_restore();
    assert_int_equal(consensus_complete(now, &figures->earlier), 0);
    assert_int_equal(now->count, 5);
    assert_int_equal(measures_get(now, "l2.size")->bound, MEASURE_EXACT);
    assert_int_equal(measures_get(now, "main.latency")->status, MEASURE_NOISY);
    measures_fini(now);
    measures_fini(&figures->earlier);
    return rc;
}

static void completing(void **state)
{
    (void)state;
    struct figures figures = {0};
    memory_sweep(&(struct memory_sweep){.name = "consensus_complete",
                                        .prepare = make_figures,
                                        .run = complete,
                                        .context = &figures,
                                        .at_least = 5});
}

/* A fleet and its basis of comparison. */
struct task {
    struct gpu_result *gpus;
    size_t count;
    struct judge_basis basis;
    struct inventory expected;      /* of the same task without failures */
    const struct inventory *judged; /* is added `times` times and judged again */
    size_t times;
};

static void assert_same(const struct inventory *a, const struct inventory *b)
{
    struct strbuf left = {0}, right = {0};
    inventory_print(a, &left);
    inventory_print(b, &right);
    assert_false(left.failed || right.failed);
    assert_string_equal(left.data, right.data);
    strbuf_fini(&left);
    strbuf_fini(&right);
}

static int judge_results(void *context)
{
    const struct task *task = context;
    struct inventory inventory = {0};
    struct err err = {0};
    int rc = made_judge(task->gpus, task->count, true, &task->basis, &inventory, &err);
    if (!rc)
        rc = judge_missing_gpus(&task->basis, &inventory, &err);
    memory_restore();
    assert_int_equal(err.code, rc);
    if (!rc)
        assert_same(&inventory, &task->expected);
    inventory_fini(&inventory);
    return rc;
}

/* After a GPU that could not be added, adds a GPU without any values, then the first one again. The
 * GPU without values must not inherit anything from the failed attempt. */
static int add_again(void *context)
{
    const struct task *task = context;
    struct inventory inventory = {0};
    struct judge *judge = NULL;
    struct err err = {0};
    const struct gpu_result empty = {.uuid = (char *)"GPU-empty", .status = GPU_LOST};
    int rc = judge_create(&task->basis, task->count + 1, &judge, &err);
    assert_int_equal(judge != NULL, rc == 0);
    bool met = false;
    for (size_t i = 0; i < task->count && judge; i++) {
        if (!judge_add(judge, &task->gpus[i], &err))
            continue;
        rc = -ENOMEM;
        met = true;
        memory_restore();
        assert_int_equal(judge_add(judge, &empty, &err), 0);
        assert_int_equal(judge_add(judge, &task->gpus[i], &err), 0);
    }
    memory_restore();
    if (judge && !met)
        assert_int_equal(judge_add(judge, &empty, &err), 0);
    if (judge) {
        assert_int_equal(judge_finish(judge, &inventory, &err), 0);
        assert_same(&inventory, &task->expected);
    }
    judge_destroy(judge);
    inventory_fini(&inventory);
    return rc;
}

static int judge_again(void *context)
{
    const struct task *task = context;
    struct inventory inventory = {0};
    struct judge *judge = NULL;
    struct err err = {0};
    int rc = judge_create(&task->basis, task->times * task->judged->gpu_count, &judge, &err);
    for (size_t i = 0; i < task->times && !rc; i++)
        rc = judge_add_inventory(judge, task->judged, &err);
    if (!rc)
        rc = judge_finish(judge, &inventory, &err);
    assert_int_equal(err.code, rc);
    judge_destroy(judge);
    inventory_fini(&inventory);
    return rc;
}

static void judge_with_memory(struct task *task, const struct gpu_result *also)
{
    struct judge *judge = NULL;
    struct err err = {0};
    assert_int_equal(judge_create(&task->basis, task->count + 1, &judge, &err), 0);
    for (size_t i = 0; i < task->count; i++)
        assert_int_equal(judge_add(judge, &task->gpus[i], &err), 0);
    if (also)
        assert_int_equal(judge_add(judge, also, &err), 0);
    assert_int_equal(judge_finish(judge, &task->expected, &err), 0);
    judge_destroy(judge);
}

static struct reference_entry reference_entries[] = {
    {.kind = REFERENCE_HARDWARE, .key = (char *)"sms", .value = 133, .source = (char *)"s"},
    {.kind = REFERENCE_PEAK, .key = (char *)"main.bandwidth.read", .value = 4900},
    {.kind = REFERENCE_VALUE, .key = (char *)"main.latency", .value = 500, .tolerance = 0.1},
};
static char *reference_names[] = {(char *)"Alpha 100"};
static struct judge_reference reference = {.names = reference_names,
                                           .name_count = COUNT_OF(reference_names),
                                           .entries = reference_entries,
                                           .entry_count = COUNT_OF(reference_entries)};
static const struct judge_references references = {.items = &reference, .count = 1};

/* A fleet in which every stage finds something, with an earlier state of it as the baseline. */
static void judging(void **state)
{
    (void)state;
    struct gpu_result *before_gpus = made_fleet(MADE_SPOILED, 1);
    facts_set_int(&before_gpus[39].health, "pcie_replays", 1);
    struct inventory before = made_judged(before_gpus, MADE_SPOILED);
    struct task task = {
        .gpus = made_fleet(MADE_SPOILED, 1), .count = MADE_SPOILED, .basis.config = made_config()};
    made_spoil(task.gpus);
    task.basis.baseline = &before;
    task.basis.references = &references;
    free(task.gpus[4].node);
    task.gpus[4].node = str_copy("n99");
    struct err err = {0};
    assert_int_equal(made_judge(task.gpus, task.count, true, &task.basis, &task.expected, &err), 0);
    assert_int_equal(judge_missing_gpus(&task.basis, &task.expected, &err), 0);
    assert_true(task.expected.total_outliers > 5 && task.expected.watch_count > 0);
    memory_sweep(&(struct memory_sweep){.name = "made_judge",
                                        .run = judge_results,
                                        .context = &task,
                                        .at_least = 1000,
                                        .points = 450});
    inventory_fini(&task.expected);
    made_free(task.gpus, task.count);
    inventory_fini(&before);
    made_free(before_gpus, MADE_SPOILED);
}

static void adding(void **state)
{
    (void)state;
    struct task task = {.gpus = made_fleet(6, 2), .count = 6, .basis.config = made_config()};
    facts_set_text(&task.gpus[3].board, "part", "900");
    judge_with_memory(&task, &(struct gpu_result){.uuid = (char *)"GPU-empty", .status = GPU_LOST});
    memory_sweep(&(struct memory_sweep){
        .name = "judge_add", .run = add_again, .context = &task, .at_least = 50});
    inventory_fini(&task.expected);
    made_free(task.gpus, task.count);
}

static void sweep_again(const char *name, const struct gpu_result *gpus, size_t count, size_t times)
{
    struct inventory judged = made_judged(gpus, count);
    struct task task = {.basis.config = made_config(), .judged = &judged, .times = times};
    memory_sweep(&(struct memory_sweep){
        .name = name, .run = judge_again, .context = &task, .at_least = 50, .points = 400});
    inventory_fini(&judged);
}

/* One inventory with everything in it; many empty ones, so that their list is reallocated. */
static void telling(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(MADE_SPOILED, 1);
    made_spoil(gpus);
    sweep_again("judge_add_inventory", gpus, MADE_SPOILED, 1);
    sweep_again("judge_add_inventory, many", gpus, 0, 20);
    made_free(gpus, MADE_SPOILED);
}

static int read_references(void *context)
{
    (void)context;
    struct judge_references read = {0};
    struct err err = {0};
    int rc = judge_references_read(MODELS, &read, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(read.count > 0, rc == 0);
    judge_references_fini(&read);
    return rc;
}

static int read_config(void *mapping)
{
    struct judge_config config = {.false_alarms = 17};
    struct err err = {0};
    int rc = judge_config_read(mapping, &config, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(config.false_alarms == 17, rc != 0);
    judge_config_fini(&config);
    return rc;
}

static void reading(void **state)
{
    (void)state;
    struct yaml_doc *doc = NULL;
    assert_int_equal(yaml_read_file(SURVEY_CONFIG, &yaml_limits_config, &doc, NULL), 0);
    memory_sweep(&(struct memory_sweep){.name = "judge_config_read",
                                        .run = read_config,
                                        .context = (void *)yaml_get(yaml_root(doc), "judge"),
                                        .at_least = 10});
    yaml_destroy(doc);
    memory_sweep(&(struct memory_sweep){
        .name = "judge_references_read", .run = read_references, .at_least = 500, .points = 200});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(completing), cmocka_unit_test(judging),
                                       cmocka_unit_test(adding), cmocka_unit_test(telling),
                                       cmocka_unit_test(reading)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
