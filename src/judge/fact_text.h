/* Facts as text, for causes. */
#ifndef GPUMEMTOPO_JUDGE_FACT_TEXT_H
#define GPUMEMTOPO_JUDGE_FACT_TEXT_H

#include "base/str.h"
#include "schema/facts.h"

/* "ECC" for ecc, "power limit" for power_limit_w. A key without its own text loses its unit and its
 * underscores. */
void fact_text_put_key(struct strbuf *out, const char *key);

/* "on", "580.00", "500 W". The ending of the key gives the unit. */
void fact_text_put_value(struct strbuf *out, const struct fact *fact);

/* The unit that the ending of a key gives: "W", "MHz", "B"; "" if there is none. */
const char *fact_text_unit(const char *key);

/* At most four significant digits; whole numbers below 1e9 in full; bytes from 1 MiB on in MiB or
 * GiB. */
void fact_text_put_number(struct strbuf *out, double value, const char *unit);

#endif
