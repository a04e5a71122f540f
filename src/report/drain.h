/* Commands that drain the nodes for which the policy says `drain`. They are only printed, for an
 * administrator to run. */
#ifndef GPUMEMTOPO_REPORT_DRAIN_H
#define GPUMEMTOPO_REPORT_DRAIN_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* The line of one node that is to be drained:
 *   scontrol update NodeName=gpu003 State=DRAIN Reason="gpumemtopo:degraded:GPU-..."
 * The reason has the worst finding (drain_reason_put). The line is safe for a shell: special
 * characters in a name or a cause are replaced. */
struct drain_line {
    const char *node; /* points into the inventory */
    char *text;       /* without a line break */
};

/* Sorted by node. */
struct drain_lines {
    struct drain_line *items;
    size_t count;
    size_t spared; /* outliers for which no node is drained: the policy only alerts */
};

/* One line per bad node, released with drain_lines_fini. A node whose name is not valid in Slurm is
 * left out and added to out_refused, one per line. */
void drain_lines_init(struct drain_lines *lines, const struct inventory *inventory,
                      struct strbuf *out_refused);
void drain_lines_fini(struct drain_lines *lines);

/* The line of the node; NULL if it has none or node is NULL. */
const char *drain_lines_find(const struct drain_lines *lines, const char *node);

/* The line for one GPU, with its own worst finding; for one place that is a node. Freed with
 * free(); NULL: it is not to be drained, or the name of the node is not valid in Slurm. */
char *drain_line_of_gpu(const struct inventory_outlier *outlier);
char *drain_line_of_place(const struct inventory_node *place);

/* True for a host name as RFC 1123 and Slurm define it that means one node. It is safe for a shell.
 */
bool drain_is_node_name(const char *name);

/* All lines as one text. Returns `spared` of struct drain_lines. */
size_t report_drain(const struct inventory *inventory, struct strbuf *out_lines,
                    struct strbuf *out_refused);

/* The same nodes as a list for --exclude of srun and sbatch: "gpu003,gpu017", and a line break.
 * Nothing if no node is bad. */
size_t report_exclude(const struct inventory *inventory, struct strbuf *out_list,
                      struct strbuf *out_refused);

/* The reason why a node is drained, in a form that programs can split and people can read: the
 * worst finding of the node. Strings are not owned. */
struct drain_reason {
    enum verdict verdict;
    const char *uuid, *cause, *metric; /* NULL: unknown, written as "-" */
    double deviation;                  /* share; NaN: none, written as "-" */
    size_t more_gpus;                  /* other bad GPUs of the node */
    size_t more_findings;              /* other findings of this GPU */
};

/* Splits the text of a place finding ("8 of 8 GPUs: METRIC 12 GB/s, expected 25 GB/s (-50.0 %):
 * CAUSE") into cause, metric and deviation. Any other text is the cause as a whole. The metric is
 * copied to out_metric, which must have room for DRAIN_METRIC_CHARS + 1 bytes. */
enum { DRAIN_METRIC_CHARS = 48 };
void drain_reason_split(const char *text, struct drain_reason *reason, char *out_metric);

/* Appends "gpumemtopo:VERDICT:UUID:CAUSE:METRIC:DEVIATION", then ":+2 GPUs" or ":+3 findings" if
 * there are more. At most 255 bytes. No field contains ':' or a character that a shell interprets;
 * a cause that is too long ends in "..." after a whole word. */
void drain_reason_put(struct strbuf *out, const struct drain_reason *reason);

#endif
