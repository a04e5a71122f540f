/* A robust line through figures over time. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_LINE_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_LINE_H

#include <stddef.h>
#include <stdint.h>

/* Fewer points do not make a trend. */
enum { HISTORY_LINE_MIN = 5 };

struct history_point {
    double day, share;
    uint32_t survey; /* its number in the history */
};

struct history_line {
    double change;            /* from the first point to the last, share of the first */
    double days;              /* between them */
    double scatter;           /* standard deviation of the points around the line */
    double error_per_scatter; /* standard error of `change` for a scatter of 1 */
    double rising,
        falling;  /* shares of the pairs of points of which the later one is higher, lower */
    size_t count; /* points that the line was fitted to */
};

/* Theil-Sen line: its slope is the median of the slopes of all pairs. Many points are first
 * replaced by medians of neighbours, in place. At least HISTORY_LINE_MIN points with rising days. 0
 * or -ENOMEM. */
int history_line_fit(struct history_point *points, size_t count, struct history_line *out_line);

#endif
