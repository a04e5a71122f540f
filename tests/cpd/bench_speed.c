/* A million points: each function must take less than a second. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cpd/cpd.h"
#include "series.h"

enum { POINTS = 1000000, CASES = 6 };
static const double limit_s = 1.0;

struct bench {
    const char *name;
    int (*run)(const double *series);
};

static int run_single(const double *series, enum cpd_cost cost)
{
    size_t split;
    double gain;
    return cpd_single(series, POINTS, cost, &split, &gain);
}

static int run_mean(const double *series)
{
    return run_single(series, CPD_COST_MEAN);
}

static int run_rank(const double *series)
{
    return run_single(series, CPD_COST_RANK);
}

static int run_test(const double *series)
{
    const struct cpd_options options = {.alpha = 0.01, .seed = 1};
    struct cpd_change change;
    return cpd_test(series, POINTS, &options, &change);
}

static int run_median(const double *series)
{
    return cpd_median(series, POINTS) > 1e9;
}

static double *make_case(int number, struct rng *rng)
{
    double *series = series_flat(POINTS, (enum series_noise)(number % NOISE_KINDS), rng);
    for (size_t i = 0; series && number >= NOISE_KINDS && i < POINTS; i++)
        series[i] += (double)(i / 99999) * 5.0;
    return series;
}

int main(void)
{
    const struct bench benches[] = {
        {"cpd_single, mean", run_mean},
        {"cpd_single, rank", run_rank},
        {"cpd_test", run_test},
        {"cpd_median", run_median},
    };
    int failures = 0;
    struct rng rng;
    rng_init(&rng, 16, "speed");
    for (int number = 0; number < CASES; number++) {
        double *series = make_case(number, &rng);
        if (!series)
            return 1;
        for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
            double start = clock_monotonic_s();
            int result = benches[i].run(series);
            double elapsed = clock_monotonic_s() - start;
            bool failed = result != 0 || elapsed >= limit_s;
            printf("%-17s %-13s %-5s: %.3f s, limit %.0f s%s\n", benches[i].name,
                   series_noise_names[number % NOISE_KINDS],
                   number < NOISE_KINDS ? "flat" : "steps", elapsed, limit_s,
                   failed ? ": FAILED" : "");
            failures += failed;
        }
        free(series);
    }
    return failures != 0;
}
