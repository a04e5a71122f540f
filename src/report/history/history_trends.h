/* Figures that get worse from survey to survey. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_TRENDS_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_TRENDS_H

#include "report/history/history.h"

/* The trend of one figure of a GPU against the other GPUs of its model, or of a whole model. */
struct history_trend {
    const struct history_gpu *gpu; /* NULL: the whole model */
    uint32_t model, metric;        /* symbols */
    double change;                 /* share, from the first to the last survey on the fitted line */
    double error;                  /* standard error of `change` */
    double scatter;                /* share: of one survey around the line */
    double first, last;            /* values in these surveys; NaN for a model */
    double days;
    size_t surveys;
};

/* Fills history->trends; the method is in docs/report.md. */
void history_trends_find(struct history *history, const struct judge_config *config);

#endif
