/* Allocation failures in src/cpd: -ENOMEM with outputs untouched. Order statistics allocate
 * nothing. */
#include "../check.h"

#include <errno.h>
#include <stdlib.h>

#include "cpd/cpd.h"
#include "series.h"
#include "sweep.h"

enum { POINTS = 200, SPLIT = 80 };

struct task {
    double *series;
    size_t n;
    enum cpd_cost cost;
};

static int single(void *context)
{
    const struct task *task = context;
    size_t split = 17;
    double gain = 17;
    int rc = cpd_single(task->series, task->n, task->cost, &split, &gain);
    if (rc)
        assert_true(split == 17 && gain == 17);
    return rc;
}

static int ks(void *context)
{
    const struct task *task = context;
    struct cpd_ks out = {.statistic = 17};
    int rc = cpd_ks_test(task->series, task->n, task->n / 2, 0.01, &out);
    assert_int_equal(out.statistic == 17, rc != 0);
    return rc;
}

static int test(void *context)
{
    const struct task *task = context;
    struct cpd_change change = {.split = 17, .step = 17};
    const struct cpd_options options = {.cost = task->cost, .alpha = 0.01, .seed = 1};
    int rc = cpd_test(task->series, task->n, &options, &change);
    assert_int_equal(change.split == 17 && change.step == 17, rc != 0);
    return rc;
}

static void sweep_all(struct task *task)
{
    static const struct {
        const char *name;
        int (*run)(void *context);
        size_t at_least;
    } operations[] = {
        {"cpd_single", single, 1},
        {"cpd_ks_test", ks, 1},
        {"cpd_test", test, 2},
    };
    for (size_t i = 0; i < COUNT_OF(operations); i++)
        memory_sweep(&(struct memory_sweep){.name = operations[i].name,
                                            .run = operations[i].run,
                                            .context = task,
                                            .at_least = operations[i].at_least});
}

/* Series that take different code paths: ranks, two levels, ties, few values. */
static void change_points(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1, "memory");
    struct task steps = {.series = series_step(POINTS, SPLIT, 5, &rng), .n = POINTS};
    struct task tied = {
        .series = series_flat(POINTS, NOISE_TIED, &rng), .n = POINTS, .cost = CPD_COST_RANK};
    struct task few = {.series = steps.series + SPLIT - 12, .n = 24};
    struct task levels = {.series = series_step(POINTS, SPLIT, 1000, &rng), .n = POINTS};
    sweep_all(&steps);
    sweep_all(&tied);
    sweep_all(&few);
    sweep_all(&levels);
    free(steps.series);
    free(tied.series);
    free(levels.series);
}

/* Callers cannot tell a NaN of a failed allocation from a measured one. */
static void order_statistics(void **state)
{
    (void)state;
    static const double values[] = {4, 1, 3, 2, 100};
    memory_limit(0, MEMORY_ENDS);
    assert_true(cpd_median(values, COUNT_OF(values)) == 3);
    assert_true(cpd_mad(values, COUNT_OF(values)) == 1);
    assert_true(cpd_quantile(values, COUNT_OF(values), 0.125) == 1.5);
    assert_true(cpd_mean(values, COUNT_OF(values)) == 22);
    memory_restore();
    assert_false(memory_failed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(change_points),
                                       cmocka_unit_test(order_statistics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
