/* The verdicts: how sure the evidence of an issue is, and what it means. The policy decides what is
 * done then (policy.h). */
#ifndef GPUMEMTOPO_JUDGE_VERDICT_H
#define GPUMEMTOPO_JUDGE_VERDICT_H

#include "judge/evidence/findings.h"

struct judge_config;

/* How sure the judge is of an issue. */
enum certainty {
    CERTAINTY_IGNORED, /* not listed */
    CERTAINTY_UNSURE,  /* its verdict is `unknown` */
    CERTAINTY_SURE,    /* its verdict is that of its findings */
};
const char *certainty_name(enum certainty certainty);

/* What is known besides the evidence. A set of bits. */
enum context {
    CONTEXT_OTHER_BASIS = 1 << 0, /* only changes since the baseline are asked for; this is none */
    CONTEXT_UNMEASURED = 1 << 1,  /* the GPU was not measured */
    CONTEXT_TRIED_TWICE = 1 << 2, /* and failed twice; a rule calls it failing */
    CONTEXT_BUSY = 1 << 3,        /* another process computed on the GPU */
    CONTEXT_SLICED = 1 << 4,      /* a virtual GPU, whose GPU others may use at the same time */
};

/* One row of the table of certainty. The first row that fits an issue decides. */
struct certainty_row {
    evidence_set any;  /* the issue has evidence of one of these kinds; 0: whatever it has */
    evidence_set none; /* and of none of these */
    unsigned context;  /* all of these are so */
    unsigned but_not;  /* and none of these */
    enum certainty certainty;
};
extern const struct certainty_row certainty_rows[];
extern const size_t certainty_row_count;

/* By the evidence so far, whatever the context is. */
enum certainty certainty_by_evidence(const struct issue *issue);

/* By the evidence so far, in its context. */
enum certainty certainty_of(const struct judge *judge, const struct issue *issue);

/* Sets `deviates` and `outlier` of fleet.gpus. To be called when all findings are there. */
void verdict_mark_outliers(struct judge *judge);

/* Fills outliers and watch, sorted by node, PCI address and UUID. */
void verdict_lists(const struct judge *judge, struct inventory *inventory);

/* Leaves out the entries of nodes for which nothing is to be done. */
void verdict_drop_places(struct inventory *inventory);

/* The loss of a finding, as a share that the job profile weighs; NaN: no figure lost. */
double verdict_loss(const struct judge_config *config, const char *metric,
                    const struct finding *finding);

/* Adds an entry about a place to the inventory's nodes: a node, or with NULL a slot or a model. The
 * evidence decides whether the verdict is sure, the policy what is done. Takes over the text.
 * Returns the entry, which has no GPUs; it is valid until the next one is added. */
struct inventory_node *verdict_add_place(const struct judge_config *config,
                                         struct inventory *inventory, enum evidence evidence,
                                         enum verdict verdict, double loss, const char *node,
                                         char *finding);

/* Adds such an entry about a model that only says something: it is told, whatever the policy is. */
struct inventory_node *verdict_add_remark(struct inventory *inventory, char *text);

/* Adds GPU `uuid` to such an entry. */
void verdict_add_place_gpu(struct inventory_node *entry, const char *uuid);

#endif
