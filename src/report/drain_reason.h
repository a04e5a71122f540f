/* The reason why a node is drained, in a form that programs can split and people can read. */
#ifndef GPUMEMTOPO_REPORT_DRAIN_REASON_H
#define GPUMEMTOPO_REPORT_DRAIN_REASON_H

#include <stddef.h>

#include "base/str.h"
#include "inventory/inventory.h"

/* The worst finding of a node. Strings are not owned. */
struct drain_reason {
    enum inventory_kind kind;
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

/* Appends "gpumemtopo:KIND:UUID:CAUSE:METRIC:DEVIATION", then ":+2 GPUs" or ":+3 findings" if there
 * are more. At most 255 bytes. No field contains ':' or a character that a shell interprets; a
 * cause that is too long ends in "..." after a whole word. */
void drain_reason_put(struct strbuf *out, const struct drain_reason *reason);

#endif
