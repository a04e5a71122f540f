/* What was ordered: models with their counts, facts and figures, and which nodes have them. */
#ifndef GPUMEMTOPO_REPORT_ACCEPT_ORDER_H
#define GPUMEMTOPO_REPORT_ACCEPT_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/inventory.h"
#include "inventory/results.h"
#include "judge/judge.h"

enum { ORDER_SCHEMA = 1, ORDER_VERDICTS = VERDICT_COUNT };

/* Facts that the driver reports and that an order can demand: at least so much. */
enum order_fact {
    ORDER_MEMORY,
    ORDER_SMS,
    ORDER_L2,
    ORDER_MEMORY_BUS,
    ORDER_PCIE_GENERATION,
    ORDER_PCIE_WIDTH,
    ORDER_NVLINKS,
    ORDER_POWER_LIMIT,
    ORDER_FACT_COUNT
};

/* Where the inventory has the fact, its unit, and its name for people. */
struct order_fact_source {
    enum inventory_facts set;
    const char *key, *unit, *name;
};
extern const struct order_fact_source order_fact_sources[ORDER_FACT_COUNT];

/* Limits of one measured figure; NaN: no such limit. */
struct order_figure {
    char *metric;
    char *unit; /* NULL if neither at_least nor at_most is given */
    double at_least, at_most;
    double spread; /* (largest - smallest) / median of the GPUs of a board part, at most */
};

struct order_model {
    char *name; /* as the driver reports it */
    uint32_t count;
    char **parts; /* any of these board parts; none: any */
    size_t part_count;
    double facts[ORDER_FACT_COUNT]; /* NaN: not demanded */
    struct order_figure *figures;
    size_t figure_count;
};

/* Nodes with the same GPUs. */
struct order_nodes {
    char *names; /* a pattern, as for fnmatch */
    uint32_t count;
    uint32_t *gpus; /* of each model of the order, on each of the nodes */
};

/* Zero-initialised is empty. */
struct order {
    char *number, *supplier, *customer, *delivered; /* NULL: not given */
    struct order_model *models;
    size_t model_count;
    struct order_nodes *nodes; /* the first pattern that matches counts; none: any nodes */
    size_t node_count;
    bool other_nodes_ignored; /* nodes that no pattern matches are no part of the order */
    bool outliers_allowed[ORDER_VERDICTS]; /* by enum verdict */
};

/* Reads an order; docs/ACCEPT.md describes the file. config: the metrics that an order can name.
 * -EINVAL with position and what was expected, or the error of the system. out_order stays
 * untouched on failure; released with order_fini. */
int order_read_file(const char *path, const struct judge_config *config, struct order *out_order,
                    struct err *err);
int order_read_text(const char *text, size_t length, const char *name,
                    const struct judge_config *config, struct order *out_order, struct err *err);
void order_fini(struct order *order);

#endif
