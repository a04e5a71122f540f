/* The single split of least cost: by hand, against brute force, and the odd inputs. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

enum { VALUES_MAX = 12 };

struct row {
    const char *name;
    size_t n;
    double values[VALUES_MAX];
    enum cpd_cost cost;
    size_t split;
    double gain;
};

static const struct row rows[] = {
    {"empty", 0, {0}, CPD_COST_MEAN, 0, 0.0},
    {"one", 1, {5}, CPD_COST_RANK, 0, 0.0},
    {"two equal", 2, {5, 5}, CPD_COST_MEAN, 0, 0.0},
    {"two", 2, {5, 6}, CPD_COST_MEAN, 1, 1.0},
    {"two, ranks", 2, {5, 6}, CPD_COST_RANK, 1, 1.0},
    {"constant, mean not exact", 3, {0.1, 0.1, 0.1}, CPD_COST_MEAN, 0, 0.0},
    {"thesis 3.3.4", 8, {1, 1, 1, 1, 1.3, 1.3, 1.3, 1.3}, CPD_COST_MEAN, 4, 1.0},
    {"first of equal splits", 3, {0, 1, 0}, CPD_COST_MEAN, 1, 0.25},
    {"large offset", 6, {1e15, 1e15, 1e15 + 1, 1e15 + 1, 1e15 + 1, 1e15 + 1}, CPD_COST_MEAN, 2, 1},
    {"huge", 4, {-1.7e308, -1.7e308, 1.7e308, 1.7e308}, CPD_COST_MEAN, 2, 1.0},
    {"tiny", 4, {0, 0, 5e-324, 5e-324}, CPD_COST_MEAN, 2, 1.0},
    {"outlier, mean", 8, {1, 900, 1, 1, 2, 2, 2, 2}, CPD_COST_MEAN, 2, 0.4278},
    {"outlier, ranks", 8, {1, 900, 1, 1, 2, 2, 2, 2}, CPD_COST_RANK, 4, 0.2286},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        size_t split = 99;
        double gain = 99.0;
        assert_int_equal(cpd_single(row->values, row->n, row->cost, &split, &gain), 0);
        if (split != row->split || fabs(gain - row->gain) > 1e-3)
            fail_msg("%s: split %zu gain %g", row->name, split, gain);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        double series[] = {1, 2, bad[i], 3};
        size_t split = 99;
        double gain = 99.0;
        assert_int_equal(cpd_single(series, 4, CPD_COST_MEAN, &split, &gain), -EDOM);
        assert_int_equal(cpd_single(series, 4, CPD_COST_RANK, &split, &gain), -EDOM);
        assert_int_equal(split, 99);
        assert_true(gain == 99.0);
    }
}

static void mid_ranks(const double *values, size_t n, double *out_ranks)
{
    for (size_t i = 0; i < n; i++) {
        out_ranks[i] = 0.5;
        for (size_t j = 0; j < n; j++)
            out_ranks[i] += values[j] < values[i] ? 1.0 : values[j] == values[i] ? 0.5 : 0.0;
    }
}

static void check_against_brute_force(const double *series, size_t n, enum cpd_cost cost)
{
    double ranks[64];
    const double *values = series;
    if (cost == CPD_COST_RANK) {
        mid_ranks(series, n, ranks);
        values = ranks;
    }
    double total = series_cost(values, 0, n);
    double best = INFINITY;
    for (size_t s = 1; s < n; s++)
        best = fmin(best, series_cost(values, 0, s) + series_cost(values, s, n));
    size_t split;
    double gain;
    assert_int_equal(cpd_single(series, n, cost, &split, &gain), 0);
    if (total == 0.0) {
        assert_int_equal(split, 0);
        return;
    }
    assert_true(fabs(gain - (1.0 - best / total)) < 1e-9);
    double own = series_cost(values, 0, split) + series_cost(values, split, n);
    assert_true(own <= best + 1e-9 * total);
}

static void test_brute_force(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 2, "single");
    for (int round = 0; round < 300; round++) {
        size_t n = 2 + rng_below(&rng, 40);
        double *series = series_flat(n, (enum series_noise)(round % NOISE_KINDS), &rng);
        assert_non_null(series);
        check_against_brute_force(series, n, CPD_COST_MEAN);
        check_against_brute_force(series, n, CPD_COST_RANK);
        free(series);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_brute_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
