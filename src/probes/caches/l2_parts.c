/* The parts of L2: what both methods of finding them share, and the method for an L2 without
 * copies. */
#include "probes/caches/l2_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cpd/cpd.h"

enum {
    TRIES = 64,      /* positions at which a threshold is tried */
    SPAN_MAX = 4096, /* largest range, in cycles, of values that are sorted by counting */
};

static const double FENCE_WIDTHS = 3, FENCE_CYCLES = 8;

/* Two levels have at most this share of values in the middle third between them (uniform values
 * have a third there), and the smaller level has at least this share. */
static const double VALLEY_MAX = 0.08, LEVEL_MIN = 0.1;

void l2_values_add(struct l2_values *values, double value)
{
    if (values->count == values->room) {
        double *grown = mem_grow(values->at, &values->room, values->count + 1, sizeof *grown);
        values->at = grown;
    }
    values->at[values->count++] = value;
}

void l2_values_fini(struct l2_values *values)
{
    free(values->at);
    *values = (struct l2_values){0};
}

static int l2_values_compare_doubles(const void *a, const void *b)
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
        sort_stable(values->at, values->count, sizeof *values->at, l2_values_compare_doubles);
}

double l2_values_quantile(const struct l2_values *sorted, double q)
{
    return cpd_quantile_sorted(sorted->at, sorted->count, q);
}

double l2_timer_step(const struct l2_values *values)
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
    double room = FENCE_WIDTHS * (high - low + l2_timer_step(values)) + FENCE_CYCLES;
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
static void l2_values_find_split(const double *sorted, size_t count, double gap_min,
                                 size_t *out_split)
{
    size_t split = 0, valley = 0;
    double gain;
    *out_split = 0;
    int rc = cpd_single(sorted, count, CPD_COST_MEAN, &split, &gain);
    if (rc || !split)
        return;
    double low = cpd_mean(sorted, split), high = cpd_mean(sorted + split, count - split);
    double gap = high - low, least = LEVEL_MIN * (double)count;
    for (size_t i = 0; i < count; i++)
        valley += fabs(sorted[i] - (low + high) / 2) < gap / 6;
    if (gap >= gap_min && (double)valley <= VALLEY_MAX * (double)count && (double)split >= least &&
        (double)(count - split) >= least)
        *out_split = split;
}

void l2_values_levels(const struct l2_values *sorted, double gap, size_t most, double *out_levels,
                      size_t *out_count)
{
    const double *at = sorted->at;
    size_t left = sorted->count, split = 0, count = 0;
    while (left) {
        size_t end = left;
        /* The lowest level of what is left. */
        do {
            if (count + 1 < most)
                l2_values_find_split(at, end, gap, &split);
            end = split ? split : end;
        } while (split);
        out_levels[count++] = cpd_mean(at, end);
        at += end;
        left -= end;
    }
    *out_count = count;
}

/* Levels closer than this many cycles are one level. */
static const double LEVEL_GAP = 4;

size_t l2_sample_sms(struct probe_context *context, int32_t *out_sms)
{
    size_t sms = device_limits(context->device)->sm_count;
    size_t count = sms < L2_SAMPLE_MAX ? sms : L2_SAMPLE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t first = i * sms / count, next = (i + 1) * sms / count;
        out_sms[i] = i ? (int32_t)(first + probe_seed(context) % (next - first)) : 0;
    }
    return count;
}

void l2_parts_fini(struct l2_parts *parts)
{
    l2_values_fini(&parts->far_loads);
    l2_values_fini(&parts->far_lines);
    free(parts->part_of_sm);
    free(parts->seen_part);
    free(parts->home_of_element);
    *parts = (struct l2_parts){0};
}

/* Half the range of three means, each of every third value up to the cap. */
static double far_spread(const struct l2_values *loads, double cap)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t g = 0; g < L2_GROUPS; g++) {
        double sum = 0, count = 0;
        for (size_t i = g; i < loads->count; i += L2_GROUPS)
            if (loads->at[i] <= cap) {
                sum += loads->at[i];
                count++;
            }
        low = fmin(low, sum / count);
        high = fmax(high, sum / count);
    }
    return (high - low) / 2;
}

