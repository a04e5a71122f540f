/* Each further instruction costs the same as long as the code fits into a cache. Behind that, code
 * that replaces itself costs more than code that is never there: with LRU and k ways, one line too
 * many in a set evicts k + 1 lines. So a further instruction costs more in the transition than
 * in the level that follows. The costs of the levels are those that no longer code undercuts. */
#include "probes/caches/code_levels.h"

#include <math.h>
#include <stdbool.h>

#include "cpd/cpd.h"

/* Costs are differences over three points, since an H200 fetches 1.5 KiB at once beyond the first
 * level, and medians of nine of them: jumps in between are no capacities. */
enum { WINDOW = 9, RUN_MIN = 5, STEEP_MIN = 5 };

/* A level costs more than the one before by this share, and varies by less than this. */
static const double STEP_SHARE = 0.12, RISE_SHARE = 0.035;

/* Of the additional cost of a transition: what belongs to its steep part, and what shows that a
 * point is beyond the level. */
static const double STEEP_SHARE = 0.8, BEYOND_SHARE = 0.15;

/* Of the points of a stretch: so many must cost the same as a level to belong to it, and so many
 * differences must be near the cost of a level. */
static const double SAME_SHARE = 0.7, CLEAR_SHARE = 0.6;

struct costs {
    double raw[CODE_POINTS_MAX];   /* from a point to the third one behind it */
    double cost[CODE_POINTS_MAX];  /* medians of these */
    double least[CODE_POINTS_MAX]; /* of all longer code */
    size_t count;
};

static double cost_between(const struct code_curve *curve, size_t a, size_t b)
{
    return (curve->cycles[b] - curve->cycles[a]) / (double)(curve->lengths[b] - curve->lengths[a]);
}

static void measure_costs(const struct code_curve *curve, struct costs *costs)
{
    costs->count = curve->count - CODE_ACROSS;
    for (size_t i = 0; i < costs->count; i++)
        costs->raw[i] = cost_between(curve, i, i + CODE_ACROSS);
    for (size_t i = 0; i < costs->count; i++) {
        size_t first = i < WINDOW / 2 ? 0 : i - WINDOW / 2;
        first = first + WINDOW > costs->count ? costs->count - WINDOW : first;
        costs->cost[i] = cpd_quantile(costs->raw + first, WINDOW, 0.5);
    }
    costs->least[costs->count - 1] = costs->cost[costs->count - 1];
    for (size_t i = costs->count - 1; i-- > 0;)
        costs->least[i] = fmin(costs->cost[i], costs->least[i + 1]);
}

/* Whether most points of a stretch cost the same as the level behind it: the least cost may have
 * been lowered by a single dip. A long one is a level, whose transition may cost as much as what is
 * behind it. */
static bool is_same(const struct costs *costs, size_t first, size_t end, double cycles)
{
    size_t same = 0, dip = 0, longest = 0;
    for (size_t i = first; i < end; i++) {
        bool less = costs->cost[i] * (1 + STEP_SHARE) <= cycles;
        same += !less && costs->cost[i] < cycles * (1 + STEP_SHARE);
        dip = less ? dip + 1 : 0;
        longest = dip > longest ? dip : longest;
    }
    return longest < WINDOW && (double)same > SAME_SHARE * (double)(end - first);
}

/* The costs of a stretch without the transition into it. */
static size_t collect_costs(const struct costs *costs, size_t first, size_t end, double *out_costs)
{
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        if (costs->cost[i] <= costs->least[end - 1] * (1 + STEP_SHARE))
            out_costs[count++] = costs->cost[i];
    return count;
}

/* Whether most differences are what their medians say: between a jump and a transition they are
 * not. */
static bool is_clear(const struct costs *costs, size_t first, size_t end, double cycles)
{
    size_t all = 0, near = 0;
    for (size_t i = first; i < end; i++) {
        if (costs->cost[i] > costs->least[end - 1] * (1 + STEP_SHARE))
            continue;
        all++;
        near +=
            costs->raw[i] * (1 + STEP_SHARE) > cycles && costs->raw[i] < cycles * (1 + STEP_SHARE);
    }
    return (double)near > CLEAR_SHARE * (double)all;
}

