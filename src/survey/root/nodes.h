/* The nodes of a survey: how many there are and which of them have no GPU. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_NODES_H
#define GPUMEMTOPO_SURVEY_ROOT_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "survey/comm/message.h"

struct node_entry;

/* Zero-initialised is empty. */
struct node_list {
    struct node_entry *entries;
    size_t count, capacity;
    size_t node_count; /* distinct nodes; valid after nodes_settle */
    char **bare;       /* names of those without a GPU, sorted; likewise */
    size_t bare_count;
};

/* Adds what one rank announced: the nodes of its GPUs, nodes known to have no GPU, and its own host
 * unless the GPUs are simulated. If listing failed, the rank's host does not count as a node
 * without a GPU. */
int nodes_add(struct node_list *list, const struct announce *announce, bool simulated,
              struct err *err);

/* Counts the nodes, in O(n log n). Call it once, after all were added. */
int nodes_settle(struct node_list *list, struct err *err);
void nodes_fini(struct node_list *list);

#endif
