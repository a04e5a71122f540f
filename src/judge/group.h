/* Inside the judge: the fleet in its fixed order, cut into models. */
#ifndef GPUMEMTOPO_JUDGE_GROUP_H
#define GPUMEMTOPO_JUDGE_GROUP_H

#include "inventory/gpu_result.h"
#include "judge/judge.h"

/* GPUs of one model, as indices into fleet.gpus. */
struct group {
    const char *name;
    char *id; /* slug, unique in the fleet */
    size_t *members;
    size_t count;
    struct facts usual;        /* the settings that most members have */
    struct facts usual_health; /* likewise */
};

struct fleet {
    const struct gpu_result **gpus; /* sorted by node, PCI address, UUID */
    size_t count;
    size_t *group_of;     /* per GPU: index of its group, SIZE_MAX without a model */
    bool *outlier;        /* per GPU: accused */
    struct group *groups; /* sorted by name, then key */
    size_t group_count;
};

int fleet_init(struct fleet *fleet, const struct gpu_result *results, size_t count,
               struct err *err);
void fleet_fini(struct fleet *fleet);

/* Takes part in consensus and judgement: measured to the end, and alone on the GPU. */
bool fleet_measured(const struct gpu_result *gpu);

/* Has figures to show, whether they count or not: a busy GPU that was measured all the same. */
bool fleet_has_figures(const struct gpu_result *gpu);

/* The model's topology from its measured GPUs that are no outliers. */
int consensus_build(const struct fleet *fleet, const struct group *group,
                    struct inventory_model *out_model, struct err *err);

/* Fills group.usual and group.usual_health. 0 or -ENOMEM. */
int consensus_settings(const struct fleet *fleet, struct group *group);

/* Compares every judged metric inside each group: fills outliers and watch, marks fleet.outlier. */
int outliers_find(struct fleet *fleet, const struct judge_config *config,
                  struct inventory *inventory, struct err *err);

#endif
