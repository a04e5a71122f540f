/* One figure of the GPUs of one model over the surveys of a history. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_SERIES_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_SERIES_H

#include "report/history/history.h"
#include "report/history/history_line.h"

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

/* Fills `levels`: what a new driver changes for all GPUs is no change of one of them. 0 or
 * -ENOMEM. */
int history_series_levels(struct history_series *series);

/* The points of a GPU as shares of its median, with levelled at equal level of its model; surveys
 * without a level are then left out. points: room for one of each survey. Returns their number. */
size_t history_series_points(const struct history_series *series, const struct history_gpu *gpu,
                             bool levelled, struct history_point *points);

/* The levels themselves as points. Returns their number. */
size_t history_series_level_points(const struct history_series *series,
                                   struct history_point *points);

#endif
