/* Since when the figures of one GPU are different: change points over the surveys of a history. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_CHANGES_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_CHANGES_H

#include "report/history/history.h"
#include "report/history/history_series.h"

/* Fewer values never have a change point at the level of the test (see cpd_test). */
enum { HISTORY_CHANGE_VALUES_MIN = 10 };

/* The figure is different since some time after survey `before`, and since `after` at the latest.
 */
struct history_change {
    uint32_t before, after;           /* surveys */
    double change;                    /* share of the usual value before */
    double value_before, value_after; /* usual values of the GPU; NaN for a model */
    double confidence;                /* 0..1, of cpd_test */
};

enum history_course {
    HISTORY_FEW,     /* too few values */
    HISTORY_STEADY,  /* no change of at least the metric's floor */
    HISTORY_STEPS,   /* changes at certain times */
    HISTORY_GRADUAL, /* a line describes the values better than steps */
};

/* One figure of the GPU. */
struct history_figure {
    const struct judge_metric *rule;
    const char *unit; /* NULL: unknown */
    enum history_course course;
    bool levelled;                /* the shares are at equal level of the model */
    struct history_point *points; /* shares of the median of the GPU */
    double *values;               /* by point: as measured */
    double *levels; /* by point: the value if the GPU had followed its model; NaN: unknown */
    size_t count;
    struct history_change *changes; /* by time; HISTORY_GRADUAL: one, of first and last survey */
    size_t change_count;
    struct history_change *model_changes; /* those of the level of its model */
    size_t model_change_count;
};

struct history_changes {
    const struct history *history;
    const struct history_gpu *gpu;
    struct history_figure *figures; /* those with a value, as in the configuration */
    size_t figure_count;
};

/* Finds a GPU: NODE:INDEX or NODE:PCI (the card that was seen there last), a UUID or the beginning
 * of one. To be called after history_finish. -ENOENT or -ENOTUNIQ with a hint. */
int history_changes_gpu(const struct history *history, const char *name,
                        const struct history_gpu **out_gpu, struct err *err);

/* Analyses the judged figures of a GPU, or the one of name `metric` alone. -EINVAL if the
 * configuration does not have it. Released with history_changes_fini. */
int history_changes_find(const struct history *history, const struct history_gpu *gpu,
                         const struct judge_config *config, const char *metric,
                         struct history_changes *out_changes, struct err *err);
void history_changes_fini(struct history_changes *changes);

/* A change to the worse; of a figure that has no worse direction, any. */
bool history_change_is_worse(const struct history_figure *figure,
                             const struct history_change *change);

/* Append the answer for people, as JSON, or as a page with drawings. */
void history_changes_put_text(const struct history_changes *changes, struct strbuf *out_text);
void history_changes_put_json(const struct history_changes *changes, struct strbuf *out_text);
void history_changes_put_page(const struct history_changes *changes, struct strbuf *out_page);

#endif