/* Nothing is cut off below: the lowest of three far levels may have only a third of the loads. */
void l2_parts_set_far(struct l2_parts *parts, double near_width)
{
    const struct l2_fence lines = l2_values_fence(&parts->far_lines);
    struct l2_values ordered = {0}, inside = parts->far_lines;
    for (size_t i = 0; i < parts->far_loads.count; i++)
        l2_values_add(&ordered, parts->far_loads.at[i]);
    double cap = l2_values_fence(&parts->far_loads).high;
    parts->far =
        (struct l2_latency){l2_values_mean_below(&ordered, cap), far_spread(&ordered, cap)};
    l2_values_fini(&ordered);
    while (inside.count && inside.at[inside.count - 1] > lines.high)
        inside.count--;
    l2_values_levels(&inside, fmax(near_width, LEVEL_GAP), L2_PARTS_MAX - 1, parts->levels,
                     &parts->level_count);
}

/* L2 in parts without copies: a line is near to the SMs of one part and far from all others.
 *
 * All SMs time the same elements. If L2 has one part, all SMs see the same differences between
 * elements, however far apart its slices are. With several parts, SMs of one part see the same
 * differences and SMs of different parts do not, and each element is near to exactly one group of
 * SMs. A difference between two SMs counts only if it shows in both halves of the passes; otherwise
 * it is noise. */

enum { HALVES = 2, LEADERS_MAX = 16, FEW_SMS = 8, CUT_OF = 50 };

/* Smaller differences, in standard errors, do not count. */
static const double SIGNIFICANT = 4;

/* An element is undecided if it is nearer to one group than to the next by less than a third of the
 * usual margin. With a larger share of undecided elements than UNDECIDED_MAX, these are slices at
 * all distances and no parts; above the second limit, the parts are in doubt. */
static const double UNDECIDED_THIRD = 1.0 / 3, UNDECIDED_MAX = 0.2, UNDECIDED_CLEAR = 0.08;

/* A part is the home of at least this share of the elements that an even division gives it, and has
 * at least this share of the SMs. */
static const double HOME_MIN = 0.5, GROUP_MIN = 1.0 / 16;

struct homes {
    const struct l2_hits *hits;
    double gap_min;
    double mean;     /* of all loads */
    double *rows;    /* by half of the passes, then by SM: latency less the SM's mean */
    uint8_t *groups; /* group of each SM */
    size_t leaders[LEADERS_MAX], sizes[LEADERS_MAX], group_count;
    size_t odd;   /* SMs in groups of several that were too small for a part */
    double *seen; /* by group: mean of the rows of its SMs */
};

static double *row_of(const struct homes *homes, size_t half, size_t sm)
{
    return homes->rows + (half * homes->hits->sms + sm) * homes->hits->elements;
}

/* Readings beyond the fence count as the fence. */
static void homes_fill_rows(struct homes *homes, size_t sm)
{
    const struct l2_hits *hits = homes->hits;
    struct l2_values all = {0};
    for (size_t i = 0; i < L2_PASSES * hits->elements; i++)
        l2_values_add(&all, l2_hit(hits, sm, 0, i));
    const struct l2_fence fence = l2_values_fence(&all);
    double mean = 0;
    for (size_t i = 0; i < all.count; i++)
        mean += fmin(all.at[i], fence.high) / (double)all.count;
    homes->mean += mean / (double)hits->sms;
    for (size_t pass = 0; pass < L2_PASSES; pass++)
        for (size_t e = 0; e < hits->elements; e++)
            row_of(homes, pass % HALVES, sm)[e] +=
                (fmin(l2_hit(hits, sm, pass, e), fence.high) - mean) / (L2_PASSES / HALVES);
    l2_values_fini(&all);
}

static int homes_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Variance over the elements of the difference between two SMs, without noise; 0 unless it is
 * significant. The most extreme elements are left out: two spikes in the same one would be
 * enough. */
