/* The short summary of an inventory, printed at the end of a survey, and the drawing of a model. */
#ifndef GPUMEMTOPO_REPORT_SUMMARY_H
#define GPUMEMTOPO_REPORT_SUMMARY_H

#include "base/str.h"
#include "inventory/gpu_result.h"
#include "inventory/inventory.h"
#include "report/entries.h"

/* Appends counts, what needs action, the most severe first, and a few figures of each model, in
 * about 40 lines. As wide as the style says (NULL: REPORT_WIDTH columns, no colour); long lists are
 * shortened; no control characters except line breaks and colours. file: where the inventory is,
 * for the commands that go on with it; NULL: in no file. */
void report_summary(const struct inventory *inventory, const char *file,
                    const struct report_style *style, struct strbuf *out_text);

/* The same with all attributes of each model and all evidence. */
void report_summary_all(const struct inventory *inventory, const struct report_style *style,
                        struct strbuf *out_text);

/* Appends the verdict in a sentence: "9 GPUs need action (2 failing, 7 degraded), 5 nodes to drain;
 * 1 to watch; 8 without findings". */
void report_verdict(const struct inventory *inventory, struct strbuf *out_text);

/* Appends the probes of a GPU (the slowest one) with their seconds, longest first. Appends nothing
 * if it has no timings. */
void report_timing(const struct gpu_result *slowest, struct strbuf *out_text);

/* Appends nested boxes, from the SM down to the host link, no wider than the style says. */
void report_topology(const struct inventory_model *model, const struct report_style *style,
                     struct strbuf *out_text);

#endif
