/* Figures over time: one figure of the GPUs of one model over the surveys of a history, and a
 * robust line through it. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_SERIES_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_SERIES_H

#include "report/history/history.h"

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
 * replaced by medians of neighbours, in place. At least HISTORY_LINE_MIN points with rising days.
 */
struct history_line history_line_fit(struct history_point *points, size_t count);

struct history_series {
    const struct history *history;
    uint32_t metric;                 /* symbol */
    const struct history_gpu **gpus; /* of the model */
    size_t gpu_count;
    double *levels; /* by survey: the usual value of a GPU over its own median; NaN: too few GPUs */
    double *scratch; /* room for one value of each survey */
};

/* The model in which a GPU was measured last, as a symbol. */
uint32_t history_series_model(const struct history_gpu *gpu);

/* The figure of a GPU in one survey; NaN: not measured (again). */
double history_series_value(const struct history_series *series,
                            const struct history_sighting *sighting);

/* Fills `levels`: what a new driver changes for all GPUs is no change of one of them. */
void history_series_levels(struct history_series *series);

/* The points of a GPU as shares of its median, with levelled at equal level of its model; surveys
 * without a level are then left out. points: room for one of each survey. Returns their number. */
size_t history_series_points(const struct history_series *series, const struct history_gpu *gpu,
                             bool levelled, struct history_point *points);

/* The levels themselves as points. Returns their number. */
size_t history_series_level_points(const struct history_series *series,
                                   struct history_point *points);

#endif