static double difference(const struct homes *homes, size_t a, size_t b)
{
    size_t n = homes->hits->elements, cut = n / CUT_OF + 1, count = n > 2 * cut ? n - 2 * cut : 0;
    double products[L2_ELEMENTS_MAX], mean = 0, squares = 0;
    for (size_t e = 0; e < n; e++)
        products[e] = (row_of(homes, 0, a)[e] - row_of(homes, 0, b)[e]) *
                      (row_of(homes, 1, a)[e] - row_of(homes, 1, b)[e]);
    sort_stable(products, n, sizeof *products, homes_compare_doubles);
    for (size_t i = cut; i < cut + count; i++) {
        mean += products[i] / (double)count;
        squares += products[i] * products[i] / (double)count;
    }
    double error = sqrt(fmax(squares - mean * mean, 0) / (double)(count + 1));
    return mean > SIGNIFICANT * error ? mean : 0;
}

/* Half of the elements may be equally far from both SMs. */
static bool sees_the_same(const struct homes *homes, size_t a, size_t b)
{
    return difference(homes, a, b) < homes->gap_min * homes->gap_min / 2;
}

/* Each SM joins the first one that sees the same. False: there are too many different groups. */
static bool homes_group_sms(struct homes *homes)
{
    for (size_t sm = 0; sm < homes->hits->sms; sm++) {
        size_t g = 0;
        while (g < homes->group_count && !sees_the_same(homes, sm, homes->leaders[g]))
            g++;
        if (g == LEADERS_MAX)
            return false;
        if (g == homes->group_count)
            homes->leaders[homes->group_count++] = sm;
        homes->groups[sm] = (uint8_t)g;
        homes->sizes[g]++;
    }
    return true;
}

static bool is_small(const struct homes *homes, size_t group)
{
    size_t sms = homes->hits->sms;
    return sms >= FEW_SMS &&
           (homes->sizes[group] < 2 || (double)homes->sizes[group] < GROUP_MIN * (double)sms);
}

/* A few odd SMs are no group: each joins the group that it differs least from. */
static void dissolve_small(struct homes *homes)
{
    size_t kept = 0, renamed[LEADERS_MAX];
    for (size_t g = 0; g < homes->group_count; g++) {
        renamed[g] = LEADERS_MAX;
        if (is_small(homes, g)) {
            homes->odd += homes->sizes[g] > 1 ? homes->sizes[g] : 0;
            continue;
        }
        homes->leaders[kept] = homes->leaders[g];
        renamed[g] = kept++;
    }
    for (size_t sm = 0; sm < homes->hits->sms; sm++) {
        size_t group = renamed[homes->groups[sm]], best = 0;
        for (size_t g = 1; g < kept; g++)
            if (difference(homes, sm, homes->leaders[g]) <
                difference(homes, sm, homes->leaders[best]))
                best = g;
        homes->groups[sm] = (uint8_t)(group < LEADERS_MAX ? group : best);
    }
    homes->group_count = kept;
}

static void average_groups(struct homes *homes)
{
    size_t n = homes->hits->elements, sizes[L2_PARTS_MAX] = {0};
    homes->seen = mem_array(homes->group_count * n, sizeof *homes->seen);
    for (size_t sm = 0; sm < homes->hits->sms; sm++)
        sizes[homes->groups[sm]]++;
    for (size_t sm = 0; sm < homes->hits->sms; sm++)
        for (size_t e = 0; e < n; e++)
            homes->seen[homes->groups[sm] * n + e] +=
                (row_of(homes, 0, sm)[e] + row_of(homes, 1, sm)[e]) / HALVES /
                (double)sizes[homes->groups[sm]];
}

/* Finds the home of each element. margins: how much nearer the home is than the next group. */
static void find_homes(const struct homes *homes, struct l2_parts *parts, struct l2_values *margins,
                       size_t *counts)
{
    size_t n = homes->hits->elements;
    for (size_t e = 0; e < n; e++) {
        double first = INFINITY, second = INFINITY;
        for (size_t g = 0; g < homes->group_count; g++) {
            double cycles = homes->seen[g * n + e];
            if (cycles < first) {
                second = first;
                first = cycles;
                parts->home_of_element[e] = (uint8_t)g;
            } else {
                second = fmin(second, cycles);
            }
        }
        counts[parts->home_of_element[e]]++;
        l2_values_add(margins, second - first);
    }
    l2_values_sort(margins);
}

