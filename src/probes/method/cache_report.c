/* The attributes of an SM's cache: line, fetch and latency. */
#include "probes/method/cache_report.h"

#include <math.h>
#include <stdio.h>

#include "probes/method/latency.h"
#include "probes/method/line.h"
#include "probes/method/repeats.h"

enum { REASON_MAX = 160 };

/* Ratio of the lines that this cache would have at twice the line length to those of the cache
 * before it. Below this they cannot be told apart. */
static const double HIDDEN = 1.25;

const char *cache_metric(char buffer[CACHE_METRIC_MAX], const char *memory, const char *attribute)
{
    snprintf(buffer, CACHE_METRIC_MAX, "%s.%s", memory, attribute);
    return buffer;
}

int cache_report_missing(struct probe_context *context, const char *memory, const char *attribute,
                         enum measure_status status, const char *reason, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    cache_metric(name, memory, attribute);
    return measures_add_missing(context->measures, name, status, reason) ? 0 : err_no_memory(err);
}

int cache_report_unsupported(struct probe_context *context, const char *memory,
                             const char *const *attributes, const struct study *study,
                             struct err *err)
{
    char reason[REASON_MAX];
    if (study->hit_cycles > 0)
        snprintf(reason, sizeof reason,
                 "no cache seen before the next level: a repeated load takes %.0f cycles",
                 study->hit_cycles);
    else
        snprintf(reason, sizeof reason, "this GPU has no such path");
    for (; *attributes; attributes++) {
        int rc =
            cache_report_missing(context, memory, *attributes, MEASURE_UNSUPPORTED, reason, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int report_fetch(struct probe_context *context, const char *memory,
                        const struct study *study, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    struct measure *fetch =
        measures_add(context->measures, cache_metric(name, memory, "fetch"),
                     (double)study->fetch_bytes, "B", "cold chase, distance between misses");
    if (!fetch)
        return err_no_memory(err);
    fetch->confidence = study->fetch_contrast;
    return 0;
}

static int confirm_line(struct probe_context *context, const struct study *study, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    uint64_t bytes;
    uint32_t n;
    int rc = line_confirm(context, study, &bytes, &n, err);
    if (rc)
        return rc;
    return repeats_confirm(context, cache_metric(name, study_name(study->id), "line"),
                           (double)bytes, "B", n, err);
}

/* Strides beyond the line show how many lines there are, unless the cache before this one holds
 * about as many itself. That happens with constant L1.5 if it has few, long lines. */
static bool hidden_by_l1(const struct probe_context *context, const struct study *study)
{
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    if (study->id != STUDY_CONSTANT_L15)
        return false;
    double before_lines = before->line_bytes
                              ? before->resident_bytes / (double)before->line_bytes
                              : (double)before->region_high_bytes / (double)before->fetch_bytes;
    return study->resident_bytes / (2 * (double)study->line_bytes) < HIDDEN * before_lines;
}

int cache_report_line(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"fetch", "line", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported)
        return cache_report_unsupported(context, memory, attributes, study, err);
    if (context->repeating && study->line_bytes)
        return confirm_line(context, study, err);
    rc = report_fetch(context, memory, study, err);
    if (rc)
        return rc;
    if (!study->line_bytes)
        return cache_report_missing(context, memory, "line", MEASURE_FAILED,
                                    study->unbounded ? "the cache could not be overfilled"
                                                     : "no stride surely skips a line",
                                    err);
    char name[CACHE_METRIC_MAX];
    struct measure *line =
        measures_add(context->measures, cache_metric(name, memory, "line"),
                     (double)study->line_bytes, "B", "span of what stays resident, by stride");
    if (!line)
        return err_no_memory(err);
    line->confidence = study->line_confidence;
    line->n = study->line_n;
    const char *doubt =
        line->confidence < LINE_SURE   ? "two lines explain what stays resident nearly as well"
        : hidden_by_l1(context, study) ? "constant L1 holds as many lines: it may be longer"
                                       : NULL;
    if (doubt)
        line->confidence = fmin(line->confidence, 0.5);
    return doubt && measure_set_status(line, MEASURE_NOISY, doubt) ? err_no_memory(err) : 0;
}

/* Constant L1.5 is timed past L1: with an array several times larger than L1, and not larger than
 * L1.5 (thesis 4.4). */
static int latency_array(struct probe_context *context, const struct study *study,
                         struct device_array *out_array, struct err *err)
{
    *out_array = (struct device_array){.path = study->path,
                                       .size_bytes = 8 * study->fetch_bytes,
                                       .stride_bytes = study->fetch_bytes};
    if (study->id != STUDY_CONSTANT_L15)
        return 0;
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    int rc = study_reach(context, STUDY_CONSTANT_L15, STUDY_REGION, err);
    if (rc)
        return rc;
    uint64_t size = 8 * before->region_high_bytes;
    out_array->size_bytes = size < study->region_low_bytes ? size : study->region_low_bytes;
    out_array->stride_bytes = before->fetch_bytes;
    return 0;
}

/* The additional cost of a miss. Both latencies are from single loads, so that the timer overhead
 * cancels. */
static int report_penalty(struct probe_context *context, const struct study *study, struct err *err)
{
    char name[CACHE_METRIC_MAX];
    struct measure *m =
        measures_add(context->measures, cache_metric(name, study_name(study->id), "miss_penalty"),
                     study->miss_cycles - study->hit_cycles, "cycles", "single loads");
    if (!m)
        return err_no_memory(err);
    m->spread = study->penalty_error;
    m->n = study->level_n;
    m->confidence = repeats_confidence(m->value, m->spread);
    return 0;
}

int cache_report_latency(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    static const char *const attributes[] = {"latency", "miss_penalty", NULL};
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_FETCH, err);
    if (rc)
        return rc;
    if (!study->supported)
        return cache_report_unsupported(context, memory, attributes, study, err);
    struct device_array array;
    rc = latency_array(context, study, &array, err);
    if (rc)
        return rc;
    char name[CACHE_METRIC_MAX];
    rc = latency_report(context, cache_metric(name, memory, "latency"), &array, study, err);
    if (rc)
        return rc;
    return report_penalty(context, study, err);
}
