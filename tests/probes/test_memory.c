/* Allocation failures while a GPU is measured: the run ends with -ENOMEM and leaks nothing. A run
 * that succeeds gives the same figures as one without failures. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/sim/sim.h"
#include "probes/probes.h"
#include "sweep.h"

struct task {
    struct sim_model *model;
    enum probe_profile profile;
    struct measures expected; /* of the same run without failures */
};

static bool same(const struct measures *a, const struct measures *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct measure *x = &a->items[i], *y = measures_get(b, x->metric);
        if (!y || x->status != y->status ||
            (measure_status_valued(x->status) && (x->value != y->value || x->spread != y->spread)))
            return false;
    }
    return a->count == b->count;
}

static int measure(const struct task *task, struct measures *out_measures)
{
    struct device *device = NULL;
    struct probe_selection selection = {0};
    struct err err = {0};
    const struct probe_options options = {.profile = task->profile, .seed = 5};
    int rc = sim_open(task->model, NULL, 0, 5, &device, &err);
    if (!rc)
        rc = probes_select(task->profile, NULL, &selection, &err);
    if (!rc)
        rc = probes_run(device, &selection, &options, NULL, out_measures, &err);
    assert_int_equal(err.code, rc);
    free(selection.indices);
    device_destroy(device);
    return rc;
}

static int run(void *context)
{
    const struct task *task = context;
    struct measures measures = {0};
    int rc = measure(task, &measures);
    if (!rc)
        assert_true(same(&measures, &task->expected));
    for (size_t i = 0; i < measures.count; i++)
        assert_non_null(measures.items[i].metric);
    measures_fini(&measures);
    return rc;
}

static const char *model_path;
static enum probe_profile profile;
static size_t points;

static void probing(void **state)
{
    (void)state;
    struct task task = {.profile = profile};
    assert_int_equal(sim_model_read_file(model_path, &task.model, NULL), 0);
    assert_int_equal(measure(&task, &task.expected), 0);
    memory_sweep(&(struct memory_sweep){.name = model_path,
                                        .run = run,
                                        .context = &task,
                                        .at_least = 1000,
                                        .points = points,
                                        .forks = true});
    measures_fini(&task.expected);
    sim_model_destroy(task.model);
}

/* usage: test_probes_memory MODEL PROFILE POINTS (how many allocations to fail) */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(probing)};
    if (argc != 4 || probe_profile_parse(argv[2], &profile))
        return 2;
    model_path = argv[1];
    points = strtoul(argv[3], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
