/* An inventory as metrics for Prometheus. */
#ifndef GPUMEMTOPO_REPORT_COMMANDS_PROMETHEUS_H
#define GPUMEMTOPO_REPORT_COMMANDS_PROMETHEUS_H

#include "base/str.h"
#include "inventory/inventory.h"

/* The text format that node_exporter's textfile collector reads, or OpenMetrics: one family per
 * attribute, labels UUID, Hostname, gpu and model, base units (bytes, seconds, hertz). Only exact
 * values with status ok of judged GPUs have a sample. */
void report_prometheus(const struct inventory *inventory, bool openmetrics,
                       struct strbuf *out_text);

#endif
