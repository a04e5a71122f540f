/* How many GPUs each node lists, was given and had. */
#ifndef GPUMEMTOPO_JUDGE_NODE_CENSUS_H
#define GPUMEMTOPO_JUDGE_NODE_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inventory/inventory.h"

/* Between the models of a node. */
#define NODE_CENSUS_AND " and "

/* What is known of one node. Strings belong to the inventory, except models. */
struct census_node {
    const char *name;
    char *models;       /* of its GPUs, sorted: "nvidia-h200 and nvidia-l40" */
    uint32_t seen;      /* GPUs that were listed */
    uint32_t given;     /* GPUs that the job could use there; 0: not known */
    uint32_t had;       /* in the baseline, without those that are on another node now */
    bool mig;           /* its instances are no measure of its GPUs */
    bool told;          /* the judge has listed it */
    bool failed;        /* a rank there could not list its GPUs */
    const char *reason; /* why, if the driver was to list some; NULL: not known */
};

struct node_census {
    struct census_node *items;
    size_t count;
    size_t named; /* the first ones are sorted by name */
    bool unsure;  /* a rank whose GPUs are not known was lost: any node may have more GPUs */
    bool trusted; /* most nodes list the GPUs that the job was given there */
};

/* baseline NULL: none. The inventory outlives the census. 0 or -ENOMEM. Released with
 * node_census_fini. */
int node_census_take(const struct inventory *inventory, const struct inventory *baseline,
                     struct node_census *out_census);
void node_census_fini(struct node_census *census);

#endif
