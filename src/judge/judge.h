/* From the GPUs' results to the fleet's inventory: grouping by model, consensus, who deviates from
 * it and why. Pure: the same results in any order give the same inventory. docs/JUDGE.md tells how
 * it is decided. */
#ifndef GPUMEMTOPO_JUDGE_JUDGE_H
#define GPUMEMTOPO_JUDGE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/yaml.h"
#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* What a measured figure can depend on besides the GPU's health. */
enum judge_condition {
    JUDGE_SM_CLOCK,     /* clock.sm as measured */
    JUDGE_MEMORY_CLOCK, /* clock.memory */
    JUDGE_SMS,          /* hardware as reported: sms, memory_bus_bits, l2_bytes */
    JUDGE_MEMORY_BUS,
    JUDGE_L2,
    JUDGE_PCIE, /* generation and width under load */
    JUDGE_CONDITION_COUNT
};

enum judge_worse { JUDGE_LOWER, JUDGE_HIGHER, JUDGE_ANY, JUDGE_NONE };

/* How one metric is judged. */
struct judge_metric {
    char *metric;
    enum judge_worse worse; /* direction that counts; JUDGE_NONE: carried along, never judged */
    double floor;           /* share below which a deviation matters to nobody */
    double accuse;          /* share below which nobody is accused, however sure it is */
    double peak_share;      /* of a specified peak that a healthy GPU reaches; 0: not compared */
    /* Share of the figure that follows a condition: 1 of a bandwidth that halves with the clock. */
    double follows[JUDGE_CONDITION_COUNT];
};

struct judge_config {
    double false_alarms; /* expected false accusations per survey, e.g. 0.01 */
    struct judge_metric *metrics;
    size_t metric_count;
};

/* Reads the `judge` mapping of the survey configuration. */
int judge_config_read(const struct yaml_node *mapping, struct judge_config *out_config,
                      struct err *err);
void judge_config_fini(struct judge_config *config);

struct judge_references;

/* What there is to compare with. The references and the baseline may be NULL. */
struct judge_basis {
    const struct judge_config *config;
    const struct judge_references *references;
    const struct inventory *baseline; /* an earlier inventory of the same GPUs */
    bool drift_only;                  /* what is found otherwise is left out */
};

struct judge;

/* capacity: how many GPUs will be added at most. The basis must outlive the judge. */
int judge_create(const struct judge_basis *basis, size_t capacity, struct judge **out_judge,
                 struct err *err);
void judge_destroy(struct judge *judge); /* accepts NULL */

/* Takes over all that is known of one GPU; the result may go afterwards. On failure the
 * judge is unchanged. */
int judge_add(struct judge *judge, const struct gpu_result *gpu, struct err *err);

/* Takes over the GPUs of an inventory, as far as it tells of them, and the topology of its models.
 * The inventory must outlive the judge. The same verdicts come out as when it was judged first.
 * On failure some of its GPUs may have been added: the judge can then only be destroyed. */
int judge_add_inventory(struct judge *judge, const struct inventory *inventory, struct err *err);

/* Fills models, gpus, nodes, outliers, watch, unmeasured and their counts in `inventory`, behind
 * what `nodes` has already. Once per judge. */
int judge_finish(struct judge *judge, struct inventory *inventory, struct err *err);

/* All three for results that are in memory. */
int judge_fleet(const struct gpu_result *results, size_t count, const struct judge_basis *basis,
                struct inventory *inventory, struct err *err);

#endif
