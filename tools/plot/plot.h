/* A sweep as it is drawn: mean latency over array size, with what the probes made of it. */
#ifndef GPUMEMTOPO_TOOLS_PLOT_PLOT_H
#define GPUMEMTOPO_TOOLS_PLOT_PLOT_H

#include <stdio.h>

#include "probes/probe.h"

enum { PLOT_POINTS_MAX = 100, PLOT_MARKS_MAX = 3, PLOT_LEVELS_MAX = 3, PLOT_TEXT_MAX = 96 };

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
    double bytes[PLOT_POINTS_MAX], cycles[PLOT_POINTS_MAX]; /* timer overhead taken off */
    double slow[PLOT_POINTS_MAX];                           /* share of loads that missed */
    size_t count;
    struct plot_mark marks[PLOT_MARKS_MAX];
    size_t mark_count;
    struct plot_level levels[PLOT_LEVELS_MAX]; /* from fast to slow */
    size_t level_count;
};

/* Measures size and sweep of an SM's cache or of L2 on the context's device. -ENODATA where the GPU
 * has no such cache. */
int plot_cache(struct probe_context *context, enum study_id id, struct plot *out_plot,
               struct err *err);
int plot_l2(struct probe_context *context, struct plot *out_plot, struct err *err);

/* "216 KiB", "29.5 MiB" */
void plot_format_bytes(char text[PLOT_TEXT_MAX], double bytes);

/* One line per size: bytes, mean cycles, share of misses. */
void plot_write_table(FILE *file, const struct plot *plot);

/* The same bytes for the same plot. Errors are those of the stream. */
void plot_write_svg(FILE *file, const struct plot *plot);

#endif
