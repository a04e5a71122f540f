/* An inventory as JSON. */
#ifndef GPUMEMTOPO_REPORT_JSON_H
#define GPUMEMTOPO_REPORT_JSON_H

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

/* The same keys in the same order as the YAML file; fits the same schema. 0 or -ENOMEM. */
int report_json(const struct inventory *inventory, struct strbuf *out_text, struct err *err);

/* One model's topology in the shape that MT4G emits for NVIDIA GPUs: keys of what was not measured
 * are left out. Fails only by out_text->failed. */
void report_json_mt4g(const struct inventory *inventory, const struct inventory_model *model,
                      struct strbuf *out_text);

#endif