/* Costs that rise all the time are of a transition. */
static bool is_level(const struct costs *costs, size_t first, size_t end, double *out_cycles)
{
    double kept[CODE_POINTS_MAX];
    size_t count = collect_costs(costs, first, end, kept);
    if (count < RUN_MIN)
        return false;
    *out_cycles = cpd_quantile(kept, count, 0.5);
    return cpd_quantile(kept, count, 0.6) <= cpd_quantile(kept, count, 0.2) * (1 + RISE_SHARE) &&
           is_clear(costs, first, end, *out_cycles);
}

/* From the largest code to the smallest: stretches whose least costs are about the same. */
static size_t find_runs(const struct costs *costs, struct code_level *out_runs)
{
    size_t count = 0;
    for (size_t end = costs->count; end > 0;) {
        double cycles = 0;
        size_t first = end;
        while (first > 0 && costs->least[first - 1] * (1 + STEP_SHARE) >= costs->least[end - 1])
            first--;
        bool joins = count && out_runs[count - 1].first == end &&
                     is_same(costs, first, end, out_runs[count - 1].cycles);
        if (joins)
            out_runs[count - 1].first = first;
        else if (is_level(costs, first, end, &cycles) && count < CODE_LEVELS_MAX)
            out_runs[count++] = (struct code_level){.cycles = cycles, .first = first, .end = end};
        end = first;
    }
    return count;
}

/* Where the transition into `next` ends: behind the costs that are above those of `next`. */
static size_t transition_end(const struct costs *costs, const struct code_level *level,
                             const struct code_level *next)
{
    double over = next->cycles * (1 + STEP_SHARE);
    size_t begin = level->end, soon = level->end + 2 * WINDOW;
    while (begin < next->end && begin < soon && costs->cost[begin] <= over)
        begin++;
    size_t end = begin;
    while (end < next->end && costs->cost[end] > over)
        end++;
    return end;
}

/* The stretch of differences around the highest cost that are nearly as high; empty if the
 * transition is too narrow for medians to show it. */
static void find_steep(const struct costs *costs, const struct code_level *level,
                       const struct code_level *next, size_t end, size_t *out_first,
                       size_t *out_end)
{
    size_t begin = level->end > WINDOW ? level->end - WINDOW : 0, highest = begin;
    for (size_t i = begin; i < end; i++)
        highest = costs->cost[i] > costs->cost[highest] ? i : highest;
    double steep = level->cycles + STEEP_SHARE * (costs->cost[highest] - level->cycles);
    *out_first = *out_end = highest;
    if (costs->cost[highest] <= next->cycles * (1 + STEP_SHARE))
        return;
    while (*out_first > begin && costs->raw[*out_first - 1] > steep)
        --*out_first;
    while (*out_end < end && costs->raw[*out_end] > steep)
        ++*out_end;
}

/* The first point that does not fit: before a steep one, as far as they cost more. */
static size_t first_beyond(const struct code_curve *curve, const struct code_level *level,
                           size_t steep, double steep_cost)
{
    double limit = level->cycles + BEYOND_SHARE * (steep_cost - level->cycles);
    while (steep > 1 && cost_between(curve, steep - 2, steep - 1) > limit)
        steep--;
    return steep;
}

static size_t steepest_point(const struct code_curve *curve, const struct code_level *level,
                             size_t end)
{
    size_t begin = level->end > WINDOW ? level->end - WINDOW : 1, steepest = begin;
    end = end + CODE_ACROSS < curve->count ? end + CODE_ACROSS : curve->count;
    for (size_t i = begin; i < end; i++)
        if (cost_between(curve, i - 1, i) > cost_between(curve, steepest - 1, steepest))
            steepest = i;
    return steepest;
}

/* Whether the points of a steep stretch rise evenly, so that a line describes them. */
static bool is_line(const struct code_curve *curve, const struct code_level *level, size_t first,
                    size_t end)
{
    if (end - first < STEEP_MIN)
        return false;
    double cost = cost_between(curve, first, end - 1), half = (level->cycles + cost) / 2;
    size_t rising = 0, flat = 0;
    for (size_t i = first + 1; i < end; i++)
        if (cost_between(curve, i - 1, i) > half)
            rising++;
        else
            flat++;
    return rising >= STEEP_MIN - 1 && flat * STEEP_MIN <= rising;
}

/* If the transition has only few points: the middle before the first one beyond. */
static double narrow_crossing(const struct code_curve *curve, const struct code_level *level,
                              size_t end)
{
    size_t steepest = steepest_point(curve, level, end);
    size_t point =
        first_beyond(curve, level, steepest, cost_between(curve, steepest - 1, steepest));
    return (curve->lengths[point - 1] + curve->lengths[point]) / 2.0;
}

