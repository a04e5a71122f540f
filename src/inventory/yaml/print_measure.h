/* Facts and measures as YAML. */
#ifndef GPUMEMTOPO_INVENTORY_YAML_PRINT_MEASURE_H
#define GPUMEMTOPO_INVENTORY_YAML_PRINT_MEASURE_H

#include "base/str.h"
#include "inventory/measure.h"
#include "schema/facts.h"

void inventory_print_fact(struct strbuf *buffer, const struct fact *fact);

/* {key: value, ...} */
void inventory_print_facts(struct strbuf *buffer, const struct facts *facts);

/* A block mapping at column `indent`, nested at the dots of the metrics. It begins and ends with a
 * line break. Without measures: " {}". */
void inventory_print_measures(struct strbuf *buffer, const struct measures *measures, int indent);

#endif
