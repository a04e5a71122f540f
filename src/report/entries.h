/* Single entries of an inventory's lists, as people read them; style NULL is REPORT_WIDTH columns
 * without colour. */
#ifndef GPUMEMTOPO_REPORT_ENTRIES_H
#define GPUMEMTOPO_REPORT_ENTRIES_H

#include "base/str.h"
#include "inventory/inventory.h"
#include "report/text.h"

/* "1 GPU", "3 GPUs". */
void report_put_count(struct strbuf *out, size_t count, const char *one, const char *many);

/* Takes over the text of `line`: wrapped (text.h), then released. */
void report_end_line(struct strbuf *out, const struct report_style *style, struct strbuf *line,
                     unsigned first, unsigned indent);

/* Where it is, what kind of trouble it has (`watched`: none), and its findings: figures with one
 * cause are told together. */
void report_put_outlier(struct strbuf *out, const struct report_style *style,
                        const struct inventory_outlier *outlier, bool watched);

void report_put_node(struct strbuf *out, const struct report_style *style,
                     const struct inventory_node *node);
void report_put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory_unmeasured *unmeasured);

#endif
