/* An inventory as metrics for Prometheus. */
#ifndef GPUMEMTOPO_REPORT_PROMETHEUS_H
#define GPUMEMTOPO_REPORT_PROMETHEUS_H

#include "base/str.h"
#include "inventory/inventory.h"

/* The text format that node_exporter's textfile collector reads: one family per attribute, labels
 * uuid, node and model, base units (bytes, seconds, hertz). What has no value has no sample, nor
 * has what is noisy, a bound, or of a GPU that was not judged. Fails only by out_text->failed. */
void report_prometheus(const struct inventory *inventory, struct strbuf *out_text);

#endif
