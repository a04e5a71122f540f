/* Permutation test: how often does a random order of the series split as well as the series itself?
 *
 * The statistic is the maximum over all splits, so the test accounts for the choice of the split.
 * It is computed on scores (mid-ranks), where one wild value weighs no more than any other. On a
 * flat series of any distribution, with or without ties, all orders are equally likely, so the test
 * is exact, not asymptotic. Sampling stops early by the rule of Besag and Clifford ("Sequential
 * Monte Carlo p-values", 1991), which keeps the p-value valid.
 *
 * Long series are cut into equal blocks, and whole blocks are permuted. Block permutations are a
 * subgroup of all permutations, so the test stays exact; it only considers fewer splits. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "cpd/cpd_internal.h"

enum { BLOCKS_MAX = 2048, ROUNDS_DEFAULT = 999, EXCEEDANCES_MIN = 10, EXACT_BOUND_MAX = 32 };

struct blocks {
    double *sums;    /* centred */
    double *weights; /* of the split after block i */
    size_t count;
    size_t side_min; /* in blocks */
};

static void blocks_init(struct blocks *blocks, const double *scores, size_t n)
{
    size_t length = (n + BLOCKS_MAX - 1) / BLOCKS_MAX;
    size_t count = n / length;
    double *sums = mem_array(count, sizeof *sums);
    double *weights = mem_array(count, sizeof *weights);
    double total = 0.0;
    for (size_t i = 0; i < count * length; i++) {
        sums[i / length] += scores[i];
        total += scores[i];
    }
    /* Values that do not fill a block are left out, so the rest must be centred again. */
    for (size_t i = 0; i < count; i++) {
        sums[i] -= total / (double)count;
        weights[i] = 1.0 / ((double)(i + 1) * (double)(count - i - 1));
    }
    *blocks = (struct blocks){sums, weights, count, (cpd__side_min(n) + length - 1) / length};
}

static void blocks_fini(struct blocks *blocks)
{
    free(blocks->sums);
    free(blocks->weights);
}

static double best_statistic(const struct blocks *blocks)
{
    double best = 0.0;
    double sum = 0.0;
    for (size_t i = 0; i + blocks->side_min < blocks->count; i++) {
        sum += blocks->sums[i];
        double value = sum * sum * blocks->weights[i];
        if (i + 1 >= blocks->side_min && value > best)
            best = value;
    }
    return best;
}

/* Draws a new order step by step, until some split reaches the bound. False: none does. */
static bool draw_order(const struct blocks *blocks, double bound, struct rng *rng)
{
    double *sums = blocks->sums;
    double sum = 0.0;
    for (size_t i = 0; i + blocks->side_min < blocks->count; i++) {
        size_t pick = i + rng_below(rng, blocks->count - i);
        double drawn = sums[pick];
        sums[pick] = sums[i];
        sums[i] = drawn;
        sum += drawn;
        if (i + 1 >= blocks->side_min && sum * sum * blocks->weights[i] >= bound)
            return true;
    }
    return false;
}

/* The least possible p-value: no order of n values is rarer than a perfect split in the middle,
 * upwards or downwards. */
static double least_p(size_t n)
{
    if (n > EXACT_BOUND_MAX)
        return 0.0;
    double choices = 1.0;
    for (size_t i = 1; i <= n / 2; i++)
        choices *= (double)(n - n / 2 + i) / (double)i;
    return 2.0 / choices;
}

static double estimate_p(const struct blocks *blocks, const struct cpd_options *options)
{
    double bound = best_statistic(blocks) * (1.0 - CPD__TIE);
    if (bound <= 0.0)
        return 1.0;
    uint32_t rounds = options->rounds ? options->rounds : ROUNDS_DEFAULT;
    double enough = options->alpha * ((double)rounds + 1.0);
    if (enough < EXCEEDANCES_MIN)
        enough = EXCEEDANCES_MIN;
    struct rng rng;
    rng_init(&rng, options->seed, "cpd permutations");
    uint32_t reached = 0;
    for (uint32_t round = 1; round <= rounds; round++) {
        reached += draw_order(blocks, bound, &rng);
        if ((double)reached >= enough)
            return (double)reached / (double)round;
    }
    return ((double)reached + 1.0) / ((double)rounds + 1.0);
}

double cpd__permutation_p(const double *scores, size_t n, const struct cpd_options *options)
{
    struct blocks blocks;
    blocks_init(&blocks, scores, n);
    double p = estimate_p(&blocks, options);
    double least = least_p(n);
    blocks_fini(&blocks);
    return p > least ? p : least;
}
