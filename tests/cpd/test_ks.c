/* The two-sample KS test: statistic, critical value and p-value worked out by hand. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

enum { VALUES_MAX = 12 };

/* critical = sqrt(-(n + m) / (2 n m) ln(alpha / 2)); p = 2 (exp(-2 x^2) - exp(-8 x^2) + ...) with
 * x = (r + 0.12 + 0.11 / r) D and r = sqrt(n m / (n + m)). */
static const struct {
    const char *name;
    size_t n;
    double values[VALUES_MAX];
    size_t split;
    double alpha;
    struct cpd_ks expected;
} rows[] = {
    {"apart", 6, {1, 2, 3, 4, 5, 6}, 3, 0.05, {1.0, 1.10888524, 0.03262165, false}},
    {"apart, longer", 8, {1, 2, 3, 4, 5, 6, 7, 8}, 4, 0.05, {1.0, 0.96032279, 0.01106564, true}},
    {"downwards", 8, {5, 6, 7, 8, 1, 2, 3, 4}, 4, 0.05, {1.0, 0.96032279, 0.01106564, true}},
    {"interleaved", 6, {1, 3, 5, 2, 4, 6}, 3, 0.05, {0.33333333, 1.10888524, 0.97621265, false}},
    {"ties in both", 8, {1, 1, 2, 2, 1, 2, 2, 2}, 4, 0.05, {0.25, 0.96032279, 0.99687569, false}},
    {"all tied", 5, {7, 7, 7, 7, 7}, 2, 0.01, {0.0, 1.48581030, 1.0, false}},
    {"zero signs tie", 4, {0.0, -0.0, -0.0, 0.0}, 2, 0.01, {0.0, 1.62762363, 1.0, false}},
    {"three of twelve",
     12,
     {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13},
     9,
     0.01,
     {1.0, 1.08508242, 0.00646334, false}},
    {"two values", 2, {1, 2}, 1, 0.01, {1.0, 2.30180741, 0.28904143, false}},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct cpd_ks ks;
        const struct cpd_ks *expected = &rows[i].expected;
        assert_int_equal(cpd_ks_test(rows[i].values, rows[i].n, rows[i].split, rows[i].alpha, &ks),
                         0);
        if (fabs(ks.statistic - expected->statistic) > 1e-7 ||
            fabs(ks.critical - expected->critical) > 1e-7 ||
            fabs(ks.p_value - expected->p_value) > 1e-7 || ks.rejected != expected->rejected)
            fail_msg("%s: D %.8f critical %.8f p %.8f", rows[i].name, ks.statistic, ks.critical,
                     ks.p_value);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const double good[] = {1, 2, 3};
    const double nan_inside[] = {1, NAN, 3};
    const double infinite[] = {1, INFINITY, 3};
    struct cpd_ks ks = {.p_value = 99.0};
    assert_int_equal(cpd_ks_test(good, 3, 0, 0.01, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(good, 3, 3, 0.01, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(good, 0, 0, 0.01, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(good, 3, 1, 0.0, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(good, 3, 1, 1.0, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(good, 3, 1, NAN, &ks), -EINVAL);
    assert_int_equal(cpd_ks_test(nan_inside, 3, 1, 0.01, &ks), -EDOM);
    assert_int_equal(cpd_ks_test(infinite, 3, 1, 0.01, &ks), -EDOM);
    assert_true(ks.p_value == 99.0);
}

/* Equal distributions give a p-value below 0.05 about one time in twenty. */
static void test_fixed_split_rate(void **state)
{
    (void)state;
    enum { ROUNDS = 4000 };
    struct rng rng;
    rng_init(&rng, 3, "ks");
    int low = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double *series = series_flat(200, NOISE_NORMAL, &rng);
        struct cpd_ks ks;
        assert_non_null(series);
        assert_int_equal(cpd_ks_test(series, 200, 80, 0.05, &ks), 0);
        low += ks.p_value <= 0.05;
        free(series);
    }
    assert_in_range(low, ROUNDS / 20 - 60, ROUNDS / 20 + 45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fixed_split_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
