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

/* Notes what one rank announced: nodes of its GPUs, nodes known to be bare, and, unless the GPUs
 * are simulated, its own host. A rank whose listing failed does not make its host bare. */
int nodes_add(struct node_list *list, const struct announce *announce, bool simulated,
              struct err *err);

/* Counts. O(n log n), once, after all were added. */
int nodes_settle(struct node_list *list, struct err *err);
void nodes_fini(struct node_list *list);

#endif
