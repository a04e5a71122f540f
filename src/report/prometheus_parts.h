/* Parts of the metrics of an inventory; prometheus.c has their order. */
#ifndef GPUMEMTOPO_REPORT_PROMETHEUS_PARTS_H
#define GPUMEMTOPO_REPORT_PROMETHEUS_PARTS_H

#include <stdbool.h>

#include "inventory/inventory.h"
#include "report/exposition.h"

/* Whether the figures of a GPU were judged. Those of GPUs that were not completely measured, or
 * that were busy, were not; they are left out, because a sample cannot say so. */
bool prometheus_was_judged(const struct inventory_gpu *gpu);

/* The begin of a sample of a GPU: the name of the family and the labels UUID, Hostname and gpu, as
 * dcgm-exporter names them, and model. No closing brace. */
void prometheus_put_gpu(const struct exposition *to, const char *family,
                        const struct inventory_gpu *gpu);

/* Where each GPU is, how its survey ended, which are outliers, of which kind and why. */
void prometheus_put_states(const struct exposition *to, const struct inventory *inventory);

/* Counters of errors and repairs that are not 0, and how many GPUs told each of them. */
void prometheus_put_health(const struct exposition *to, const struct inventory *inventory);

/* Findings about nodes, nodes without GPUs among them, and missing results by node. */
void prometheus_put_nodes(const struct exposition *to, const struct inventory *inventory);

#endif
