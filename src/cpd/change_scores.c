/* Turns a series into centred scores, and finds the best split of such scores by prefix sums. */
#include <math.h>

#include "cpd/cpd_internal.h"

/* Scaling to [0, 1] first keeps squares from overflow and underflow. Centring keeps prefix sums
 * small, so that a small step on a large offset is not lost. */
void cpd__scores_mean(const struct cpd__view *view, double *out_scores)
{
    double half = isfinite(view->hi - view->lo) ? 1.0 : 0.5;
    double base = view->lo * half;
    double range = view->hi * half - base;
    long double sum = 0.0L;
    for (size_t i = 0; i < view->n; i++) {
        out_scores[i] = (cpd__clip(view, view->series[i]) * half - base) / range;
        sum += out_scores[i];
    }
    double mean = (double)(sum / (long double)view->n);
    for (size_t i = 0; i < view->n; i++)
        out_scores[i] -= mean;
}

void cpd__scores_rank(const struct cpd__view *view, double *out_scores)
{
    size_t n = view->n;
    for (size_t begin = 0, end; begin < n; begin = end) {
        double value = cpd__clip(view, view->items[begin].value);
        end = begin + 1;
        while (end < n && cpd__clip(view, view->items[end].value) == value)
            end++;
        /* Ranks begin + 1 .. end have the mean (begin + 1 + end) / 2. */
        double score = (double)(begin + 1 + end) - (double)(n + 1);
        for (size_t i = begin; i < end; i++)
            out_scores[view->items[i].index] = score;
    }
}

/* With centred scores, the squared error that a split at s removes is S^2 n / (s (n - s)), where S
 * is the sum of the first s. */
void cpd__best_split(const double *scores, size_t n, size_t *out_split, double *out_gain)
{
    long double total = 0.0L;
    for (size_t i = 0; i < n; i++)
        total += (long double)scores[i] * scores[i];
    long double sum = 0.0L;
    double best = 0.0;
    size_t split = 0;
    for (size_t s = 1; s < n; s++) {
        sum += scores[s - 1];
        double prefix = (double)sum;
        double removed = prefix * prefix / ((double)s * (double)(n - s));
        if (removed > best * (1.0 + CPD__TIE)) {
            best = removed;
            split = s;
        }
    }
    double gain = total > 0.0L ? best * (double)n / (double)total : 0.0;
    *out_split = split;
    *out_gain = gain < 1.0 ? gain : 1.0;
}

size_t cpd__side_min(size_t n)
{
    if (n < 6)
        return n < 4 ? 1 : 2;
    return 3;
}
