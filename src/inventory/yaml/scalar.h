/* Single values as YAML text that every reader of YAML 1.1 and 1.2 takes for the same value. */
#ifndef GPUMEMTOPO_INVENTORY_YAML_SCALAR_H
#define GPUMEMTOPO_INVENTORY_YAML_SCALAR_H

#include <stdbool.h>

#include "base/str.h"

/* Plain where no reader could mistake it, double-quoted otherwise; NULL becomes null. Control
 * characters are escaped, and bytes that are not UTF-8 become U+FFFD. Fits block and flow style. */
void scalar_put_text(struct strbuf *buffer, const char *text);

/* The shortest decimal that reads back as the same double; null for NaN and infinities. */
void scalar_put_number(struct strbuf *buffer, double value);

#endif
