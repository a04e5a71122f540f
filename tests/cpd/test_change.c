/* The verdict on one change point: what must be found, what must not, and the odd inputs. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

static const struct cpd_options by_mean = {.cost = CPD_COST_MEAN, .alpha = 0.01, .seed = 7};
static const struct cpd_options by_rank = {.cost = CPD_COST_RANK, .alpha = 0.01, .seed = 7};

static struct cpd_change run(const double *series, size_t n, const struct cpd_options *options)
{
    struct cpd_change change;
    memset(&change, 0xff, sizeof change);
    assert_int_equal(cpd_test(series, n, options, &change), 0);
    return change;
}

static void check_found(const double *series, size_t n, size_t split, double step)
{
    const struct cpd_options *both[] = {&by_mean, &by_rank};
    for (size_t i = 0; i < 2; i++) {
        struct cpd_change change = run(series, n, both[i]);
        if (!change.found || change.split != split || fabs(change.step - step) > 3.0)
            fail_msg("n %zu, step at %zu, cost %zu: found %d, split %zu, step %g, p %g, KS p %g", n,
                     split, i, change.found, change.split, change.step, change.p_value,
                     change.ks.p_value);
        assert_true(change.confidence == 1.0 - change.p_value && change.confidence >= 0.99);
    }
}

static void check_not_found(const double *series, size_t n, const char *name)
{
    const struct cpd_options *both[] = {&by_mean, &by_rank};
    for (size_t i = 0; i < 2; i++) {
        struct cpd_change change = run(series, n, both[i]);
        if (change.found || change.confidence != 0.0)
            fail_msg("%s: n %zu, cost %zu: split %zu, step %g, p %g", name, n, i, change.split,
                     change.step, change.p_value);
    }
}

/* Ten sigmas, three values or more on each side, twelve or more in all. */
static void test_clean_step_everywhere(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 4, "steps");
    for (size_t n = 12; n <= 48; n++) {
        for (size_t split = 3; split + 3 <= n; split++) {
            double step = split % 2 ? 10.0 : -10.0;
            double *series = series_step(n, split, step, &rng);
            assert_non_null(series);
            check_found(series, n, split, step);
            free(series);
        }
    }
}

static void test_clean_step_in_long_series(void **state)
{
    (void)state;
    const size_t lengths[] = {263, 2000, 2049, 5000, 100000};
    const size_t sides[] = {3, 4, 10, 30, 100};
    struct rng rng;
    rng_init(&rng, 5, "long steps");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (size_t j = 0; j < COUNT_OF(sides); j++) {
            for (int end = 0; end < 2; end++) {
                size_t split = end ? lengths[i] - sides[j] : sides[j];
                double *series = series_step(lengths[i], split, 10.0, &rng);
                assert_non_null(series);
                check_found(series, lengths[i], split, 10.0);
                free(series);
            }
        }
    }
}

/* Half a sigma in two thousand values: only the ranks can tell. */
static void test_weak_step(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 6, "weak step");
    double *series = series_step(2000, 700, 0.5, &rng);
    assert_non_null(series);
    struct cpd_change change = run(series, 2000, &by_mean);
    assert_true(change.found);
    assert_in_range(change.split, 600, 800);
    free(series);
}

/* Noise that by itself is far from a change point. */
static double *series_calm(size_t n, struct rng *rng)
{
    for (;;) {
        double *series = series_flat(n, NOISE_NORMAL, rng);
        assert_non_null(series);
        if (run(series, n, &by_rank).p_value > 0.1)
            return series;
        free(series);
    }
}

static void test_outlier_makes_no_step(void **state)
{
    (void)state;
    const size_t lengths[] = {12, 20, 64, 263, 2000, 5000};
    struct rng rng;
    rng_init(&rng, 8, "outlier");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        size_t n = lengths[i];
        const size_t places[] = {0, 1, n / 2, n - 2, n - 1};
        for (size_t j = 0; j < 5; j++) {
            double *series = series_calm(n, &rng);
            series[places[j]] = j % 2 ? 1e9 : -1e9;
            check_not_found(series, n, "outlier in noise");
            for (size_t k = 0; k < n; k++)
                series[k] = k == places[j] ? 1e9 : 38.0;
            check_not_found(series, n, "outlier on a constant");
            free(series);
        }
    }
}

