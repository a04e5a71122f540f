/* Text formats of metrics: what Prometheus and node_exporter read, and OpenMetrics. */
#ifndef GPUMEMTOPO_REPORT_EXPOSITION_H
#define GPUMEMTOPO_REPORT_EXPOSITION_H

#include <stdbool.h>

#include "base/str.h"

/* Errors only set out->failed. */
struct exposition {
    struct strbuf *out;
    bool openmetrics; /* false: the text format 0.0.4 of Prometheus */
};

/* Begins a family of gauges. name ends with "_UNIT"; unit NULL or "": none. */
void exposition_gauge(const struct exposition *to, const char *name, const char *unit,
                      const char *help);

/* Begins a family of samples that are always 1 and carry text in their labels. name ends with
 * "_info". */
void exposition_info(const struct exposition *to, const char *name, const char *help);

/* One label; lead is what precedes its value, such as ",node=\"". text NULL is empty. */
void exposition_label(const struct exposition *to, const char *lead, const char *text);

/* The value of a sample and the end of its line. lead: "} " after labels, " " without. */
void exposition_value(const struct exposition *to, const char *lead, double value);

/* The end of the last family. */
void exposition_end(const struct exposition *to);

#endif
