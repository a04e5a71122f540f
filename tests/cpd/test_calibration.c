/* How often flat series are said to have a change point: at most alpha, whatever the noise. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

static const struct {
    size_t n;
    int rounds;
} rows[] = {{8, 3000}, {20, 3000}, {64, 3000}, {263, 1500}, {2000, 500}, {9000, 200}};

static const double alpha = 0.01;

/* Change points found, and calibrated p-values up to alpha (which the other conditions may veto).
 */
struct rate {
    double found;
    double low_p;
};

static struct rate measure_rate(size_t n, int rounds, enum series_noise kind, enum cpd_cost cost)
{
    struct rng rng;
    rng_init(&rng, rng_derive(12, "calibration", n), series_noise_names[kind]);
    struct rate rate = {0};
    for (int round = 0; round < rounds; round++) {
        double *series = series_flat(n, kind, &rng);
        assert_non_null(series);
        struct cpd_options options = {.cost = cost, .alpha = alpha, .seed = (uint64_t)round};
        struct cpd_change change;
        assert_int_equal(cpd_test(series, n, &options, &change), 0);
        rate.found += change.found;
        rate.low_p += change.p_value <= alpha;
        free(series);
    }
    rate.found /= rounds;
    rate.low_p /= rounds;
    return rate;
}

static void test_false_positives(void **state)
{
    (void)state;
    int failures = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int kind = 0; kind < NOISE_KINDS; kind++) {
            enum cpd_cost cost = i % 2 ? CPD_COST_RANK : CPD_COST_MEAN;
            struct rate rate =
                measure_rate(rows[i].n, rows[i].rounds, (enum series_noise)kind, cost);
            double limit = alpha + 3.0 * sqrt(alpha * (1.0 - alpha) / rows[i].rounds);
            bool ok = rate.found <= limit && rate.low_p <= limit;
            printf("n %5zu, %-13s: found %.4f, p <= alpha %.4f, limit %.4f%s\n", rows[i].n,
                   series_noise_names[kind], rate.found, rate.low_p, limit, ok ? "" : " EXCEEDED");
            failures += !ok;
        }
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_false_positives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
