/* Text for a terminal: its width, colours and box characters, and entries of the lists of an
 * inventory. style NULL: REPORT_WIDTH columns without colour. */
#ifndef GPUMEMTOPO_REPORT_ENTRIES_H
#define GPUMEMTOPO_REPORT_ENTRIES_H

#include "base/str.h"
#include "inventory/inventory.h"

enum { REPORT_WIDTH = 100, REPORT_WIDTH_MIN = 40, REPORT_WIDTH_MAX = 400 };

/* Columns of a sentence, such as the cause of a finding. That of a wrong result has up to 360. */
enum { REPORT_SENTENCE_MAX = 600 };

struct report_style {
    unsigned width; /* columns */
    bool colour;
    bool boxes; /* the terminal shows box-drawing characters */
};

/* The style for a stream: width and colours of the terminal (no colours with NO_COLOR or
 * TERM=dumb); otherwise REPORT_WIDTH columns. COLUMNS overrides the width. */
struct report_style report_style_for(int fd);

/* Colours the text up to report_end_paint, unless the style has no colours or is NULL. */
enum report_paint { REPORT_BOLD, REPORT_RED, REPORT_GREEN, REPORT_DIM, REPORT_YELLOW };
void report_begin_paint(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint);
void report_end_paint(struct strbuf *buffer, const struct report_style *style);
void report_put_painted(struct strbuf *buffer, const struct report_style *style,
                        enum report_paint paint, const char *text);

/* "1 GPU", "3 GPUs". */
void report_put_count(struct strbuf *out, size_t count, const char *one, const char *many);

/* Wraps and appends the text of `line` (see text.h), then releases it. */
void report_end_line(struct strbuf *out, const struct report_style *style, struct strbuf *line,
                     unsigned first, unsigned indent);

/* The place of the GPU, its verdict, loss and action, and the evidence; figures with the same cause
 * are listed together. */
void report_put_outlier(struct strbuf *out, const struct report_style *style,
                        const struct inventory_outlier *outlier);

/* The evidence in a line or two: of each cause the worst figure. Each begins at column `indent`, up
 * to which the caller has filled the first one. */
void report_put_outlier_briefly(struct strbuf *out, const struct report_style *style,
                                const struct inventory_outlier *outlier, unsigned indent);

void report_put_node(struct strbuf *out, const struct report_style *style,
                     const struct inventory_node *node);
void report_put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory_unmeasured *unmeasured);

#endif
