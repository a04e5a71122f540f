/* The inventory of a fleet: the data of the YAML file that a survey writes and reports read. */
#ifndef GPUMEMTOPO_INVENTORY_INVENTORY_H
#define GPUMEMTOPO_INVENTORY_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/gpu_result.h"
#include "inventory/measure.h"
#include "schema/schema.h"

enum { INVENTORY_SCHEMA = 4 };

/* The finding of a node on which a rank ran but saw no GPU. */
extern const char inventory_bare_node[];

/* All strings here are owned by the inventory; NULL is null in the file. */

/* GPUs of a model that are of one kind (COMPARED_KIND of the catalogue): the same board part and so
 * on. Figures are judged inside a population where they differ between populations. */
struct inventory_population {
    char *by;             /* the facts: board.part */
    char *value;          /* NULL: the GPUs do not know it */
    uint32_t count;       /* GPUs of this population that were measured */
    struct facts figures; /* metric and usual value of what differs between the populations */
};

/* The memory topology of a model: the consensus of its healthy GPUs. */
struct inventory_model {
    char *id; /* a slug, unique in the file */
    char *name;
    char *key;      /* identifies the model: PCI ids, name, MIG profile */
    uint32_t count; /* GPUs of this model that were measured */
    struct facts identity;
    struct facts config;                      /* the values that most of its GPUs have */
    struct facts health;                      /* likewise */
    struct inventory_population *populations; /* if there are several */
    size_t population_count;
    struct measures memory;
};

/* One judged metric of one GPU, with all that is needed to judge it again. */
struct inventory_value {
    char *metric;
    double value; /* NaN: could not be measured */
    double spread;
    enum measure_status status;
    enum measure_bound bound;
};

/* What was noted beside a figure of one GPU. */
struct inventory_noted {
    char *metric;
    struct facts notes;
};

struct inventory_gpu {
    char *uuid, *node, *pci;
    int32_t index, rank;
    char *model; /* id of a model; NULL if nothing is known about the GPU */
    enum gpu_status status;
    struct gpu_run run;
    struct facts board;    /* serial, part, vbios, driver */
    struct facts hardware; /* where it differs from the model's identity */
    struct facts config;   /* where it differs from the majority of the model */
    struct facts health;   /* likewise */
    struct inventory_value *values;
    size_t value_count;
    struct inventory_noted *noted; /* of figures whose notes findings tell */
    size_t noted_count;
    struct facts measured_again; /* second values of figures that looked bad, by metric */
    struct facts links;          /* to the other GPUs of its node, as lists (link_row.h) */
    struct facts load;           /* how its load began; the curve, if it is bad (curves.h) */
};

struct inventory_evidence {
    char *metric;
    double value, expected;
    char *unit;
    double deviation; /* share: -0.327 */
    double score;     /* robust z; NaN if the basis is neither the fleet nor the world */
    char *basis;      /* fleet, reference, baseline, world, rule */
    char *cause;
    char *confirmed; /* what else shows the deviation, e.g. "2 of 2"; NULL: nothing */
};

/* What the evidence about a GPU or a node means, the most severe first. */
enum verdict {
    VERDICT_FAILING,
    VERDICT_DEGRADED,
    VERDICT_MISCONFIGURED,
    VERDICT_MISMATCHED,   /* other hardware than its model */
    VERDICT_UNSTEADY,     /* its figures scatter */
    VERDICT_BUILT_SLOWER, /* what it was built with costs; nothing is wrong with it */
    VERDICT_UNKNOWN,      /* noticed, not certain */
    VERDICT_COUNT
};
extern const char *const verdict_names[VERDICT_COUNT + 1]; /* by verdict, then NULL */
const char *verdict_name(enum verdict verdict);

/* What the site's policy says is to be done. The judge decides it (judge/policy.h); everybody else
 * reads it. */
enum action { ACTION_NOTHING, ACTION_TELL, ACTION_ALERT, ACTION_DRAIN, ACTION_COUNT };
extern const char *const action_names[ACTION_COUNT + 1]; /* by action, then NULL */
const char *action_name(enum action action);

/* A GPU of `outliers`: alert or drain; of `watch`: tell. */
struct inventory_outlier {
    char *uuid, *node, *pci, *model;
    enum verdict verdict; /* the most severe one */
    double loss;          /* the largest loss of its figures, a share; NaN: none lost */
    enum action action;   /* the strongest one */
    struct inventory_evidence *evidence;
    size_t evidence_count;
};

