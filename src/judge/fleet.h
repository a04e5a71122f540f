/* Internal to the judge: all results of a fleet as columns, a few bytes for each figure of each
 * GPU. */
#ifndef GPUMEMTOPO_JUDGE_FLEET_H
#define GPUMEMTOPO_JUDGE_FLEET_H

#include <stdbool.h>

#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/gpu_result.h"
#include "judge/symbols.h"

/* First member of every column. position: the smallest at which a measured GPU lists the column. */
struct column_head {
    uint32_t name, position;
};

/* One measure of one GPU. Texts are symbols. */
struct cell {
    bool present;
    bool left;                   /* another figure of the GPU is judged in its place */
    uint8_t kind, status, bound; /* enum measure_kind, measure_status, measure_bound */
    uint32_t n, gpus, unit, method, reason;
    uint32_t words; /* joined by NUL characters */
    uint32_t word_count;
    double value, spread, confidence;
};

/* A note beside a measure. */
struct note {
    enum fact_kind kind;
    uint32_t text; /* or the bytes of a list */
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
    uint32_t *codes; /* per GPU; 0: absent; equal codes are equal facts */
};

struct fact_columns {
    struct fact_column *items;
    size_t count, capacity;
};

struct fleet_gpu {
    uint32_t uuid, node, pci, name, model_key, reason;
    int32_t index, rank;
    enum gpu_status status;
    struct gpu_run run;
    bool measured; /* completely; the GPU may have been busy */
    bool busy;     /* another process computed: not compared with, not accused */
    bool sliced;   /* a virtual GPU: others may compute on the same GPU, and nobody sees it */
    bool deviates; /* in something that is sure, alone or with others */
    bool outlier;  /* it is alerted or drained, alone or with others */
    uint32_t group;
    uint32_t population; /* index into fleet.populations; GROUP_NONE: as group */
};

/* The majority of a model in one column. */
struct usual {
    uint32_t code; /* the most frequent known code, the first if several are; 0: none known */
    uint32_t votes, known; /* GPUs with that code; with any known code */
};

/* GPUs of one model, or of one population of a model, as indices into fleet.gpus, in the fleet's
 * order. */
struct group {
    uint32_t name, key;
    char *id;                           /* slug, unique in the fleet; of a population, for texts */
    uint32_t part;                      /* of a population: code of its board part; 0: unknown */
    uint32_t like;                      /* of a population: a GPU whose facts are its kind */
    size_t populations_at, populations; /* of a model: first index in fleet.populations, number */
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
    struct group *populations; /* of the first model, of the second, ... */
    size_t population_count;
};

/* capacity: the largest number of GPUs to be added. Released with fleet_fini. */
void fleet_init(struct fleet *fleet, size_t capacity);
void fleet_fini(struct fleet *fleet);

/* Copies the result of one GPU into the columns. */
void fleet_add(struct fleet *fleet, const struct gpu_result *gpu);

/* Sorts columns and GPUs, so that the order of fleet_add does not matter, and groups the GPUs by
 * model. No GPU can be added afterwards. */
void fleet_group(struct fleet *fleet);

/* Divides every model into populations: GPUs of the same kind, by the facts that the catalogue
 * compares as COMPARED_KIND. Among them is the board part, which nobody can change in operation. */
void fleet_populate(struct fleet *fleet);

/* How a figure of two GPUs of a model compares, by their kinds. */
enum kinds_compare {
    KINDS_ALIKE,  /* as of one kind */
    KINDS_BOARDS, /* it may differ a little, as between boards */
    KINDS_APART,  /* not at all */
};
enum kinds_compare fleet_kinds_compare(const struct fleet *fleet, uint32_t gpu, uint32_t other,
                                       const char *figure);

/* For catalogue_kinds_differ. */
struct kind_view fleet_kind_view(const struct fleet *fleet, uint32_t gpu);

bool fleet_is_kind(const struct fleet *fleet, enum gpu_kind kind, uint32_t gpu);

/* The facts in which the populations of the model differ, and what this one has of them, for
 * people: "board.part" and "900-21010-0040-000". Either may be NULL. */
void fleet_put_kind(const struct fleet *fleet, const struct group *model,
                    const struct group *population, struct strbuf *keys, struct strbuf *values);

/* Fills `usual` of every group and population. */
void fleet_find_usual(struct fleet *fleet);

/* The majority of a group in a column; NULL if column is NULL. */
const struct usual *fleet_usual(const struct fleet *fleet, const struct group *group,
                                enum fact_set set, const struct fact_column *column);

/* More than half of the GPUs with a known code have the usual one. */
bool usual_holds(const struct usual *usual);

/* At least two thirds of these GPUs, and at least three, have it: a GPU that differs is accused. */
bool usual_is_clear(const struct usual *usual);

/* Sets `busy` and `sliced` of all GPUs. */
void fleet_find_busy(struct fleet *fleet);

/* Measured and not busy. */
bool fleet_judged(const struct fleet_gpu *gpu);

const char *fleet_text(const struct fleet *fleet, uint32_t symbol);

/* The column of a metric; NULL if no GPU has it. */
const struct metric_column *fleet_metric(const struct fleet *fleet, const char *name);

/* Leaves out the figures of GPUs that have those which their rows name in `unless`. */
void fleet_leave_second(struct fleet *fleet);

/* The GPU's cell, if it has an exact finite number with status ok, or noisy if `noisy` is set, and
 * none that is judged in its place; NULL otherwise. column may be NULL. */
const struct cell *fleet_number(const struct metric_column *column, uint32_t gpu, bool noisy);

/* The GPU's number in such a cell; NaN if there is none. metric may be NULL. */
double fleet_value(const struct fleet *fleet, const char *metric, uint32_t gpu, bool noisy);

/* The column of a note of a metric; NULL if no GPU has it. column may be NULL. */
const struct note_column *fleet_notes(const struct fleet *fleet, const struct metric_column *column,
                                      const char *key);

/* Sets the note as a fact with the key of its column, if there is one. */
void fleet_put_note(const struct fleet *fleet, const struct note_column *column,
                    const struct note *note, struct facts *out_facts);

/* A column of facts; NULL if no GPU has it. */
const struct fact_column *fleet_facts(const struct fleet *fleet, enum fact_set set,
                                      const char *key);

/* Whether a code stands for a value: the fact is present and not unknown. */
bool fleet_known(const struct fleet *fleet, uint32_t code);

/* The fact of a code. Its texts belong to the fleet. A list is unknown here: see fleet_put_fact. */
struct fact fleet_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code);

/* Adds the fact of a code, also a list; the facts of those keys that the GPU has. */
void fleet_put_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code,
                    struct facts *out_facts);
void fleet_put_facts(const struct fleet *fleet, enum fact_set set, const char *const *keys,
                     size_t count, uint32_t gpu, struct facts *out_facts);

/* A fact as a number (a flag is 0 or 1); NaN if it is not a number. column may be NULL. */
double fleet_code_number(const struct fleet *fleet, uint32_t code);
double fleet_fact_number(const struct fleet *fleet, const struct fact_column *column, uint32_t gpu);
const char *fleet_fact_text(const struct fleet *fleet, const struct fact_column *column,
                            uint32_t gpu); /* NULL: no text */

#endif
