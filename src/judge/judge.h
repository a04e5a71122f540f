/* From the GPUs' results to the fleet's inventory: grouping by model, consensus, outliers. Pure:
 * the same results in any order give the same inventory. */
#ifndef GPUMEMTOPO_JUDGE_JUDGE_H
#define GPUMEMTOPO_JUDGE_JUDGE_H

#include <stddef.h>

#include "base/err.h"
#include "base/yaml.h"
#include "inventory/gpu_result.h"
#include "inventory/inventory.h"

/* How one metric is judged. */
struct judge_metric {
    char *metric;
    int worse;    /* +1: higher is worse (latency), -1: lower is worse, 0: any change counts */
    double floor; /* share below which a deviation matters to nobody */
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

/* Fills models, gpus, outliers, watch, unmeasured and their counts in `inventory`, which is empty
 * but for its header. Results are sorted by node, PCI address and UUID first. */
int judge_fleet(const struct gpu_result *results, size_t count, const struct judge_config *config,
                struct inventory *inventory, struct err *err);

#endif