/* True if elements and groups fit together as parts of L2 do. */
static bool are_parts(const struct homes *homes, const struct l2_values *margins,
                      const size_t *counts, struct l2_parts *parts)
{
    double usual = l2_values_quantile(margins, 0.5);
    double undecided = 1 - l2_values_share_above(margins, UNDECIDED_THIRD * usual);
    double even = (double)homes->hits->elements / (double)homes->group_count;
    if (usual < homes->gap_min || undecided > UNDECIDED_MAX)
        return false;
    for (size_t g = 0; g < homes->group_count; g++)
        if ((double)counts[g] < HOME_MIN * even)
            return false;
    if (undecided > UNDECIDED_CLEAR)
        snprintf(parts->doubt, sizeof parts->doubt,
                 "%.0f %% of the lines are hardly nearer to one group of SMs than to another",
                 100 * undecided);
    else if (homes->odd)
        snprintf(parts->doubt, sizeof parts->doubt,
                 "%zu SMs see L2 as no other SMs do: there may be a further part", homes->odd);
    parts->confidence = 1 - undecided - 1 / (double)homes->hits->elements;
    return true;
}

/* All loads of lines whose home is not the SM's part; and the width of near ones, as means over the
 * SMs of a part. */
static void homes_collect_far(const struct homes *homes, struct l2_parts *parts, double *out_width)
{
    const struct l2_hits *hits = homes->hits;
    struct l2_values near = {0};
    for (size_t e = 0; e < hits->elements; e++) {
        uint8_t home = parts->home_of_element[e];
        l2_values_add(&near, homes->seen[home * hits->elements + e]);
        for (size_t g = 0; g < homes->group_count; g++)
            if (g != home)
                l2_values_add(&parts->far_lines, homes->mean + homes->seen[g * hits->elements + e]);
        for (size_t i = 0; i < hits->sms * L2_PASSES; i++)
            if (homes->groups[i / L2_PASSES] != home)
                l2_values_add(&parts->far_loads, l2_hit(hits, 0, i, e));
    }
    l2_values_sort(&near);
    *out_width = l2_values_quantile(&near, 0.95) - l2_values_quantile(&near, 0.05);
    l2_values_fini(&near);
}

static void homes_judge_groups(struct homes *homes, struct l2_parts *parts)
{
    struct l2_values margins = {0};
    size_t counts[L2_PARTS_MAX] = {0};
    double width;
    average_groups(homes);
    find_homes(homes, parts, &margins, counts);
    if (!are_parts(homes, &margins, counts, parts))
        goto out;
    parts->count = (uint32_t)homes->group_count;
    for (size_t sm = homes->hits->sms; sm-- > 0;) {
        parts->sms[homes->groups[sm]] = (int32_t)sm;
        parts->part_of_sm[sm] = homes->groups[sm];
    }
    homes_collect_far(homes, parts, &width);
    l2_parts_set_far(parts, width);
out:
    l2_values_fini(&margins);
}

void l2_look_for_homes(const struct l2_hits *hits, double gap, struct l2_parts *out_parts)
{
    struct homes homes = {.hits = hits, .gap_min = gap};
    homes.rows = mem_array(HALVES * hits->sms * hits->elements, sizeof *homes.rows);
    homes.groups = mem_array(hits->sms, sizeof *homes.groups);
    out_parts->part_of_sm = mem_array(hits->sms, sizeof *out_parts->part_of_sm);
    out_parts->home_of_element = mem_array(hits->elements, sizeof *out_parts->home_of_element);
    for (size_t sm = 0; sm < hits->sms; sm++)
        homes_fill_rows(&homes, sm);
    if (homes_group_sms(&homes)) {
        dissolve_small(&homes);
        if (homes.group_count > 1 && homes.group_count <= L2_PARTS_MAX)
            homes_judge_groups(&homes, out_parts);
    }
    free(homes.rows);
    free(homes.groups);
    free(homes.seen);
}
