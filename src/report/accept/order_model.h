/* One model of an order. */
#ifndef GPUMEMTOPO_REPORT_ACCEPT_ORDER_MODEL_H
#define GPUMEMTOPO_REPORT_ACCEPT_ORDER_MODEL_H

#include "base/yaml.h"
#include "report/accept/order.h"

/* Reads an entry of `models`. *out_model, which must be empty, may be partly filled on failure;
 * released with order_model_fini. */
int order_model_read(const struct yaml_node *node, const struct judge_config *config,
                     struct order_model *out_model, struct err *err);
void order_model_fini(struct order_model *model);

#endif