/* Where the line of the transition meets that of the level. */
static double crossing(const struct code_curve *curve, const struct code_level *level, size_t first,
                       size_t end)
{
    size_t beyond = first_beyond(curve, level, first + 1, cost_between(curve, first, end - 1));
    size_t count = beyond < WINDOW ? beyond : WINDOW;
    double base[WINDOW], n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = beyond - 1 - i;
        base[i] = curve->cycles[at] - level->cycles * curve->lengths[at];
    }
    for (size_t i = first; i < end; i++, n++) {
        double x = curve->lengths[i], y = curve->cycles[i] - level->cycles * x;
        sum_x += x, sum_y += y, sum_xx += x * x, sum_xy += x * y;
    }
    double slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
    double start = (sum_y - slope * sum_x) / n;
    return (cpd_quantile(base, count, 0.5) - start) / slope;
}

/* Sets what a level holds, and where the next one begins. */
static void code_divide(const struct code_curve *curve, const struct costs *costs,
                        struct code_level *level, struct code_level *next)
{
    size_t first, end, last = transition_end(costs, level, next);
    find_steep(costs, level, next, last, &first, &end);
    if (end > first && is_line(curve, level, first, end + CODE_ACROSS))
        level->holds = crossing(curve, level, first, end + CODE_ACROSS);
    else
        level->holds = narrow_crossing(curve, level, last);
    if (last > next->first && last + RUN_MIN < next->end)
        next->first = last;
}

void code_levels_find(const struct code_curve *curve, struct code_levels *out_levels)
{
    struct costs costs;
    struct code_level runs[CODE_LEVELS_MAX];
    *out_levels = (struct code_levels){0};
    if (curve->count < CODE_ACROSS + WINDOW)
        return;
    measure_costs(curve, &costs);
    size_t count = find_runs(&costs, runs);
    for (size_t i = 0; i < count; i++)
        out_levels->levels[i] = runs[count - 1 - i];
    out_levels->count = count;
    for (size_t i = 0; i + 1 < count; i++)
        code_divide(curve, &costs, &out_levels->levels[i], &out_levels->levels[i + 1]);
}

/* A rise that begins further before the last point below it, as a share, is of several levels. */
static const double RISE_BEFORE = 0.15;

/* Of the share at which the rise counts: below this part of it nothing rises yet. */
static const double NOTHING_PART = 0.25;

size_t code_rise_first(const struct code_rise *rise)
{
    size_t first = rise->count;
    while (first > 0 && rise->shares[first - 1] > rise->low)
        first--;
    return first;
}

/* How far before the last point at which nothing rises yet the line begins: sets that are filled
 * unevenly bend the rise. */
static double begins_before(const struct code_rise *rise, size_t first, double begin)
{
    size_t none = first;
    while (none > 0 && rise->shares[none - 1] > NOTHING_PART * rise->low)
        none--;
    return none ? fmax(0, rise->at[none - 1] - begin) : 0;
}

double code_rise_begin(const struct code_rise *rise, double *out_error)
{
    size_t first = code_rise_first(rise);
    double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, sum_yy = 0;
    for (size_t i = first; i < rise->count && rise->shares[i] <= rise->high; i++, n++) {
        double x = rise->at[i], y = rise->shares[i];
        sum_x += x, sum_y += y, sum_xx += x * x, sum_xy += x * y, sum_yy += y * y;
    }
    double wide = sum_xx - sum_x * sum_x / n, slope = (sum_xy - sum_x * sum_y / n) / wide;
    *out_error = 0;
    if (!first || first == rise->count)
        return NAN;
    double last = rise->at[first - 1];
    if (n < 2 || slope <= 0)
        return (last + rise->at[first]) / 2;
    double begin = (sum_x - sum_y / slope) / n;
    if (n > 2) {
        double rest = fmax(0, sum_yy - sum_y * sum_y / n - slope * slope * wide) / (n - 2);
        double before = sum_x / n - begin;
        *out_error = sqrt(rest * (1 / n + before * before / wide)) / slope;
    }
    *out_error = fmax(*out_error, begins_before(rise, first, begin));
    return begin > (1 - RISE_BEFORE) * last ? begin : NAN;
}
