/* The centre of single loads: under spikes, under a cut-off, with coarse timers. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "probes/method/pool.h"

/* Sum of twelve uniform numbers: near enough to normal. */
static double draw_normal(struct rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += rng_uniform(rng);
    return sum;
}

static const struct shape {
    const char *what;
    double latency, sigma;
    double spike_share, spike_cycles;
    double step; /* of the timer */
    double tolerance;
} shapes[] = {
    {"quiet", 33, 0, 0, 0, 1, 0.001},
    {"between two cycles", 33.4, 1, 0, 0, 1, 0.01},
    {"coarse timer", 40, 6, 0, 0, 3, 0.01},
    {"scatter of two steps", 45, 8.3, 0.003, 300, 4, 0.01},
    {"scatter of one step", 34, 16, 0.003, 600, 16, 0.02},
    {"steps of 64, spikes far above", 54, 1, 0.002, 850, 64, 0.01},
    {"steps of 64, with scatter", 75, 5, 0.004, 790, 64, 0.01},
    {"rare spikes", 33, 2, 0.01, 600, 1, 0.005},
    {"rare spikes beside loads that are all alike", 33, 0, 0.0002, 600, 1, 0.001},
    {"scatter beyond the latency, cut off at a cycle", 20, 30, 0, 0, 1, 0.015},
    {"cut off, with spikes", 26, 14, 0.01, 300, 1, 0.01},
    {"scatter, cut off, with spikes", 20, 30, 0.01, 900, 1, 0.012},
    {"spikes near the scatter", 60, 30, 0.01, 250, 1, 0.005},
    {"in the coarse bins", 700, 40, 0.01, 900, 1, 0.005},
};

static void add_load(struct pool *pool, double cycles)
{
    struct device_bin bin = {.bin = (uint16_t)device_bin_of((uint32_t)fmax(cycles, 1)), .count = 1};
    const struct device_sample sample = {.bins = &bin, .bin_count = 1};
    pool_add(pool, &sample);
}

static void centre_is_found(void **state)
{
    (void)state;
    enum { LOADS = 200000 };
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct shape *s = &shapes[i];
        static struct pool pool;
        struct rng rng;
        memset(&pool, 0, sizeof pool);
        rng_init(&rng, 7, s->what);
        for (int k = 0; k < LOADS; k++) {
            double cycles = fmax(s->latency + s->sigma * draw_normal(&rng), 1);
            if (rng_uniform(&rng) < s->spike_share)
                cycles += s->spike_cycles * (0.5 + rng_uniform(&rng));
            double dither = s->step > 1 ? rng_uniform(&rng) : 0.5;
            add_load(&pool, s->step * floor(cycles / s->step + dither));
        }
        struct pool_centre centre = pool_centre(&pool);
        if (fabs(centre.cycles - s->latency) > s->tolerance * s->latency)
            fail_msg("%s: %g, not %g", s->what, centre.cycles, s->latency);
        assert_true(centre.error <= 0.01 * s->latency);
        assert_true(centre.sigma <= 1.2 * s->sigma + s->step);
        assert_true(fabs(centre.spike_share - s->spike_share) < 0.002);
    }
}

/* Loads around 100 cycles with a deviation of 2. More of them are four deviations too fast than
 * there are spikes: beyond three deviations the fast ones outnumber the spikes, beyond five only
 * spikes are left. */
static void few_spikes_are_found(void **state)
{
    (void)state;
    enum { EARLY = 11, SPIKES = 8 };
    static const uint64_t halves[] = {2000, 1765, 1213, 650, 271, 88, 22};
    static struct pool pool;
    for (size_t i = 0; i < COUNT_OF(halves); i++) {
        pool.counts[device_bin_of(100 + (uint32_t)i)] = halves[i];
        pool.counts[device_bin_of(100 - (uint32_t)i)] = halves[i];
        pool.all += i ? 2 * halves[i] : halves[i];
    }
    for (int i = 0; i < EARLY + SPIKES; i++)
        add_load(&pool, i < EARLY ? 92 : 600);
    struct pool_centre centre = pool_centre(&pool);
    assert_true(fabs(centre.sigma - 2) < 0.1);
    assert_true(fabs(centre.spike_share - SPIKES / (double)pool.all) < 1e-9);
}