static void test_outlier_hides_no_step(void **state)
{
    (void)state;
    const size_t lengths[] = {20, 64, 263, 5000};
    struct rng rng;
    rng_init(&rng, 9, "outlier and step");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        size_t n = lengths[i];
        for (size_t place = 0; place < n; place += n / 5) {
            size_t split = n * 7 / 10;
            double *series = series_step(n, split, 10.0, &rng);
            assert_non_null(series);
            series[place] = place % 2 ? 1e9 : -1e9;
            struct cpd_change change = run(series, n, &by_mean);
            assert_true(change.found);
            /* One of the values beside the step may be the wild one. */
            assert_in_range(change.split, split - 1, split + 1);
            assert_true(fabs(change.step - 10.0) < 3.0);
            free(series);
        }
    }
}

static void test_ramp(void **state)
{
    (void)state;
    for (size_t n = 12; n <= 4000; n = n * 3 / 2) {
        double *series = calloc(n, sizeof *series);
        assert_non_null(series);
        for (size_t i = 0; i < n; i++)
            series[i] = (double)i;
        struct cpd_options options = by_mean;
        options.step_min = (double)n / 2.0 - 1.0;
        assert_true(run(series, n, &options).found);
        options.step_min = (double)n / 2.0 + 1.0;
        assert_false(run(series, n, &options).found);
        free(series);
    }
}

/* Below ten values not even a perfect split is rarer than one in a hundred orders. */
static void test_few_values(void **state)
{
    (void)state;
    const double perfect[] = {1, 1, 1, 1, 9, 9, 9, 9, 9};
    const double distinct[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (size_t n = 0; n <= 9; n++) {
        check_not_found(perfect, n, "perfect");
        check_not_found(distinct, n, "distinct");
        check_not_found(perfect + 4, n < 5 ? n : 5, "constant");
    }
    struct cpd_change change = run(perfect, 8, &by_mean);
    assert_int_equal(change.split, 4);
    assert_true(fabs(change.p_value - 2.0 / 70.0) < 1e-12 && change.step == 8.0);
    struct cpd_change none = run(perfect, 1, &by_mean);
    assert_true(none.split == 0 && none.gain == 0.0 && none.step == 0.0 && none.p_value == 1.0);
    assert_true(none.ks.p_value == 1.0 && !none.ks.rejected);
}

static double best_of(const int *ones, size_t n, size_t count)
{
    double best = 0.0;
    double seen = 0.0;
    for (size_t s = 1; s + 3 <= n; s++) {
        seen += ones[s - 1];
        double excess = seen - (double)(s * count) / (double)n;
        if (s >= 3)
            best = fmax(best, excess * excess / (double)(s * (n - s)));
    }
    return best;
}

/* The p-value of two-level series against counting all orders. */
static void test_two_levels_exact(void **state)
{
    (void)state;
    enum { N = 13 };
    struct rng rng;
    rng_init(&rng, 10, "enumeration");
    for (int round = 0; round < 60; round++) {
        unsigned observed = (unsigned)rng_below(&rng, 1u << N);
        size_t count = (size_t)__builtin_popcount(observed);
        if (count < 3 || count > N - 3)
            continue;
        double series[N];
        int ones[N];
        for (size_t i = 0; i < N; i++) {
            ones[i] = observed >> i & 1;
            series[i] = ones[i] ? 200.0 : 38.0;
        }
        double bound = best_of(ones, N, count) * (1.0 - 1e-9);
        double reached = 0.0;
        double orders = 0.0;
        for (unsigned order = 0; order < 1u << N; order++) {
            if ((size_t)__builtin_popcount(order) != count)
                continue;
            for (size_t i = 0; i < N; i++)
                ones[i] = order >> i & 1;
            orders += 1.0;
            reached += best_of(ones, N, count) >= bound;
        }
        assert_true(fabs(run(series, N, &by_mean).p_value - reached / orders) < 1e-9);
    }
}

static double best_of_ranks(const double *ranks, size_t n, double mean)
{
    double best = 0.0;
    double sum = 0.0;
    for (size_t s = 1; s + 3 <= n; s++) {
        sum += ranks[s - 1] - mean;
        if (s >= 3)
            best = fmax(best, sum * sum / (double)(s * (n - s)));
    }
    return best;
}

/* Counts the orders of ranks[fixed..] that reach the bound, of all of them. */
static void count_orders(double *ranks, size_t n, size_t fixed, double bound, double *reached,
                         double *orders)
{
    if (fixed == n) {
        *orders += 1.0;
        *reached += best_of_ranks(ranks, n, 5.0) >= bound;
        return;
    }
    for (size_t i = fixed; i < n; i++) {
        double swap = ranks[fixed];
        ranks[fixed] = ranks[i];
        ranks[i] = swap;
        count_orders(ranks, n, fixed + 1, bound, reached, orders);
        ranks[i] = ranks[fixed];
        ranks[fixed] = swap;
    }
}

/* The p-value from drawn orders against counting all of them. Of nine values, the least and the
 * largest are clipped: mid-ranks 1.5, 1.5, 3, ... 7, 8.5, 8.5. */
static void test_ranks_against_enumeration(void **state)
{
    (void)state;
    enum { N = 9, ROUNDS = 20000 };
    const double rows[][N] = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9}, {2, 1, 3, 5, 4, 9, 6, 8, 7}, {9, 4, 8, 7, 5, 3, 6, 1, 2},
        {3, 2, 1, 8, 9, 5, 4, 7, 6}, {5, 9, 1, 6, 4, 2, 8, 3, 7},
    };
    const struct cpd_options options = {.alpha = 0.99, .rounds = ROUNDS, .seed = 1};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        double ranks[N];
        for (size_t j = 0; j < N; j++)
            ranks[j] = rows[i][j] <= 2 ? 1.5 : rows[i][j] >= 8 ? 8.5 : rows[i][j];
        double reached = 0.0;
        double orders = 0.0;
        count_orders(ranks, N, 0, best_of_ranks(ranks, N, 5.0) * (1.0 - 1e-9), &reached, &orders);
        double p = reached / orders;
        double slack = 4.0 * sqrt(p / ROUNDS);
        assert_true(fabs(run(rows[i], N, &options).p_value - p) <= slack);
    }
}

