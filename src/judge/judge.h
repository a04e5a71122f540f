/* Makes the inventory from the results of the GPUs: groups them by model, finds the consensus of
 * each model, the GPUs that deviate from it, and the causes. A pure function: the order of the
 * results does not matter. docs/JUDGE.md describes the method. */
#ifndef GPUMEMTOPO_JUDGE_JUDGE_H
#define GPUMEMTOPO_JUDGE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/yaml.h"
#include "catalogue/metrics.h"
#include "inventory/gpu_result.h"
#include "inventory/inventory.h"
#include "judge/policy.h"

/* How one metric is judged. */
struct judge_metric {
    char *metric;
    enum judge_worse worse; /* direction that is a loss; JUDGE_NONE: not judged */
    double floor;           /* a deviation below this share is not reported */
    double accuse;          /* a GPU with a deviation below this share is not accused */
    double few;             /* among two to four GPUs, one with a deviation below is not watched */
    bool for_world;         /* in world files, although it is not judged as others */
    bool keep_notes;        /* its notes are in the inventory, GPU by GPU */
    const char *place_metric; /* the figure that says how SMs are placed; NULL: without influence */
    double peak_share; /* share of a specified peak that healthy GPUs reach; 0: not compared */
    /* Share of the figure that follows a condition: 1 if it is proportional to it. */
    double follows[JUDGE_CONDITION_COUNT];
};

/* How many GPUs the nodes with a name like this have. */
struct judge_node_size {
    char *pattern; /* as for fnmatch: "gpu*" */
    uint32_t gpus;
};

struct judge_config {
    double false_alarms;                /* expected false accusations per survey, e.g. 0.01 */
    struct judge_node_size *node_sizes; /* the first pattern that matches holds */
    size_t node_size_count;
    struct judge_metric *metrics;
    size_t metric_count;
    struct policy policy;
    char *own; /* what the file says otherwise than the defaults, as such a file; NULL: nothing */
};

/* Reads the mappings `judge` and `policy` (NULL: the default) of the survey configuration.
 * -EINVAL with the position and what was expected. */
int judge_config_read(const struct yaml_node *mapping, const struct yaml_node *policy,
                      struct judge_config *out_config, struct err *err);
void judge_config_fini(struct judge_config *config);

struct judge_references;
struct world;

/* The bases of the comparison. references, baseline and world may be NULL. */
struct judge_basis {
    const struct judge_config *config;
    const struct judge_references *references;
    const struct inventory *baseline; /* an earlier inventory of the same GPUs */
    const struct world *world;        /* sketches of GPUs elsewhere */
    const char *program;              /* that measured, see world.h; NULL: not known */
    bool drift_only;                  /* leave out the findings of all other bases, and the GPUs */
};

struct judge;

/* capacity: the largest number of GPUs that will be added. What the basis points to must outlive
 * the judge. */
struct judge *judge_create(const struct judge_basis *basis, size_t capacity);
void judge_destroy(struct judge *judge); /* accepts NULL */

/* Copies the result of one GPU. -ENOSPC if the judge has no room for another one. */
int judge_add(struct judge *judge, const struct gpu_result *gpu, struct err *err);

/* Adds the GPUs of an inventory and the topology of its models, to be judged again. The verdicts
 * are the same as in the inventory. The inventory must outlive the judge. On failure (-ENOSPC) the
 * judge can only be destroyed. */
int judge_add_inventory(struct judge *judge, const struct inventory *inventory, struct err *err);

/* A finding of an earlier survey that the result of the GPU did not look for. What it points to
 * must outlive the judge. */
struct judge_earlier {
    const char *uuid;
    const char *stamp; /* when that survey was */
    const struct inventory_evidence *evidence;
};

/* Says of such a finding that it was not measured again. To be called before judge_compare. */
void judge_add_earlier(struct judge *judge, const struct judge_earlier *earlier);
extern const char judge_basis_earlier[]; /* the basis of these findings */

/* Compares all GPUs. None can be added afterwards, only second values of figures. */
void judge_compare(struct judge *judge);

/* Calls `take` for every figure by which a GPU would be accused, all of one GPU in a row. To be
 * called after judge_compare. */
typedef void judge_suspicion_taker(void *user, const char *uuid, const char *metric);
void judge_suspicions(const struct judge *judge, judge_suspicion_taker *take, void *user);

/* Says that second measurements are over: figures that look bad and have no second value are not
 * confirmed. To be called after judge_compare. */
void judge_end_again(struct judge *judge);

/* Adds what a second measurement of a GPU gave. To be called after judge_compare. */
void judge_add_again(struct judge *judge, const struct gpu_result *again);

/* Fills models, gpus, outliers, watch, unmeasured and their counts in `inventory`, and appends to
 * its nodes. Compares the GPUs if judge_compare was not called. To be called once per judge. */
void judge_finish(struct judge *judge, struct inventory *inventory);

/* Appends to the nodes of a finished inventory, whose unmeasured ranks are added: nodes with fewer
 * GPUs than expected. */
void judge_missing_gpus(const struct judge_basis *basis, struct inventory *inventory);

#endif
