/* A text drawing of one model's memory hierarchy. */
#ifndef GPUMEMTOPO_REPORT_TOPOLOGY_H
#define GPUMEMTOPO_REPORT_TOPOLOGY_H

#include "inventory/inventory.h"
#include "report/style.h"

/* Appends nested boxes, from the SM down to the host link, no wider than the style says. */
void report_topology(const struct inventory_model *model, const struct report_style *style,
                     struct strbuf *out_text);

#endif
