/* What is drawn of a sweep, from the measures of a model. */
#include "report/sweep_chart.h"

#include <stdio.h>
#include <string.h>

enum { METRIC_MAX = 64 };

const char *const sweep_chart_memories[] = {"l1_data",     "texture", "read_only", "constant_l15",
                                            "constant_l1", "l2",      NULL};

static void add_level(struct sweep_chart *plot, const char *label, double cycles)
{
    plot->levels[plot->level_count++] = (struct sweep_chart_level){label, cycles};
}

static void add_mark(struct sweep_chart *plot, const char *what, double bytes)
{
    char size[SWEEP_CHART_TEXT_MAX];
    struct sweep_chart_mark *mark = &plot->marks[plot->mark_count++];
    sweep_chart_format_bytes(size, bytes);
    snprintf(mark->label, sizeof mark->label, "%s: %.30s", what, size);
    mark->bytes = bytes;
}

/* Adds a mark for a metric that has a value. */
static void mark_metric(struct sweep_chart *plot, const struct measures *measures,
                        const char *memory, const char *attribute, const char *what)
{
    char metric[METRIC_MAX];
    double bytes;
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    if (measures_value(measures, metric, &bytes))
        add_mark(plot, what, bytes);
}

static void mark_sizes(struct sweep_chart *plot, const struct measures *measures,
                       const char *memory, const struct measure *size)
{
    if (size->bound == MEASURE_AT_LEAST) {
        add_mark(plot, "no change point up to the end of the memory", size->value);
        return;
    }
    if (strcmp(memory, "l2") == 0) {
        mark_metric(plot, measures, memory, "step_half", "first step");
        mark_metric(plot, measures, memory, "step_whole", "second step");
    } else {
        mark_metric(plot, measures, memory, "reach", "change point of the sweep");
    }
    int64_t resident = facts_int(&size->notes, "by_residency", 0);
    if (resident > 0)
        add_mark(plot, "resident share", (double)resident);
}

bool sweep_chart_memory(const struct measures *measures, const char *memory,
                        struct sweep_chart *out_plot)
{
    struct sweep_chart plot = {0};
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.size", memory);
    const struct measure *size = measures_get(measures, metric);
    const char *text = size ? facts_text(&size->notes, "curve") : NULL;
    if (!text || !curve_read(text, &plot.curve))
        return false;
    mark_sizes(&plot, measures, memory, size);
    add_level(&plot, plot.curve.far > 0 ? "near" : "hit", plot.curve.hit);
    if (plot.curve.far > 0)
        add_level(&plot, "far", plot.curve.far);
    add_level(&plot, strcmp(memory, "l2") == 0 ? "main" : "miss", plot.curve.miss);
    *out_plot = plot;
    return true;
}
