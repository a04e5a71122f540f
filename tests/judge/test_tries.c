/* GPUs that were tried twice: who crashes or hangs twice is failing, who is measured at last is
 * watched. */
#include "../check.h"

#include "made.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { COUNT = 16 };

/* Gives the GPU a first try and a last status. A GPU that was not measured has no figures. */
static void try_twice(struct gpu_result *gpu, enum gpu_status first, enum gpu_status last)
{
    gpu->run.first_status = first;
    gpu->run.first_reason = first == GPU_OK ? NULL : str_copy("signal 11 during l2.size");
    gpu->status = last;
    if (last == GPU_OK)
        return;
    gpu->reason = str_copy("signal 7 during warm-up");
    measures_fini(&gpu->measures);
}

enum place { OUTLIER, WATCH, NOWHERE };

static void one_gpu(void **state)
{
    (void)state;
    static const struct {
        enum gpu_status first, last;
        enum place place;
        const char *metric, *cause;
    } rows[] = {
        {GPU_CRASHED, GPU_CRASHED, OUTLIER, "worker.crash",
         "worker crashed: signal 11 during l2.size; second try: signal 7 during warm-up"},
        {GPU_TIMED_OUT, GPU_TIMED_OUT, OUTLIER, "worker.hang", "worker hung: signal 11"},
        {GPU_CRASHED, GPU_TIMED_OUT, OUTLIER, "worker.hang", "worker crashed: signal 11"},
        {GPU_CRASHED, GPU_OK, WATCH, "worker.crash",
         "worker crashed once: signal 11 during l2.size"},
        {GPU_TIMED_OUT, GPU_OK, WATCH, "worker.hang", "worker hung once"},
        {GPU_FAILED, GPU_OK, WATCH, "worker.failure", "worker failed once"},
        {GPU_FAILED, GPU_FAILED, WATCH, "worker.failure", "worker failed"},
        {GPU_CRASHED, GPU_FAILED, WATCH, "worker.failure", "worker crashed"},
        {GPU_FAILED, GPU_CRASHED, WATCH, "worker.crash", "worker failed"},
        {GPU_CRASHED, GPU_BUSY, WATCH, "worker.failure", "worker crashed"},
        {GPU_OK, GPU_CRASHED, NOWHERE, NULL, NULL}, /* was killed: it had one try */
        {GPU_OK, GPU_TIMED_OUT, NOWHERE, NULL, NULL},
        {GPU_OK, GPU_BUSY, NOWHERE, NULL, NULL},
        {GPU_OK, GPU_LOST, NOWHERE, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        try_twice(&gpus[5], rows[i].first, rows[i].last);
        struct inventory inventory = made_judged(gpus, COUNT);
        const struct inventory_outlier *accused = made_outlier(&inventory, "GPU-005");
        const struct inventory_outlier *watched = made_watched(&inventory, "GPU-005");
        enum place place = accused ? OUTLIER : watched ? WATCH : NOWHERE;
        if (place != rows[i].place)
            fail_msg("row %zu: listed in %d", i, place);
        assert_int_equal(inventory.total_outliers, place == OUTLIER);
        assert_int_equal(inventory.node_finding_count, 0);
        if (accused)
            assert_int_equal(accused->verdict, VERDICT_FAILING);
        if (place != NOWHERE) {
            const struct inventory_evidence *finding =
                made_finding(accused ? accused : watched, rows[i].metric);
            assert_non_null(finding);
            assert_string_equal(finding->basis, "rule");
            if (strncmp(finding->cause, rows[i].cause, strlen(rows[i].cause)) != 0)
                fail_msg("row %zu: %s", i, finding->cause);
        }
        assert_int_equal(inventory.gpus[5].status, rows[i].last);
        assert_int_equal(inventory.gpus[5].run.first_status, rows[i].first);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* What the driver reports of a GPU that could not be measured twice counts. */
static void reported_faults(void **state)
{
    (void)state;
    static const struct {
        enum gpu_status first, last;
        bool accused;
    } rows[] = {
        {GPU_FAILED, GPU_FAILED, true},     {GPU_CRASHED, GPU_FAILED, true},
        {GPU_CRASHED, GPU_CRASHED, true},   {GPU_OK, GPU_FAILED, false},
        {GPU_OK, GPU_LOST, false},          {GPU_CRASHED, GPU_LOST, false},
        {GPU_CRASHED, GPU_BUSY, false},     {GPU_TIMED_OUT, GPU_TIMED_OUT, true},
        {GPU_CRASHED, GPU_TIMED_OUT, true}, {GPU_OK, GPU_TIMED_OUT, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 1);
        try_twice(&gpus[5], rows[i].first, rows[i].last);
        facts_set_bool(&gpus[5].health, "remap_failed", true);
        struct inventory inventory = made_judged(gpus, COUNT);
        const struct inventory_outlier *accused = made_outlier(&inventory, "GPU-005");
        if (!accused == rows[i].accused ||
            (accused && !made_finding(accused, "health.remap_failed")))
            fail_msg("row %zu", i);
        assert_int_equal(inventory.gpus[5].status, rows[i].last);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* A time-out accuses nobody where most GPUs exceed the limit. A crash does, unless no GPU of
 * several nodes could be measured. */
static void many_gpus(void **state)
{
    (void)state;
    static const struct {
        size_t fleet, from, to; /* GPUs from .. to - 1 fail */
        enum gpu_status status;
        size_t outliers;
    } rows[] = {
        {16, 4, 8, GPU_TIMED_OUT, 4},  /* a whole node, beside twelve that were measured */
        {16, 2, 6, GPU_TIMED_OUT, 4},  /* half of two nodes */
        {16, 0, 12, GPU_TIMED_OUT, 0}, /* only one node was measured: the limit is short */
        {16, 1, 11, GPU_TIMED_OUT, 0}, {16, 0, 16, GPU_TIMED_OUT, 0}, {4, 0, 1, GPU_TIMED_OUT, 1},
        {4, 0, 2, GPU_TIMED_OUT, 2},   {4, 0, 3, GPU_TIMED_OUT, 0},   {4, 0, 4, GPU_TIMED_OUT, 0},
        {4, 0, 4, GPU_CRASHED, 4}, /* one node */
        {1, 0, 1, GPU_CRASHED, 1},     {1, 0, 1, GPU_TIMED_OUT, 0},   {16, 0, 15, GPU_CRASHED, 15},
        {16, 0, 16, GPU_CRASHED, 0}, /* the program, or what it was given */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(rows[i].fleet, 1);
        for (size_t k = rows[i].from; k < rows[i].to; k++)
            try_twice(&gpus[k], rows[i].status, rows[i].status);
        struct inventory inventory = made_judged(gpus, rows[i].fleet);
        if (inventory.total_outliers != rows[i].outliers)
            fail_msg("row %zu: %u outliers", i, inventory.total_outliers);
        assert_int_equal(inventory.outlier_count, rows[i].outliers);
        inventory_fini(&inventory);
        made_free(gpus, rows[i].fleet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpu),
        cmocka_unit_test(reported_faults),
        cmocka_unit_test(many_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
