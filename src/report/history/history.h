/* Several inventories of the same GPUs over time: which were outliers how often, which figures get
 * worse, and which cards moved. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "judge/judge.h"
#include "judge/symbols.h"

/* A GPU in one survey, from harmless to severe. */
enum history_state {
    HISTORY_UNSEEN,  /* its node was not surveyed, or the GPU was never seen before */
    HISTORY_SAME,    /* the result of the survey before: it was not measured again */
    HISTORY_FINE,    /* measured, no outlier */
    HISTORY_BUSY,    /* another process computed on it */
    HISTORY_WATCHED, /* listed in watch */
    HISTORY_MISSING, /* its node was surveyed, but the GPU was not there */
    HISTORY_UNMEASURED,
    HISTORY_OUTLIER,
    HISTORY_STATES
};

struct history_survey {
    const char *path; /* not owned */
    int64_t time_s;
    char *generated;
    uint64_t hash;   /* of the file */
    uint32_t number; /* in the order of reading */
    uint32_t gpus, measured, outliers, unmeasured;
    bool stranger; /* has no GPU in common with the surveys before it */
};

struct history_value {
    uint32_t metric;
    double value;
};

/* One GPU in one survey. Names are symbols; 0 is unknown. */
struct history_sighting {
    uint32_t survey;
    uint32_t uuid, serial, node, pci, model;
    int32_t index;        /* on its node; -1: unknown */
    uint32_t fingerprint; /* of its die, packed; 0: not known */
    enum history_state state;
    enum verdict verdict; /* of an outlier */
    uint32_t cause,
        metric; /* the first finding; the cause is also the reason of an unmeasured GPU */
    size_t value, value_count; /* in history.values */
};

/* All sightings of one GPU, in the order of time. */
struct history_gpu {
    const struct history_sighting *sightings;
    size_t count;
    uint32_t states[HISTORY_STATES]; /* in how many surveys */
    enum verdict verdict;            /* the most severe one, if it was an outlier */
};

/* A node was surveyed. */
struct history_visit {
    uint32_t node, survey;
};

struct history_event;
struct history_trend;

/* Zero-initialised is empty. */
struct history {
    struct symbols symbols;
    struct history_survey *surveys; /* sorted by time after history_finish */
    size_t survey_count, survey_room;
    struct history_sighting *sightings; /* sorted by GPU, then by survey */
    size_t sighting_count, sighting_room;
    struct history_value *values;
    size_t value_count, value_room;
    struct history_visit *visits; /* sorted */
    size_t visit_count, visit_room;
    uint32_t *units; /* by symbol of the metric */
    size_t unit_room;
    struct history_gpu *gpus; /* repeat offenders first */
    size_t gpu_count, offender_count;
    struct history_event *events; /* by time */
    size_t event_count;
    struct history_trend *trends; /* the largest first */
    size_t trend_count;
};

/* Adds an inventory, from which everything needed is copied. path must outlive the history. -EINVAL
 * if the inventory has no valid time. */
int history_add(struct history *history, const char *path, uint64_t hash,
                const struct inventory *inventory, struct err *err);

/* The survey with this hash; NULL if there is none. */
const struct history_survey *history_twin(const struct history *history, uint64_t hash);

/* Sorts the surveys by time and analyses them. To be called once, after the last history_add. */
void history_finish(struct history *history, const struct judge_config *config);
void history_fini(struct history *history);

/* The state of a GPU in survey number `survey`; and as one character. */
enum history_state history_state_at(const struct history *history, const struct history_gpu *gpu,
                                    uint32_t survey);
char history_letter(enum history_state state);

/* Append the result for people, or as JSON. */
void history_put_text(const struct history *history, struct strbuf *out_text);
void history_put_json(const struct history *history, struct strbuf *out_text);

/* history_events.c: cards that moved, were swapped, appeared or went away between the surveys of a
 * history. */

enum history_event_type {
    HISTORY_MOVED,   /* a GPU is in another slot or node */
    HISTORY_SWAPPED, /* another GPU is in the slot */
    HISTORY_NEW,     /* a GPU appeared on a node that was surveyed before */
    HISTORY_GONE,    /* a GPU was not seen again, although its node was surveyed */
    HISTORY_SERIAL,  /* a GPU reports another serial number */
    HISTORY_BOARD,   /* a board (serial number) has a GPU with another UUID */
    HISTORY_NODE,    /* a node was surveyed for the first time */
    HISTORY_DIE,     /* a GPU has another fingerprint: another die under its UUID */
    HISTORY_EVENT_TYPES
};

/* Names are symbols; 0: does not apply, or unknown. */
struct history_event {
    enum history_event_type type;
    uint32_t survey; /* the first one that shows it */
    uint32_t uuid, serial, node, pci;
    uint32_t old_uuid, old_serial, old_node, old_pci;
};

/* The first survey after number `after` that saw the node; HISTORY_NEVER if there is none. -1: from
 * the first one on. history->visits must be sorted. */
#define HISTORY_NEVER UINT32_MAX
uint32_t history_next_visit(const struct history *history, uint32_t node, int64_t after);

/* "moved", "swapped", ... */
const char *history_event_name(enum history_event_type type);

/* Fills history->events. */
void history_events_find(struct history *history);

/* history_trends.c: figures that get worse from survey to survey. */

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
