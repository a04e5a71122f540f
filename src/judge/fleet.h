/* Inside the judge: all results of a fleet as columns, a few bytes for each figure of each GPU. */
#ifndef GPUMEMTOPO_JUDGE_FLEET_H
#define GPUMEMTOPO_JUDGE_FLEET_H

#include <stdbool.h>

#include "inventory/gpu_result.h"
#include "judge/symbols.h"

/* What every column begins with: its name, and the foremost position at which a measured GPU lists
 * it. */
struct column_head {
    uint32_t name, position;
};

/* One measure of one GPU. Texts are symbols. */
struct cell {
    bool present;
    uint8_t kind, status, bound; /* enum measure_kind, measure_status, measure_bound */
    uint32_t n, unit, method, reason;
    uint32_t words; /* joined by NUL characters */
    uint32_t word_count;
    double value, spread, confidence;
};

/* A note beside a measure. */
struct note {
    enum fact_kind kind;
    uint32_t text;
    double number;
};

struct note_column {
    struct column_head head;
    struct note *notes; /* per GPU; FACT_UNKNOWN where there is none */
};

struct metric_column {
    struct column_head head;
    struct cell *cells; /* per GPU */
    struct note_column *notes;
    size_t note_count, note_capacity;
};

enum fact_set { SET_HARDWARE, SET_BOARD, SET_CONFIG, SET_HEALTH, SET_COUNT };

struct fact_column {
    struct column_head head;
    uint32_t *codes; /* per GPU; 0: absent, equal ones are equal facts */
};

struct fact_columns {
    struct fact_column *items;
    size_t count, capacity;
};

struct fleet_gpu {
    uint32_t uuid, node, pci, name, model_key, reason;
    int32_t index, rank;
    enum gpu_status status;
    bool measured; /* to the end, though perhaps beside another process */
    bool busy;     /* beside another process: neither a yardstick nor accused */
    bool outlier;  /* accused, alone or with others */
    uint32_t group;
};

/* What most GPUs of a model have in one column. */
struct usual {
    uint32_t code; /* the most frequent known one, the first of equals; 0: nobody knows */
    uint32_t votes, known;
};

/* GPUs of one model, as indices into fleet.gpus, in the fleet's order. */
struct group {
    uint32_t name, key;
    char *id; /* slug, unique in the fleet */
    uint32_t *members;
    size_t count;
    struct usual *usual[SET_COUNT]; /* per column of facts */
};
enum { GROUP_NONE = UINT32_MAX };

struct fleet {
    struct symbols symbols;
    struct fleet_gpu *gpus;
    size_t count, capacity;
    struct metric_column *metrics;
    size_t metric_count, metric_capacity;
    struct fact_columns facts[SET_COUNT];

    /* After fleet_group. */
    uint32_t *order;      /* all GPUs by node, PCI address, UUID */
    struct group *groups; /* sorted by name, then key */
    size_t group_count;
};

/* capacity: how many GPUs will be added at most. 0 or -ENOMEM; released with fleet_fini. */
int fleet_init(struct fleet *fleet, size_t capacity);
void fleet_fini(struct fleet *fleet);

/* Takes over all that is known of one GPU; the result may go. 0, or -ENOMEM
 * with the fleet unchanged. */
int fleet_add(struct fleet *fleet, const struct gpu_result *gpu);

/* Puts columns and GPUs into an order that does not depend on how they came, and cuts the GPUs into
 * models. No more GPUs can be added then. 0 or -ENOMEM. */
int fleet_group(struct fleet *fleet);

/* Finds what is usual in every group. 0 or -ENOMEM. */
int fleet_find_usual(struct fleet *fleet);

/* The column's row in a group; NULL for no column. */
const struct usual *fleet_usual(const struct fleet *fleet, const struct group *group,
                                enum fact_set set, const struct fact_column *column);

/* More than half of those who know have it. */
bool usual_holds(const struct usual *usual);

/* So many have it that the others are the odd ones: two thirds, and three at least. */
bool usual_is_clear(const struct usual *usual);

/* Marks the GPUs that were measured beside another process. */
void fleet_find_busy(struct fleet *fleet);

/* Measured, and nobody else computed there. */
bool fleet_judged(const struct fleet_gpu *gpu);

const char *fleet_text(const struct fleet *fleet, uint32_t symbol);

/* A metric's column; NULL when no GPU has it. */
const struct metric_column *fleet_metric(const struct fleet *fleet, const char *name);

/* The cell of a metric with an exact number of status ok (`noisy` too where it is asked for); NULL
 * otherwise. column may be NULL. */
const struct cell *fleet_number(const struct metric_column *column, uint32_t gpu, bool noisy);

/* A column of facts; NULL when no GPU has it. */
const struct fact_column *fleet_facts(const struct fleet *fleet, enum fact_set set,
                                      const char *key);

/* The code of a fact, by kind and value. 0 or -ENOMEM. */
int fleet_encode(struct fleet *fleet, const struct fact *fact, uint32_t *out_code);

/* Whether a code stands for a value: the fact is there and not unknown. */
bool fleet_known(const struct fleet *fleet, uint32_t code);

/* What a code stands for. The fact's texts belong to the fleet. */
struct fact fleet_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code);

/* A fact as a number (a flag is 0 or 1); NaN when it is none. column may be NULL. */
double fleet_code_number(const struct fleet *fleet, uint32_t code);
double fleet_fact_number(const struct fleet *fleet, const struct fact_column *column, uint32_t gpu);
const char *fleet_fact_text(const struct fleet *fleet, const struct fact_column *column,
                            uint32_t gpu); /* NULL: none */

#endif
