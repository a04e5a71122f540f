/* What a vendor needs to know about one GPU: identity, findings, figures beside its peers'. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_RMA_H
#define GPUMEMTOPO_REPORT_COMMANDS_RMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"
#include "inventory/results.h"

/* One figure of the GPU and of its peers. */
struct rma_figure {
    const struct inventory_value *value;
    const char *unit; /* NULL: unknown */
    size_t peers;     /* with this figure; of fewer than 2 the next three are NaN */
    double median, scatter;
    double deviation; /* share of the median */
};

/* Points into the inventory. */
struct rma {
    const struct inventory *inventory;
    const struct inventory_gpu *gpu;
    const struct inventory_model *model;        /* NULL: unknown */
    const struct inventory_outlier *outlier;    /* NULL: not accused by itself */
    const struct inventory_outlier *watched;    /* NULL: not watched */
    const struct inventory_unmeasured *failure; /* NULL: measured */
    struct facts facts[INVENTORY_FACTS_COUNT];
    struct rma_figure *figures;
    size_t figure_count;
    size_t peers;    /* healthy GPUs that it is compared with, itself left out */
    bool same_board; /* the peers have its board part; otherwise they are all of its model */
    bool has_record, record_is_complete;
};

/* Finds the GPU by its UUID or the beginning of it, with or without "GPU-". -ENOENT or -ENOTUNIQ
 * with candidates. */
int rma_find_gpu(const struct inventory *inventory, const char *uuid,
                 const struct inventory_gpu **out_gpu, struct err *err);

/* Released with rma_fini. */
void rma_init(struct rma *rma, const struct inventory *inventory, const struct inventory_gpu *gpu);
void rma_fini(struct rma *rma);

/* Append the text for people, and the same for programs. */
void rma_put_readme(const struct rma *rma, struct strbuf *out_text);
void rma_put_json(const struct rma *rma, struct strbuf *out_text);

#endif