/* Loads spread over 51 values, a few of which happen to be frequent: no step of a timer. */
static void frequent_values_are_no_steps(void **state)
{
    (void)state;
    static struct pool pool;
    for (int cycles = 10; cycles <= 60; cycles++)
        pool.counts[cycles] = cycles % 20 == 15 ? 25 : 18;
    for (int cycles = 10; cycles <= 60; cycles++)
        pool.all += pool.counts[cycles];
    const struct pool_centre centre = pool_centre(&pool);
    assert_true(centre.step == 0);
    assert_true(fabs(centre.cycles - 35) < 0.5);
}

static void quantiles_interpolate(void **state)
{
    (void)state;
    static struct pool pool;
    for (int i = 0; i < 30; i++)
        add_load(&pool, 10);
    for (int i = 0; i < 10; i++)
        add_load(&pool, 12);
    assert_true(fabs(pool_quantile(&pool, 0.75) - 11) < 1e-9);
    assert_true(pool_quantile(&pool, 0.5) > 10 && pool_quantile(&pool, 0.5) < 11);
    assert_true(pool_quantile(&pool, 1) == 12);
    static const struct pool empty;
    assert_true(isnan(pool_quantile(&empty, 0.5)));
}

/* Loads of 500 and 700 cycles, by the shares below, the others spread evenly up to 1200. */
static void peaks_are_told_from_tails(void **state)
{
    (void)state;
    static const struct {
        double near, far, step;
        bool peaks;
    } mixes[] = {{0.42, 0.44, 1, true},  {0.5, 0.5, 1, true},    {0.7, 0, 1, false},
                 {0.97, 0.03, 1, false}, {0.5, 0.5, 100, false}, {1, 0, 1, false}};
    for (size_t i = 0; i < COUNT_OF(mixes); i++) {
        static struct pool pool;
        double near = 0, far = 0;
        struct rng rng;
        memset(&pool, 0, sizeof pool);
        rng_init(&rng, 7, "peaks");
        for (int k = 0; k < 20000; k++) {
            double kind = rng_uniform(&rng), cycles = 500 + 15 * draw_normal(&rng);
            if (kind >= mixes[i].near)
                cycles += kind < mixes[i].near + mixes[i].far ? 200 : 700 * rng_uniform(&rng);
            add_load(&pool, mixes[i].step * floor(cycles / mixes[i].step + rng_uniform(&rng)));
        }
        assert_int_equal(pool_peaks(&pool, &near, &far), mixes[i].peaks);
        if (mixes[i].peaks && (fabs(near - 500) > 10 || fabs(far - 710) > 20))
            fail_msg("near %g, far %g", near, far);
    }
}

static void single_loads_have_a_deviation(void **state)
{
    (void)state;
    struct pool pool = {0};
    struct facts notes = {0};
    for (int i = 0; i < 4; i++)
        pool_add_load(&pool, i < 2 ? 30 : 50);
    pool_note_distribution(&pool, 10, &notes);
    /* Four loads, each 10 from their mean. */
    assert_true(fabs(fact_number(facts_get(&notes, "sd")) - sqrt(4 * 100 / 3.0)) < 0.01);
    assert_true(fact_number(facts_get(&notes, "p95")) >= 39);
    facts_fini(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(centre_is_found),
                                       cmocka_unit_test(few_spikes_are_found),
                                       cmocka_unit_test(single_loads_have_a_deviation),
                                       cmocka_unit_test(frequent_values_are_no_steps),
                                       cmocka_unit_test(quantiles_interpolate),
                                       cmocka_unit_test(peaks_are_told_from_tails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
