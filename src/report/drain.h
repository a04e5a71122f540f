/* Lines for an administrator to drain bad nodes: printed, never executed. */
#ifndef GPUMEMTOPO_REPORT_DRAIN_H
#define GPUMEMTOPO_REPORT_DRAIN_H

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* The line of one node that has failing or degraded GPUs:
 *   scontrol update NodeName=gpu003 State=DRAIN Reason="gpumemtopo: degraded: main.bandwidth.read"
 * Safe for a shell: quotes, blanks, line breaks, expansions of a name or a cause do not get
 * through. */
struct drain_line {
    const char *node; /* the inventory's */
    char *text;       /* without a line break */
};

/* Sorted by node. */
struct drain_lines {
    struct drain_line *items;
    size_t count;
};

/* One line per bad node, released with drain_lines_fini. A node whose name no Slurm node can have
 * is left out and told in out_refused, one per line. 0 or -ENOMEM. */
int drain_lines_init(struct drain_lines *lines, const struct inventory *inventory,
                     struct strbuf *out_refused, struct err *err);
void drain_lines_fini(struct drain_lines *lines);

/* The node's line; NULL when it has none, or for no node. */
const char *drain_lines_find(const struct drain_lines *lines, const char *node);

/* All lines as one text. */
int report_drain(const struct inventory *inventory, struct strbuf *out_lines,
                 struct strbuf *out_refused, struct err *err);

#endif
