/* A sweep as it is drawn: mean latency over array size, with what the probes made of it. */
#ifndef GPUMEMTOPO_REPORT_SWEEP_H
#define GPUMEMTOPO_REPORT_SWEEP_H

#include "base/str.h"
#include "inventory/curve.h"
#include "inventory/measure.h"

enum { PLOT_MARKS_MAX = 3, PLOT_LEVELS_MAX = 3, PLOT_TEXT_MAX = 96 };

/* A size that a probe reports: a vertical line. */
struct plot_mark {
    char label[PLOT_TEXT_MAX];
    double bytes;
};

/* The latency of a level of the hierarchy: a horizontal line. */
struct plot_level {
    const char *label;
    double cycles;
};

struct plot {
    char title[PLOT_TEXT_MAX];
    struct curve curve;
    struct plot_mark marks[PLOT_MARKS_MAX];
    size_t mark_count;
    struct plot_level levels[PLOT_LEVELS_MAX]; /* from fast to slow */
    size_t level_count;
};

/* The sweep of a memory ("l1_data", "l2") with its marks; false where none was kept. */
bool plot_memory(const struct measures *measures, const char *memory, struct plot *out_plot);

/* "216 KiB", "29.5 MiB" */
void plot_format_bytes(char text[PLOT_TEXT_MAX], double bytes);

/* The memories that can have a sweep; NULL-terminated. */
extern const char *const plot_memories[];

/* The same bytes for the same plot. standalone: with colours of its own, for a file; otherwise the
 * page around it has them. Fails only by out->failed. */
void plot_put_svg(struct strbuf *out, const struct plot *plot, bool standalone);

#endif
