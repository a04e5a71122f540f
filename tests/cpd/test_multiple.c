/* Several change points: against optimal partitioning by brute force, and the odd inputs. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

enum { LENGTH_MAX = 40 };

static double least_cost(const double *values, size_t n, double penalty, size_t min_length)
{
    double cost[LENGTH_MAX + 1];
    cost[0] = -penalty;
    for (size_t t = 1; t <= n; t++) {
        cost[t] = INFINITY;
        for (size_t s = 0; s + min_length <= t; s++)
            cost[t] = fmin(cost[t], cost[s] + penalty + series_cost(values, s, t));
    }
    return cost[n];
}

static double cost_of(const double *values, size_t n, double penalty, size_t min_length,
                      const size_t *splits, size_t count)
{
    double cost = penalty * (double)count;
    size_t begin = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t end = i < count ? splits[i] : n;
        assert_true(end >= begin + min_length && end <= n);
        cost += series_cost(values, begin, end);
        begin = end;
    }
    return cost;
}

static void test_brute_force(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 13, "multiple");
    for (int round = 0; round < 600; round++) {
        size_t min_length = 1 + rng_below(&rng, 5);
        size_t n = 2 * min_length + rng_below(&rng, LENGTH_MAX - 2 * min_length + 1);
        double penalty = 0.05 + 6.0 * rng_uniform(&rng);
        double *series = series_flat(n, round % 2 ? NOISE_NORMAL : NOISE_TIED, &rng);
        assert_non_null(series);
        for (size_t i = 0; i < n; i++)
            series[i] += 1e4 + 3.0 * (double)(i / 9 % 3);
        size_t *splits;
        size_t count;
        assert_int_equal(cpd_multiple(series, n, penalty, min_length, &splits, &count), 0);
        double own = cost_of(series, n, penalty, min_length, splits, count);
        double least = least_cost(series, n, penalty, min_length);
        if (own > least + 1e-6)
            fail_msg("round %d: n %zu, min_length %zu: cost %g, least %g", round, n, min_length,
                     own, least);
        free(splits);
        free(series);
    }
}

static void check_splits(const double *series, size_t n, double penalty, size_t min_length,
                         const size_t *expected, size_t expected_count)
{
    size_t *splits = NULL;
    size_t count = 99;
    assert_int_equal(cpd_multiple(series, n, penalty, min_length, &splits, &count), 0);
    assert_non_null(splits);
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(splits[i], expected[i]);
    free(splits);
}

static void test_nothing_to_find(void **state)
{
    (void)state;
    const double constant[] = {38.1, 38.1, 38.1, 38.1, 38.1};
    const double values[] = {1, 2, 1, 2, 9, 9};
    for (size_t n = 0; n <= 5; n++)
        check_splits(constant, n, 0.0, 1, NULL, 0);
    for (size_t n = 0; n <= 2; n++)
        check_splits(values, n, 0.0, 1, NULL, 0);
    check_splits(values, 6, 0.001, 4, NULL, 0);
    check_splits(values, 6, 0.001, 7, NULL, 0);
    check_splits(values, 6, 0.001, SIZE_MAX, NULL, 0);
    check_splits(values, 6, 1e9, 1, NULL, 0);
}

static void test_given_penalty(void **state)
{
    (void)state;
    const double values[] = {1, 2, 1, 2, 9, 9};
    check_splits(values, 6, 10.0, 1, (const size_t[]){4}, 1);
    check_splits(values, 2, 0.1, 1, (const size_t[]){1}, 1);
    check_splits((const double[]){-1.7e308, -1.7e308, 1.7e308, 1.7e308}, 4, 1.0, 1,
                 (const size_t[]){2}, 1);
}

/* Plateaus without any noise, as coarse clocks show them. */
static void test_noise_free(void **state)
{
    (void)state;
    double series[60];
    for (size_t i = 0; i < 60; i++)
        series[i] = i < 20 ? 38.0 : i < 45 ? 200.0 : 610.0;
    check_splits(series, 60, 0.0, 1, (const size_t[]){20, 45}, 2);
    check_splits(series, 60, 0.0, 3, (const size_t[]){20, 45}, 2);
    series[10] = 39.0;
    series[30] = 199.0;
    check_splits(series, 60, 0.0, 1, (const size_t[]){20, 45}, 2);
}

static void add_plateaus(double *series, size_t n)
{
    for (size_t i = 0; i < n; i++)
        series[i] += i < n / 4 ? 0.0 : i < n / 2 ? 10.0 : 35.0;
}

static void test_plateaus(void **state)
{
    (void)state;
    const size_t lengths[] = {24, 100, 1000, 20000};
    struct rng rng;
    rng_init(&rng, 14, "plateaus");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        size_t n = lengths[i];
        const size_t expected[] = {n / 4, n / 2};
        double *series = series_flat(n, NOISE_NORMAL, &rng);
        assert_non_null(series);
        add_plateaus(series, n);
        check_splits(series, n, 0.0, 3, expected, 2);
        free(series);
    }
}

/* A wild value is a segment of its own where that is allowed, and hides no step in any case. */
static void test_outlier(void **state)
{
    (void)state;
    enum { N = 400 };
    struct rng rng;
    rng_init(&rng, 15, "outlier");
    double *series = series_flat(N, NOISE_NORMAL, &rng);
    assert_non_null(series);
    add_plateaus(series, N);
    series[150] = 1e7;
    check_splits(series, N, 0.0, 1, (const size_t[]){100, 150, 151, 200}, 4);
    size_t *splits;
    size_t count;
    assert_int_equal(cpd_multiple(series, N, 0.0, 5, &splits, &count), 0);
    bool first = false;
    bool last = false;
    for (size_t i = 0; i < count; i++) {
        first |= splits[i] == 100;
        last |= splits[i] == 200;
    }
    assert_true(first && last);
    free(splits);
    free(series);
}

static void test_refused(void **state)
{
    (void)state;
    const double good[] = {1, 2, 3};
    const double bad[] = {NAN, INFINITY, -INFINITY};
    size_t *splits = NULL;
    size_t count = 99;
    assert_int_equal(cpd_multiple(good, 3, -1.0, 1, &splits, &count), -EINVAL);
    assert_int_equal(cpd_multiple(good, 3, NAN, 1, &splits, &count), -EINVAL);
    assert_int_equal(cpd_multiple(good, 3, 1.0, 0, &splits, &count), -EINVAL);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cpd_multiple(&bad[i], 1, 1.0, 1, &splits, &count), -EDOM);
    assert_null(splits);
    assert_int_equal(count, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),   cmocka_unit_test(test_nothing_to_find),
        cmocka_unit_test(test_given_penalty), cmocka_unit_test(test_noise_free),
        cmocka_unit_test(test_plateaus),      cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