/* A finding about a whole node (node NULL: about a slot or a model). */
struct inventory_node {
    char *node;
    char *finding; /* inventory_bare_node, ... */
    enum verdict verdict;
    double loss;
    enum action action; /* from ACTION_ALERT on its GPUs are outliers; findings that need no peers
                           are also listed with each GPU */
    char **gpus;        /* UUIDs of the GPUs concerned */
    size_t gpu_count;
};

struct inventory_unmeasured {
    char *node;
    int32_t rank; /* -1: null */
    char *uuid;
    enum gpu_status status;
    char *reason;
    uint32_t gpus_allocated; /* of a rank (uuid NULL): as in struct gpu_run */
};

/* Zero-initialised is empty. */
struct inventory {
    char *version;   /* of the program that made the file */
    char *generated; /* UTC */
    char **command;
    size_t command_count;
    uint64_t seed;
    char *backend;
    char **measured_by; /* of a merged file: the versions that measured; empty: `version` did */
    size_t measured_by_count;
    char *configuration; /* what judged it, where it was not the usual; NULL: it was */
    bool anonymous;      /* nodes, UUIDs, serial numbers and addresses are pseudonyms */

    uint32_t total_nodes, total_ranks, total_gpus, total_measured, total_unmeasured;
    uint32_t total_lost_ranks, total_outliers;
    uint32_t total_unplanned; /* of a merged file: GPUs of surveys whose plans were not there */
    uint32_t unread_files;    /* of a merged file */
    double wall_s;
    int exit_code;

    struct inventory_model *models;
    size_t model_count;
    struct inventory_gpu *gpus;
    size_t gpu_count;
    struct inventory_node *node_findings;
    size_t node_finding_count;
    struct inventory_outlier *outliers;
    size_t outlier_count;
    struct inventory_outlier *watch;
    size_t watch_count;
    struct inventory_unmeasured *unmeasured;
    size_t unmeasured_count;
};

extern const struct schema inventory_schema, inventory_gpu_schema;

/* An exact number with status ok. */
bool inventory_value_is_good(const struct inventory_value *value);

/* The strongest action of all entries. Something is to be drained: the exit code of what made the
 * file is 3. */
enum action inventory_action(const struct inventory *inventory);

/* The same if GPUs were not measured, or may be missing: 4. */
bool inventory_is_incomplete(const struct inventory *inventory);

/* The versions of the program that measured the GPUs: at least one. */
size_t inventory_measured_by_count(const struct inventory *inventory);
const char *inventory_measured_by(const struct inventory *inventory, size_t number);
void inventory_put_measured_by(const struct inventory *inventory, struct strbuf *out); /* joined */

void inventory_fini(struct inventory *inventory);
void inventory_gpu_fini(struct inventory_gpu *gpu);
void inventory_node_fini(struct inventory_node *node);

/* The YAML text: fixed key order, block style, innermost maps in flow style. The same inventory
 * gives the same bytes. Errors only set out_text->failed. */
void inventory_print(const struct inventory *inventory, struct strbuf *out_text);

/* Writes to a temporary file beside `path` and renames it: a reader never sees half a file. On an
 * error the old file is intact and the temporary one removed. "-" is stdout. */
int inventory_write_file(const struct inventory *inventory, const char *path, struct err *err);

/* The same, and checks that the result can be read: the text before writing, the file after. */
int inventory_write_checked(const struct inventory *inventory, const char *path, struct err *err);

/* Reads and checks a file: every key is known, every value has its type. -EINVAL with position.
 * out_inventory untouched on failure; released with inventory_fini. */
int inventory_read_file(const char *path, struct inventory *out_inventory, struct err *err);
int inventory_read_text(const char *text, size_t length, const char *name,
                        struct inventory *out_inventory, struct err *err);

/* Whether they could be read, without the memory that an inventory takes. */
int inventory_check_file(const char *path, struct err *err);
int inventory_check_text(const char *text, size_t length, const char *name, struct err *err);

/* The format, as a JSON Schema and as a page of the documentation. */
void inventory_print_json_schema(struct strbuf *out_text);
void inventory_print_markdown(struct strbuf *out_text);

#endif