static void test_seeded(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 11, "seeded");
    double *series = series_flat(300, NOISE_NORMAL, &rng);
    assert_non_null(series);
    struct cpd_options options = by_rank;
    double first = run(series, 300, &options).p_value;
    assert_true(first == run(series, 300, &options).p_value);
    bool differs = false;
    for (options.seed = 100; options.seed < 110; options.seed++)
        differs |= run(series, 300, &options).p_value != first;
    assert_true(differs);
    /* Fewer rounds than 1 / alpha can never reach alpha. */
    for (size_t i = 0; i < 300; i++)
        series[i] = (double)i;
    options.rounds = 98;
    assert_false(run(series, 300, &options).found);
    options.rounds = 99;
    assert_true(run(series, 300, &options).found);
    free(series);
}

static void test_refused(void **state)
{
    (void)state;
    double series[20] = {0};
    struct cpd_change change = {.split = 99};
    struct cpd_options options = by_mean;
    const double bad_alphas[] = {0.0, 1.0, -1.0, NAN};
    for (size_t i = 0; i < 4; i++) {
        options.alpha = bad_alphas[i];
        assert_int_equal(cpd_test(series, 20, &options, &change), -EINVAL);
    }
    options = by_mean;
    options.step_min = -1.0;
    assert_int_equal(cpd_test(series, 20, &options, &change), -EINVAL);
    options.step_min = NAN;
    assert_int_equal(cpd_test(series, 20, &options, &change), -EINVAL);
    const double bad_values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        series[11] = bad_values[i];
        assert_int_equal(cpd_test(series, 20, &by_mean, &change), -EDOM);
    }
    assert_int_equal(change.split, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean_step_everywhere),
        cmocka_unit_test(test_clean_step_in_long_series),
        cmocka_unit_test(test_weak_step),
        cmocka_unit_test(test_outlier_makes_no_step),
        cmocka_unit_test(test_outlier_hides_no_step),
        cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_few_values),
        cmocka_unit_test(test_two_levels_exact),
        cmocka_unit_test(test_ranks_against_enumeration),
        cmocka_unit_test(test_seeded),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
