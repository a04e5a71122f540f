/* Entries of the lists of an inventory, as text for people. style NULL: REPORT_WIDTH columns
 * without colour. */
#ifndef GPUMEMTOPO_REPORT_ENTRIES_H
#define GPUMEMTOPO_REPORT_ENTRIES_H

#include "base/str.h"
#include "inventory/inventory.h"
#include "report/style.h"

/* "1 GPU", "3 GPUs". */
void report_put_count(struct strbuf *out, size_t count, const char *one, const char *many);

/* Wraps and appends the text of `line` (see text.h), then releases it. */
void report_end_line(struct strbuf *out, const struct report_style *style, struct strbuf *line,
                     unsigned first, unsigned indent);

/* The place of the GPU, the kind of outlier (not if `watched`), and its findings; figures with the
 * same cause are listed together. */
void report_put_outlier(struct strbuf *out, const struct report_style *style,
                        const struct inventory_outlier *outlier, bool watched);

void report_put_node(struct strbuf *out, const struct report_style *style,
                     const struct inventory_node *node);
void report_put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory_unmeasured *unmeasured);

#endif
