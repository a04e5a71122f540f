/* The site's policy: which action a verdict calls for. The only place that decides what is done
 * with a GPU or a node. */
#ifndef GPUMEMTOPO_JUDGE_POLICY_H
#define GPUMEMTOPO_JUDGE_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/yaml.h"
#include "inventory/inventory.h"

/* What is done with one verdict. */
struct policy_row {
    bool by_loss;              /* a known loss decides; otherwise `action` does */
    enum action action;        /* also without a loss */
    double from[ACTION_COUNT]; /* the loss from which on each action is taken, a share */
};

/* How much a loss of a memory costs the site's jobs. */
struct policy_weight {
    char *memory; /* the first word of its metrics */
    double weight;
};

struct policy {
    struct policy_row rows[VERDICT_COUNT];
    struct policy_weight *weights; /* of the job; a memory that is not listed counts in full */
    size_t weight_count;
};

/* Reads the `policy` mapping of the survey configuration; NULL: the default. -EINVAL with the
 * position and what was expected. Released with policy_fini. */
int policy_read(const struct yaml_node *mapping, struct policy *out_policy, struct err *err);
void policy_fini(struct policy *policy);

/* Whether the policy was changed: a row, or the weight of a memory. */
bool policy_is_default(const struct policy *policy);

/* What is to be done. loss: NaN if no figure lost. sure: otherwise the verdict is `unknown`. */
enum action policy_action(const struct policy *policy, enum verdict verdict, double loss,
                          bool sure);

/* What the loss of a figure costs: the loss times the weight of its memory. */
double policy_cost(const struct policy *policy, const char *metric, double loss);

#endif
