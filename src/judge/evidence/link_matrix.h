/* The links between the GPUs of each node as matrices, and what each link should reach. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_LINK_MATRIX_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_LINK_MATRIX_H

#include "judge/evidence/stages.h"

enum link_state {
    LINK_UNKNOWN, /* not measured */
    LINK_OK,
    LINK_HOST, /* copies go through the host */
    LINK_FAILED,
    LINK_WRONG, /* data arrived wrong */
};

/* One cell: row GPU i, column peer j. The rates are in GB/s: from j to i, and from i to j. The
 * latency of loads of i in j's memory, in cycles of i and in ns, holds both ways. */
enum link_figure { LINK_READ, LINK_WRITE, LINK_CYCLES, LINK_NS, LINK_FIGURES };
struct link_cell {
    enum link_state state;
    double figures[LINK_FIGURES];    /* NaN: not measured */
    double expected[LINK_FIGURES];   /* NaN: nothing to compare with */
    double slow_share[LINK_FIGURES]; /* of the nodes that are wired alike, if they are at least 3 */
};

/* The GPUs of one node, in the fleet's order. */
struct link_node {
    const uint32_t *gpus;
    size_t count;
    struct link_cell *cells; /* count * count; NULL: no GPU has a row */
    size_t nodes;            /* that are wired alike, with this one */
};

struct link_nodes {
    struct link_node *items;
    size_t count;
};

/* What a figure is worth of what is expected: 1 or more is as good or better. NaN: unknown. */
double link_merit(enum link_figure figure, double value, double expected);

/* Whether a figure is bad compared with what is expected; not if one of both is NaN. */
bool link_is_bad(enum link_figure figure, double value, double expected);

/* Released with link_nodes_fini. */
void link_nodes_build(const struct fleet *fleet, struct link_nodes *out_nodes);
void link_nodes_fini(struct link_nodes *nodes);

/* Orders the GPUs of two nodes by their models. 0: the nodes have the same models in the same
 * order, and are taken to be wired alike. */
int link_models_order(const struct fleet *fleet, const uint32_t *a, size_t a_count,
                      const uint32_t *b, size_t b_count);

/* The row of a GPU for the inventory, as it was measured. */
void link_row_list(const struct fleet *fleet, uint32_t gpu, struct facts *out_row);

#endif
