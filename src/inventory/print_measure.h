/* Facts and measures as YAML. */
#ifndef GPUMEMTOPO_INVENTORY_PRINT_MEASURE_H
#define GPUMEMTOPO_INVENTORY_PRINT_MEASURE_H

#include "base/str.h"
#include "inventory/facts.h"
#include "inventory/measure.h"

void print_fact_value(struct strbuf *buffer, const struct fact *fact);

/* {key: value, ...} */
void print_facts(struct strbuf *buffer, const struct facts *facts);

/* A block mapping, nested at the dots of the metrics, from column `indent` on; it begins with a
 * line break and ends with one. Without measures: " {}". */
void print_measures(struct strbuf *buffer, const struct measures *measures, int indent);

#endif
