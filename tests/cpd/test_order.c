/* Order statistics: values worked out by hand, and the odd inputs. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

#define ARRAY(...)                                                                                 \
    (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

static void check_value(double actual, double expected)
{
    if (isnan(expected))
        assert_true(isnan(actual));
    else
        assert_true(actual == expected || fabs(actual - expected) <= 1e-12 * fabs(expected));
}

static void test_quantile(void **state)
{
    (void)state;
    const struct {
        const double *values;
        size_t n;
        double q;
        double expected;
    } rows[] = {
        {ARRAY(7), 0.0, 7},
        {ARRAY(7), 1.0, 7},
        {ARRAY(4, 1, 3, 2), 0.0, 1},
        {ARRAY(4, 1, 3, 2), 0.25, 1.75},
        {ARRAY(4, 1, 3, 2), 0.5, 2.5},
        {ARRAY(4, 1, 3, 2), 0.9, 3.7},
        {ARRAY(4, 1, 3, 2), 1.0, 4},
        {ARRAY(5, -5, 0, 10, -10), 0.25, -5},
        {ARRAY(5, -5, 0, 10, -10), 0.6, 2},
        {ARRAY(1, 2, 3), -0.1, NAN},
        {ARRAY(1, 2, 3), 1.1, NAN},
        {ARRAY(1, 2, 3), NAN, NAN},
        {ARRAY(1, NAN, 3), 0.5, NAN},
        {ARRAY(INFINITY, 1, 2), 0.5, 2},
        {ARRAY(INFINITY, 1, 2), 1.0, INFINITY},
        {ARRAY(INFINITY, INFINITY), 0.5, INFINITY},
        {ARRAY(-INFINITY, INFINITY), 0.5, NAN},
        {ARRAY(-1.7e308, 1.7e308), 0.5, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_value(cpd_quantile(rows[i].values, rows[i].n, rows[i].q), rows[i].expected);
    assert_true(isnan(cpd_quantile(NULL, 0, 0.5)));
}

/* The variants for sorted values and for values that may be reordered give the same to the bit. */
static void test_quantile_variants(void **state)
{
    (void)state;
    enum { N_MAX = 40 };
    uint64_t draw = 1;
    for (size_t n = 1; n <= N_MAX; n++) {
        double values[N_MAX], sorted[N_MAX], reordered[N_MAX];
        for (size_t i = 0; i < n; i++) {
            draw = draw * UINT64_C(6364136223846793005) + 1;
            values[i] = (double)(draw >> 33) / (n % 2 ? 7 : 1 << 29); /* without and with ties */
        }
        for (size_t k = 0; k < n; k++) {
            memcpy(reordered, values, n * sizeof *values);
            sorted[k] = cpd_select_reorder(reordered, n, k);
        }
        for (int q = 0; q <= 20; q++) {
            double expected = cpd_quantile(values, n, q / 20.0);
            memcpy(reordered, values, n * sizeof *values);
            assert_true(cpd_quantile_reorder(reordered, n, q / 20.0) == expected);
            assert_true(cpd_quantile_sorted(sorted, n, q / 20.0) == expected);
        }
    }
    assert_true(isnan(cpd_quantile_sorted(NULL, 0, 0.5)));
    assert_true(isnan(cpd_quantile_reorder(NULL, 0, 0.5)));
    assert_true(isnan(cpd_quantile_sorted((const double[]){1}, 1, 1.5)));
}

static void test_median_and_mad(void **state)
{
    (void)state;
    const struct {
        const double *values;
        size_t n;
        double median;
        double mad;
    } rows[] = {
        {ARRAY(3), 3, 0},
        {ARRAY(3, 5), 4, 1},
        {ARRAY(9, 1, 5), 5, 4},
        {ARRAY(1, 2, 3, 100), 2.5, 1},
        {ARRAY(1, 1, 2, 2, 4, 6, 9), 2, 1},
        {ARRAY(38, 38, 38, 38), 38, 0},
        {ARRAY(38, 38, 38, 1e300), 38, 0},
        {ARRAY(-0.0, 0.0, -1.0), 0, 0},
        {ARRAY(1, 2, INFINITY), 2, 1},
        {ARRAY(NAN, 2, 3), NAN, NAN},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_value(cpd_median(rows[i].values, rows[i].n), rows[i].median);
        check_value(cpd_mad(rows[i].values, rows[i].n), rows[i].mad);
    }
    assert_true(isnan(cpd_median(NULL, 0)));
    assert_true(isnan(cpd_mad(NULL, 0)));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_against_sorting(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 1, "order");
    for (size_t n = 2; n < 400; n += 7) {
        double *values = series_flat(n, (enum series_noise)(n % NOISE_KINDS), &rng);
        double *sorted = malloc(n * sizeof *sorted);
        assert_non_null(values);
        assert_non_null(sorted);
        memcpy(sorted, values, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare);
        for (size_t i = 0; i < n; i++) {
            double q = (double)i / (double)(n - 1);
            double slack = 1e-9 * (1.0 + fabs(sorted[0]) + fabs(sorted[n - 1]));
            assert_true(fabs(cpd_quantile(values, n, q) - sorted[i]) <= slack);
        }
        free(sorted);
        free(values);
    }
}

static void test_mean(void **state)
{
    (void)state;
    check_value(cpd_mean(ARRAY(1, 2, 3, 6)), 3);
    check_value(cpd_mean(ARRAY(1e16, 1, 1, 1, 1, -1e16)), 4.0 / 6.0);
    check_value(cpd_mean(ARRAY(1.7e308, 1.7e308)), 1.7e308);
    check_value(cpd_mean(ARRAY(1, NAN)), NAN);
    check_value(cpd_mean(ARRAY(1, INFINITY)), INFINITY);
    assert_true(isnan(cpd_mean(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantile),       cmocka_unit_test(test_quantile_variants),
        cmocka_unit_test(test_median_and_mad), cmocka_unit_test(test_against_sorting),
        cmocka_unit_test(test_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
