/* An inventory as JSON. */
#ifndef GPUMEMTOPO_REPORT_JSON_H
#define GPUMEMTOPO_REPORT_JSON_H

#include "base/str.h"
#include "inventory/inventory.h"

/* The same keys in the same order as in the YAML file; the same schema applies. */
void report_json(const struct inventory *inventory, struct strbuf *out_text);

/* The topology of one model in the format that MT4G writes for NVIDIA GPUs. Keys of attributes that
 * were not measured are left out. */
void report_json_mt4g(const struct inventory *inventory, const struct inventory_model *model,
                      struct strbuf *out_text);

#endif
