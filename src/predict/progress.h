/* The progress line on a terminal. */
#ifndef GPUMEMTOPO_PREDICT_PROGRESS_H
#define GPUMEMTOPO_PREDICT_PROGRESS_H

#include "base/str.h"
#include "predict/model.h"
#include "predict/prediction.h"

struct progress {
    bool enabled, shown;
    const struct prediction *prediction; /* the one that runs */
    size_t number, total;                /* from 1 on */
    size_t begun;                        /* predictions, also those that are not shown */
    double started_s, last_s;
};

/* Enabled if stderr is a terminal and quiet is false. */
void progress_init(struct progress *progress, bool quiet, size_t total);

/* The next prediction begins. Sets what the model is to tell. config NULL: it is not shown. */
void progress_begin(struct progress *progress, const struct prediction *prediction,
                    struct model_config *config);

/* Removes the line. */
void progress_clear(struct progress *progress);

/* Its text, without control characters. */
void progress_text(const struct progress *progress, struct model_state state, double elapsed_s,
                   struct strbuf *out_text);

#endif
