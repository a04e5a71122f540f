/* Single values as YAML text that YAML 1.1 and 1.2 readers read as the same value. */
#ifndef GPUMEMTOPO_SCHEMA_SCALAR_H
#define GPUMEMTOPO_SCHEMA_SCALAR_H

#include <stdbool.h>

#include "base/str.h"

/* Unquoted if no reader could misread it, otherwise in double quotes; NULL becomes null. Control
 * characters are escaped, and bytes that are not UTF-8 become U+FFFD. Valid in block and flow
 * style. */
void scalar_put_text(struct strbuf *buffer, const char *text);

/* The shortest decimal that reads back as the same double; null for NaN and infinities. */
void scalar_put_number(struct strbuf *buffer, double value);

#endif
