/* Lists of numbers in few bytes, for those who keep many of them in memory. Equal lists have equal
 * bytes. */
#ifndef GPUMEMTOPO_SCHEMA_PACKED_H
#define GPUMEMTOPO_SCHEMA_PACKED_H

#include "base/str.h"
#include "schema/facts.h"

/* Appends the list of a fact of kind FACT_NUMBERS. Numbers that are not finite become NaN. */
void packed_put(struct strbuf *out, const struct fact *fact);

/* Sets kind and list of the fact from such bytes, at any address; the caller frees fact->numbers.
 */
void packed_get(const char *data, struct fact *fact);

#endif
