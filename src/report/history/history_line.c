/* A robust line through figures over time. */
#include "report/history/history_line.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/robust.h"

/* The number of pairs grows with the square. */
enum { POINTS_MAX = 48 };

/* Replaces neighbours by their medians; returns how many points remain. */
static size_t thin(struct history_point *points, size_t count, double *scratch)
{
    if (count <= POINTS_MAX)
        return count;
    for (size_t i = 0; i < POINTS_MAX; i++) {
        size_t from = i * count / POINTS_MAX, to = (i + 1) * count / POINTS_MAX;
        struct history_point middle;
        for (size_t k = from; k < to; k++)
            scratch[k - from] = points[k].day;
        middle.day = robust_median(scratch, to - from);
        for (size_t k = from; k < to; k++)
            scratch[k - from] = points[k].share;
        middle.share = robust_median(scratch, to - from);
        points[i] = middle;
    }
    return POINTS_MAX;
}

/* Returns the slope, and counts the pairs that rise and fall. */
static double slope_of(const struct history_point *points, size_t count, double *slopes,
                       struct history_line *out)
{
    size_t pairs = 0, rising = 0, falling = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            double slope = (points[k].share - points[i].share) / (points[k].day - points[i].day);
            rising += slope > 0;
            falling += slope < 0;
            slopes[pairs++] = slope;
        }
    out->rising = (double)rising / (double)pairs;
    out->falling = (double)falling / (double)pairs;
    return robust_median(slopes, pairs);
}

int history_line_fit(struct history_point *points, size_t count, struct history_line *out_line)
{
    struct history_line line = {.days = points[count - 1].day - points[0].day};
    const size_t most = count < POINTS_MAX ? count : POINTS_MAX, pairs = most * (most - 1) / 2;
    double *scratch = mem_array(count > pairs ? count : pairs, sizeof *scratch);
    double mean = 0, spread = 0, squares = 0;
    if (!scratch)
        return -ENOMEM;
    const size_t n = thin(points, count, scratch);
    const double slope = slope_of(points, n, scratch, &line);
    for (size_t i = 0; i < n; i++) {
        mean += points[i].day / (double)n;
        scratch[i] = points[i].share - slope * (points[i].day - points[0].day);
    }
    const double start = robust_median(scratch, n);
    for (size_t i = 0; i < n; i++) {
        double rest = points[i].share - start - slope * (points[i].day - points[0].day);
        squares += rest * rest;
        spread += (points[i].day - mean) * (points[i].day - mean);
    }
    line.change = slope * line.days / start;
    line.scatter = sqrt(squares / (double)(n - 2));
    line.error_per_scatter = line.days / sqrt(spread) / start;
    line.count = n;
    free(scratch);
    *out_line = line;
    return 0;
}
