/* The links between the GPUs of each node as matrices, and what each link should reach. */
#ifndef GPUMEMTOPO_JUDGE_LINK_MATRIX_H
#define GPUMEMTOPO_JUDGE_LINK_MATRIX_H

#include "judge/stages.h"

enum link_state {
    LINK_UNKNOWN, /* not measured */
    LINK_OK,
    LINK_HOST, /* copies go through the host */
    LINK_FAILED,
    LINK_WRONG, /* data arrived wrong */
};

/* One cell: row GPU i, column peer j. Rates in GB/s; NaN: not measured. */
enum { LINK_READ, LINK_WRITE, LINK_WAYS }; /* from j to i; from i to j */
struct link_cell {
    enum link_state state;
    double rates[LINK_WAYS];
    double expected[LINK_WAYS];   /* NaN: nothing to compare with */
    double slow_share[LINK_WAYS]; /* of the nodes that are wired alike, if they are at least 3 */
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

/* A rate is slow below this share of what is expected. */
extern const double link_slow;

/* 0 or -ENOMEM; released with link_nodes_fini. */
int link_nodes_build(const struct fleet *fleet, struct link_nodes *out_nodes);
void link_nodes_fini(struct link_nodes *nodes);

/* A note of the row of a GPU; NULL: none. */
const char *link_note(const struct fleet *fleet, uint32_t gpu, const char *key);

/* The row of a GPU for the inventory, as it was measured. 0 or -ENOMEM. */
int link_row_list(const struct fleet *fleet, uint32_t gpu, struct facts *out_row);

#endif
