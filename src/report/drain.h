/* Lines for an administrator to drain bad nodes: printed, never executed. */
#ifndef GPUMEMTOPO_REPORT_DRAIN_H
#define GPUMEMTOPO_REPORT_DRAIN_H

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* One line per node that has failing or degraded GPUs:
 *   scontrol update NodeName=gpu003 State=DRAIN Reason="gpumemtopo: degraded: main.bandwidth.read"
 * Safe for a shell: quotes, blanks, line breaks, expansions of a name or a cause do not get
 * through. A node whose name no Slurm node can have is left out and told in out_refused, one per
 * line. */
int report_drain(const struct inventory *inventory, struct strbuf *out_lines,
                 struct strbuf *out_refused, struct err *err);

#endif
