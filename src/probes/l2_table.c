/* Latencies of single loads of L2, element by element, and the levels that they part into. */
#include "probes/l2_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"

enum {
    GROUPS = 3,      /* of repeats: each latency is measured so often */
    TRIMMED_OF = 32, /* one in so many elements is left out at each end */
    TIMER_STEP_MAX = 8,
};

/* Two levels: so far apart (share of a near hit, cycles), so few elements in the middle third
 * between them (normal scatter has 20 % there), so many elements in the smaller one, and so many
 * on the same side in both halves of the repeats. */
static const double GAP_SHARE = 0.03, GAP_CYCLES = 4, VALLEY_MAX = 0.08, SIDE_MIN = 0.2;
const double L2_TABLE_AGREEMENT = 0.9;

/* And so many steps of the timer: neighbouring readings are no levels. */
static const double GAP_STEPS = 3;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double l2_table_median(const struct l2_table *table, size_t element, size_t first, size_t step)
{
    double values[L2_REPEATS_MAX];
    size_t count = 0;
    for (size_t r = first; r < table->repeats; r += step)
        values[count++] = table->cycles[r * table->elements + element];
    return cpd_median(values, count);
}

/* As deaf to spikes as the median, and finer where all values are whole numbers. Sorts. */
static double middle_mean(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return cpd_mean(values + count / 4, count - 2 * (count / 4));
}

/* Of all elements within [from, to), over every GROUPS-th repeat, or of every GROUPS-th element. */
static int group_latency(const struct l2_table *table, const double *medians, double from,
                         double to, size_t group, double *out_cycles)
{
    double *values = mem_array(table->elements, sizeof *values);
    size_t count = 0;
    if (!values)
        return -ENOMEM;
    bool repeated = table->repeats >= GROUPS;
    for (size_t e = 0; e < table->elements; e++)
        if (medians[e] >= from && medians[e] < to && (repeated || e % GROUPS == group))
            values[count++] = l2_table_median(table, e, repeated ? group : 0, GROUPS);
    *out_cycles = middle_mean(values, count);
    free(values);
    return 0;
}

static int level_latency(const struct l2_table *table, const double *medians, double from,
                         double to, struct l2_latency *out_latency)
{
    double groups[GROUPS];
    for (size_t g = 0; g < GROUPS; g++) {
        int rc = group_latency(table, medians, from, to, g, &groups[g]);
        if (rc)
            return rc;
    }
    out_latency->cycles = cpd_median(groups, GROUPS);
    out_latency->spread = (cpd_quantile(groups, GROUPS, 1) - cpd_quantile(groups, GROUPS, 0)) / 2;
    return 0;
}

/* The step in which the timer counts: the greatest that divides all differences; where that is
 * larger than a timer's, loads do not scatter at all and it is the distance of two levels. */
static double timer_step(const struct l2_table *table)
{
    long long step = 0;
    for (size_t i = 1; i < table->repeats * table->elements && step != 1; i++) {
        long long rest = llabs(llround(table->cycles[i] - table->cycles[0]));
        while (rest) {
            long long next = step % rest;
            step = rest;
            rest = next;
        }
    }
    return step > TIMER_STEP_MAX ? 1 : (double)step;
}

/* Where the elements part best into a lower and an upper level, and whether they do. near: what the
 * gap is held against. */
static bool find_parting(const struct l2_table *table, const double *medians, const double *sorted,
                         double near, double *out_parting)
{
    size_t n = table->elements, split;
    double gain;
    /* Without the outermost: single slow loads would be a level of their own. */
    size_t cut = n / TRIMMED_OF, inner = n - 2 * cut;
    sorted += cut;
    if (cpd_single(sorted, inner, CPD_COST_MEAN, &split, &gain) || !split)
        return false;
    double low = cpd_mean(sorted, split), high = cpd_mean(sorted + split, inner - split);
    double gap = high - low, middle = (low + high) / 2;
    if (gap < fmax(GAP_CYCLES, GAP_STEPS * timer_step(table)) || gap < GAP_SHARE * near)
        return false;
    size_t valley = 0, agreeing = 0, upper = 0;
    for (size_t e = 0; e < n; e++) {
        valley += fabs(medians[e] - middle) < gap / 6;
        upper += medians[e] > middle;
        agreeing += table->repeats < 2 || (l2_table_median(table, e, 0, 2) > middle) ==
                                              (l2_table_median(table, e, 1, 2) > middle);
    }
    double smaller = (double)(upper < n - upper ? upper : n - upper);
    *out_parting = middle;
    return (double)valley <= VALLEY_MAX * (double)n && smaller >= SIDE_MIN * (double)n &&
           (double)agreeing >= L2_TABLE_AGREEMENT * (double)n;
}

int l2_table_levels(const struct l2_table *table, const struct l2_table *parted, double near,
                    struct l2_levels *out_levels, struct err *err)
{
    double *medians = mem_array(2 * parted->elements, sizeof *medians);
    if (!medians)
        return err_no_memory(err);
    double *sorted = medians + parted->elements;
    for (size_t e = 0; e < parted->elements; e++)
        medians[e] = l2_table_median(parted, e, 0, 1);
    memcpy(sorted, medians, parted->elements * sizeof *sorted);
    qsort(sorted, parted->elements, sizeof *sorted, compare_doubles);
    struct l2_levels levels = {0};
    levels.two = near > 0 && find_parting(parted, medians, sorted, near, &levels.parting);
    if (!levels.two)
        levels.parting = INFINITY;
    int rc = level_latency(table, medians, -INFINITY, levels.parting, &levels.low);
    if (!rc && levels.two)
        rc = level_latency(table, medians, levels.parting, INFINITY, &levels.high);
    free(medians);
    if (rc)
        return err_no_memory(err);
    *out_levels = levels;
    return 0;
}

double l2_table_share_above(const struct l2_table *table, double cycles)
{
    size_t above = 0, all = table->repeats * table->elements;
    for (size_t i = 0; i < all; i++)
        above += table->cycles[i] > cycles;
    return (double)above / (double)all;
}

int l2_table_scatter(const struct l2_table *table, double *out_sigma, struct err *err)
{
    size_t all = table->repeats * table->elements;
    double *off = mem_array(all, sizeof *off);
    if (!off)
        return err_no_memory(err);
    for (size_t e = 0; e < table->elements; e++) {
        double median = l2_table_median(table, e, 0, 1);
        for (size_t r = 0; r < table->repeats; r++) {
            size_t at = r * table->elements + e;
            off[at] = table->cycles[at] - median;
        }
    }
    *out_sigma = 1.4826 * cpd_mad(off, all);
    free(off);
    return 0;
}

int l2_table_init(struct l2_table *table, size_t repeats, size_t elements, struct err *err)
{
    free(table->cycles);
    table->repeats = repeats;
    table->elements = elements;
    table->cycles = mem_array(repeats * elements, sizeof *table->cycles);
    return table->cycles ? 0 : err_no_memory(err);
}

void l2_table_put(struct l2_table *table, size_t repeat, const struct device_sample *sample)
{
    for (size_t e = 0; e < table->elements && e < sample->kept_count; e++)
        table->cycles[repeat * table->elements + e] = sample->kept[e];
}

void l2_table_fini(struct l2_table *table)
{
    free(table->cycles);
    *table = (struct l2_table){0};
}
