/* The verdicts: what the evidence of an issue means. This is the only place that accuses a GPU, a
 * node or a model. */
#ifndef GPUMEMTOPO_JUDGE_VERDICT_H
#define GPUMEMTOPO_JUDGE_VERDICT_H

#include "judge/evidence/findings.h"

enum verdict {
    VERDICT_IGNORED, /* not listed */
    VERDICT_WATCHED, /* listed in `watch`; of a node or a model: listed without a kind */
    VERDICT_ACCUSED, /* listed in `outliers`, or in `nodes` with a kind */
};
const char *verdict_name(enum verdict verdict);

/* What is known besides the evidence. A set of bits. */
enum context {
    CONTEXT_OTHER_BASIS = 1 << 0, /* only changes since the baseline are asked for; this is none */
    CONTEXT_UNMEASURED = 1 << 1,  /* the GPU was not measured */
    CONTEXT_TRIED_TWICE = 1 << 2, /* and failed twice; a rule calls it failing */
    CONTEXT_BUSY = 1 << 3,        /* another process computed on the GPU */
    CONTEXT_SLICED = 1 << 4,      /* a virtual GPU, whose GPU others may use at the same time */
};

/* One row of the table of verdicts. The first row that fits an issue decides. */
struct verdict_row {
    evidence_set any;  /* the issue has evidence of one of these kinds; 0: whatever it has */
    evidence_set none; /* and of none of these */
    unsigned context;  /* all of these are so */
    unsigned but_not;  /* and none of these */
    enum verdict verdict;
};
extern const struct verdict_row verdict_rows[];
extern const size_t verdict_row_count;

/* The verdict by the evidence so far, whatever the context is. */
enum verdict verdict_by_evidence(const struct issue *issue);

/* The verdict by the evidence so far, in its context. */
enum verdict verdict_of(const struct judge *judge, const struct issue *issue);

/* Sets fleet.gpus[].outlier. To be called when all findings are there. */
void verdict_mark_outliers(struct judge *judge);

/* Fills outliers and watch, sorted by node, PCI address and UUID. */
void verdict_lists(const struct judge *judge, struct inventory *inventory);

/* Adds an entry about a place to the inventory's nodes: a node, or with NULL a slot or a model. The
 * evidence decides whether the place is accused of `kind`. Takes over the text. Returns the entry,
 * which has no GPUs; it is valid until the next one is added. */
struct inventory_node *verdict_add_place(struct inventory *inventory, enum evidence evidence,
                                         enum inventory_kind kind, const char *node, char *finding);

/* Adds such an entry about a model that accuses nobody. */
void verdict_add_remark(struct inventory *inventory, char *text);

/* Adds GPU `uuid` to such an entry. */
void verdict_add_place_gpu(struct inventory_node *entry, const char *uuid);

#endif
