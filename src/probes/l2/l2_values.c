/* Statistics of single loads: means without spikes, levels, thresholds. */
#include "probes/l2/l2_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"

enum {
    TRIES = 64,      /* positions at which a threshold is tried */
    SPAN_MAX = 4096, /* largest range, in cycles, of values that are sorted by counting */
};

static const double FENCE_WIDTHS = 3, FENCE_CYCLES = 8;

/* Two levels have at most this share of values in the middle third between them (uniform values
 * have a third there), and the smaller level has at least this share. */
static const double VALLEY_MAX = 0.08, LEVEL_MIN = 0.1;

int l2_values_add(struct l2_values *values, double value, struct err *err)
{
    if (values->count == values->room) {
        double *grown = mem_grow(values->at, &values->room, values->count + 1, sizeof *grown);
        if (!grown)
            return err_no_memory(err);
        values->at = grown;
    }
    values->at[values->count++] = value;
    return 0;
}

void l2_values_fini(struct l2_values *values)
{
    free(values->at);
    *values = (struct l2_values){0};
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whole cycles within a small range, as single readings are, are counted instead of compared. */
static bool sort_by_counting(struct l2_values *values)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < values->count; i++) {
        low = fmin(low, values->at[i]);
        high = fmax(high, values->at[i]);
    }
    uint32_t counts[SPAN_MAX] = {0};
    bool whole = high - low < SPAN_MAX && low == floor(low);
    for (size_t i = 0; whole && i < values->count; i++) {
        whole = values->at[i] == floor(values->at[i]);
        counts[(size_t)(values->at[i] - low)]++;
    }
    for (size_t k = 0, i = 0; whole && k < SPAN_MAX; k++)
        for (uint32_t left = counts[k]; left; left--)
            values->at[i++] = low + (double)k;
    return whole;
}

void l2_values_sort(struct l2_values *values)
{
    if (values->count && !sort_by_counting(values))
        qsort(values->at, values->count, sizeof *values->at, compare_doubles);
}

double l2_values_quantile(const struct l2_values *sorted, double q)
{
    return cpd_quantile_sorted(sorted->at, sorted->count, q);
}

/* The step of the timer: the greatest number that divides all differences. If loads do not scatter
 * at all it is the distance of two levels, which only widens the fence. */
static double timer_step(const struct l2_values *values)
{
    long long step = 0;
    for (size_t i = 1; i < values->count && step != 1; i++) {
        double off = values->at[i] - values->at[0];
        long long rest = llabs(llround(off));
        if (fabs(off - round(off)) > 0) /* means of readings */
            return 0;
        while (rest) {
            long long next = step % rest;
            step = rest;
            rest = next;
        }
    }
    return (double)step;
}

struct l2_fence l2_values_fence(struct l2_values *values)
{
    l2_values_sort(values);
    double low = l2_values_quantile(values, 0.25), high = l2_values_quantile(values, 0.75);
    double room = FENCE_WIDTHS * (high - low + timer_step(values)) + FENCE_CYCLES;
    return (struct l2_fence){low - room, high + room};
}

double l2_values_mean(struct l2_values *values)
{
    const struct l2_fence fence = l2_values_fence(values);
    size_t first = 0, last = values->count;
    while (first < last && values->at[first] < fence.low)
        first++;
    while (last > first && values->at[last - 1] > fence.high)
        last--;
    return cpd_mean(values->at + first, last - first);
}

double l2_values_mean_below(const struct l2_values *values, double cap)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < values->count; i++) {
        if (values->at[i] > cap)
            continue;
        sum += values->at[i];
        count++;
    }
    return count ? sum / (double)count : NAN;
}

double l2_values_share_above(const struct l2_values *sorted, double cycles)
{
    size_t low = 0, high = sorted->count; /* the first one above is among these */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted->at[middle] > cycles)
            high = middle;
        else
            low = middle + 1;
    }
    return sorted->count ? (double)(sorted->count - low) / (double)sorted->count : 0;
}

double l2_values_parting(const struct l2_values *lower, const struct l2_values *higher, double from,
                         double to)
{
    double least = INFINITY, first = from, last = from;
    for (int i = 0; i <= TRIES; i++) {
        double at = from + (to - from) * i / TRIES;
        double wrong = l2_values_share_above(lower, at) + 1 - l2_values_share_above(higher, at);
        if (wrong < least)
            first = at;
        if (wrong <= least)
            last = at;
        least = fmin(least, wrong);
    }
    return (first + last) / 2;
}

/* Where sorted values part into two levels; 0: they do not. */
static int find_split(const double *sorted, size_t count, double gap_min, size_t *out_split)
{
    size_t split = 0, valley = 0;
    double gain;
    *out_split = 0;
    int rc = cpd_single(sorted, count, CPD_COST_MEAN, &split, &gain);
    if (rc || !split)
        return rc == -ENOMEM ? rc : 0;
    double low = cpd_mean(sorted, split), high = cpd_mean(sorted + split, count - split);
    double gap = high - low, least = LEVEL_MIN * (double)count;
    for (size_t i = 0; i < count; i++)
        valley += fabs(sorted[i] - (low + high) / 2) < gap / 6;
    if (gap >= gap_min && (double)valley <= VALLEY_MAX * (double)count && (double)split >= least &&
        (double)(count - split) >= least)
        *out_split = split;
    return 0;
}

int l2_values_levels(const struct l2_values *sorted, double gap, size_t most, double *out_levels,
                     size_t *out_count, struct err *err)
{
    const double *at = sorted->at;
    size_t left = sorted->count, split = 0, count = 0;
    while (left) {
        size_t end = left;
        /* The lowest level of what is left. */
        do {
            int rc = count + 1 < most ? find_split(at, end, gap, &split) : 0;
            if (rc)
                return err_no_memory(err);
            end = split ? split : end;
        } while (split);
        out_levels[count++] = cpd_mean(at, end);
        at += end;
        left -= end;
    }
    *out_count = count;
    return 0;
}
