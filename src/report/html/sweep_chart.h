/* A sweep for drawing: mean latency by array size, with the sizes that the probes report. */
#ifndef GPUMEMTOPO_REPORT_HTML_SWEEP_CHART_H
#define GPUMEMTOPO_REPORT_HTML_SWEEP_CHART_H

#include "base/str.h"
#include "inventory/curves.h"
#include "inventory/measure.h"

enum { SWEEP_CHART_MARKS_MAX = 3, SWEEP_CHART_LEVELS_MAX = 3, SWEEP_CHART_TEXT_MAX = 96 };

/* A size that a probe reports: a vertical line. */
struct sweep_chart_mark {
    char label[SWEEP_CHART_TEXT_MAX];
    double bytes;
};

/* The latency of a level of the hierarchy: a horizontal line. */
struct sweep_chart_level {
    const char *label;
    double cycles;
};

struct sweep_chart {
    char title[SWEEP_CHART_TEXT_MAX];
    struct curve curve;
    struct sweep_chart_mark marks[SWEEP_CHART_MARKS_MAX];
    size_t mark_count;
    struct sweep_chart_level levels[SWEEP_CHART_LEVELS_MAX]; /* from fast to slow */
    size_t level_count;
};

/* The sweep of a memory ("l1_data", "l2") with its marks; false if none was stored. */
bool sweep_chart_memory(const struct measures *measures, const char *memory,
                        struct sweep_chart *out_plot);

/* "216 KiB", "29.5 MiB" */
void sweep_chart_format_bytes(char text[SWEEP_CHART_TEXT_MAX], double bytes);

/* The memories that can have a sweep; NULL-terminated. */
extern const char *const sweep_chart_memories[];

/* The same plot gives the same bytes. standalone: includes colours, for a file; otherwise the
 * surrounding page has them. */
void sweep_chart_put_svg(struct strbuf *out, const struct sweep_chart *plot, bool standalone);

#endif
