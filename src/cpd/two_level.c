/* The exact test for series of two levels, such as hits and misses.
 *
 * Mid-ranks cannot distinguish three misses at the end of twelve sizes from chance, since they
 * ignore how far the misses lie from the hits. If the values form two groups with a clear gap, the
 * series is read as zeros and ones instead. The grouping does not depend on the order of the
 * values, so all orders stay equally likely on a flat series. The maximum over the splits is then a
 * bounded random walk, whose distribution is counted exactly. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "cpd/cpd_internal.h"

/* A gap is clear if it is at least this multiple of either group's spread. A step of ten normal
 * sigmas exceeds it for up to a million values. Other series that exceed it only lose some power;
 * the test stays valid. */
static const double gap_min = 2.0;

/* Up to this many cells are counted exactly, in about ten milliseconds; above, a bound is used. */
static const double cells_max = 4e6;

/* `ones` of the n values are ones. statistic: (n J - s ones)^2 / (s (n - s)) at the best split s,
 * where J is the number of ones before s. Ties count as reaching it. */
struct walk {
    size_t n;
    size_t ones;
    size_t side_min;
    double statistic;
};

/* Half of the interquartile range of the clipped values [begin, end) in sorted order. */
static double group_spread(const struct cpd__view *view, size_t begin, size_t end)
{
    size_t quarter = (end - begin - 1) / 4;
    double low = cpd__clip(view, view->items[begin + quarter].value);
    double high = cpd__clip(view, view->items[end - 1 - quarter].value);
    return high / 2.0 - low / 2.0;
}

static size_t shorter(size_t split, size_t n)
{
    return split < n - split ? split : n - split;
}

bool cpd__two_levels(const struct cpd__view *view, double *out_threshold)
{
    size_t n = view->n;
    size_t best = 0;
    double best_gap = 0.0;
    for (size_t i = 1; i < n; i++) {
        double gap = cpd__clip(view, view->items[i].value) / 2.0 -
                     cpd__clip(view, view->items[i - 1].value) / 2.0;
        /* Of equal gaps, the one nearest to the middle has the most power. */
        bool nearer = gap == best_gap && shorter(i, n) > shorter(best, n);
        if (gap > best_gap || (gap > 0.0 && nearer)) {
            best = i;
            best_gap = gap;
        }
    }
    if (best == 0)
        return false;
    double below = group_spread(view, 0, best);
    double above = group_spread(view, best, n);
    if (best_gap * 2.0 < gap_min * (below > above ? below : above))
        return false;
    *out_threshold = view->items[best].value;
    return true;
}

/* The rarer of the two levels counts as one: the walk is narrower and the statistic the same. */
static struct walk observe(const struct cpd__view *view, double threshold)
{
    size_t n = view->n;
    size_t upper = 0;
    for (size_t i = 0; i < n; i++)
        upper += view->series[i] >= threshold;
    bool rarer_upper = upper <= n - upper;
    struct walk walk = {n, rarer_upper ? upper : n - upper, cpd__side_min(n), 0.0};
    size_t seen = 0;
    for (size_t s = 1; s + walk.side_min <= n; s++) {
        seen += (view->series[s - 1] >= threshold) == rarer_upper;
        double excess = (double)n * (double)seen - (double)s * (double)walk.ones;
        double value = excess * excess / ((double)s * (double)(n - s));
        if (s >= walk.side_min && value > walk.statistic)
            walk.statistic = value;
    }
    walk.statistic *= 1.0 - CPD__TIE;
    return walk;
}

/* How far n J - s ones must be from 0 to reach the statistic at s. */
static double reach(const struct walk *walk, size_t s)
{
    return sqrt(walk->statistic * (double)s * (double)(walk->n - s));
}

/* Propagates the probabilities of J = 0 .. ones along the walk and removes those that reach the
 * statistic. Summing what is removed, not what stays, keeps small p-values precise. */
static double exact_p(const struct walk *walk)
{
    size_t n = walk->n;
    size_t ones = walk->ones;
    double *stay = mem_array(ones + 1, sizeof *stay);
    double left = 0.0;
    size_t low = 0;
    size_t end = 1; /* stay is 0 outside [low, end) */
    stay[0] = 1.0;
    for (size_t s = 1; s + walk->side_min <= n && low < end; s++) {
        double rest = (double)(n - s + 1);
        if (end <= ones)
            end++;
        for (size_t j = end; j-- > low;) {
            double none = (rest - (double)(ones - j)) / rest;
            double one = j > 0 ? stay[j - 1] * (double)(ones - j + 1) / rest : 0.0;
            stay[j] = stay[j] * (none > 0.0 ? none : 0.0) + one;
        }
        if (s < walk->side_min)
            continue;
        double bound = reach(walk, s);
        double middle = (double)s * (double)ones;
        for (; low < end && middle - (double)n * (double)low >= bound; low++) {
            left += stay[low];
            stay[low] = 0.0;
        }
        for (; low < end && (double)n * (double)(end - 1) - middle >= bound; end--) {
            left += stay[end - 1];
            stay[end - 1] = 0.0;
        }
    }
    free(stay);
    return left < 1.0 ? left : 1.0;
}

static double divergence(double a, double b)
{
    double sum = 0.0;
    if (a > 0.0)
        sum += a * portable_log(a / b);
    if (a < 1.0)
        sum += (1.0 - a) * portable_log((1.0 - a) / (1.0 - b));
    return sum;
}

/* Bound of P(J beyond j) at split s, by Hoeffding (1963) for draws without replacement. One may see
 * either the positions or the ones as drawn; the smaller bound counts. */
static double tail_bound(const struct walk *walk, size_t s, double j)
{
    double n = (double)walk->n;
    double ones = (double)walk->ones;
    double draws = (double)s;
    double share = j / draws;
    if (2 * s > walk->n) {
        draws = n - draws;
        share = (ones - j) / draws;
    }
    double by_place = draws * divergence(share, ones / n);
    double by_value = ones * divergence(j / ones, (double)s / n);
    return portable_exp(-(by_place > by_value ? by_place : by_value));
}

/* Sums the bounds of all splits. The result is far above the exact p-value for weak steps, but
 * small enough for clear ones. */
static double union_bound(const struct walk *walk)
{
    size_t n = walk->n;
    double sum = 0.0;
    for (size_t s = walk->side_min; s + walk->side_min <= n && sum < 1.0; s++) {
        double bound = reach(walk, s);
        double middle = (double)s * (double)walk->ones;
        size_t most = s < walk->ones ? s : walk->ones;
        size_t least = s + walk->ones > n ? s + walk->ones - n : 0;
        double high = ceil((middle + bound) / (double)n);
        double low = floor((middle - bound) / (double)n);
        if (high <= (double)most)
            sum += tail_bound(walk, s, high);
        if (low >= (double)least)
            sum += tail_bound(walk, s, low);
    }
    return sum < 1.0 ? sum : 1.0;
}

double cpd__two_level_p(const struct cpd__view *view, double threshold)
{
    struct walk walk = observe(view, threshold);
    double width = sqrt(walk.statistic) + 2.0; /* a wider walk has already reached the statistic */
    if (width > (double)walk.ones + 1.0)
        width = (double)walk.ones + 1.0;
    return width * (double)walk.n <= cells_max ? exact_p(&walk) : union_bound(&walk);
}
