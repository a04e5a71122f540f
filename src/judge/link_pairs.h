/* What is wrong between the GPUs of a node, and which of them are the cause. */
#ifndef GPUMEMTOPO_JUDGE_LINK_PAIRS_H
#define GPUMEMTOPO_JUDGE_LINK_PAIRS_H

#include "judge/link_matrix.h"

/* From harmless to severe: a pair has its most severe fault. */
enum link_fault { LINK_FINE, LINK_LATE, LINK_SLOW, LINK_DEAD, LINK_CORRUPT };

struct link_pair {
    enum link_fault fault;
    bool sure;              /* both GPUs saw it */
    double value, expected; /* LINK_SLOW: the better figure of the slower way, in GB/s; LINK_LATE:
                               the lower latency of both, in cycles; otherwise NaN */
};

struct link_pairs {
    const struct fleet *fleet;
    const struct link_node *node;
    struct link_pair *pairs; /* count * count, symmetric */
    bool *culprits;          /* the links of these GPUs are bad, all or most of them */
    size_t entries;          /* GPUs and pairs that are to be reported */
};

/* Looks at all pairs of a node that has cells. 0 or -ENOMEM; released with link_pairs_fini. */
int link_pairs_find(const struct fleet *fleet, const struct link_node *node,
                    struct link_pairs *out_pairs);
void link_pairs_fini(struct link_pairs *pairs);

const struct link_pair *link_pairs_at(const struct link_pairs *pairs, size_t i, size_t j);
bool link_pairs_measured(const struct link_pairs *pairs, size_t i, size_t j);

/* The number of active NVLinks of the node's GPU i; NaN: not known. */
double link_pairs_nvlinks(const struct link_pairs *pairs, size_t i);

#endif
