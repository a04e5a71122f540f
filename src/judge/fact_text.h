/* Facts in plain words, for causes. */
#ifndef GPUMEMTOPO_JUDGE_FACT_TEXT_H
#define GPUMEMTOPO_JUDGE_FACT_TEXT_H

#include "base/str.h"
#include "inventory/facts.h"

/* "ECC" for ecc, "power limit" for power_limit_w; other keys as they are, less the unit. */
void fact_text_put_key(struct strbuf *out, const char *key);

/* "on", "580.00", "500 W": the unit follows from the key. */
void fact_text_put_value(struct strbuf *out, const struct fact *fact);

/* The unit that a key ends in: "W", "MHz", "B"; "" without one. */
const char *fact_text_unit(const char *key);

/* A number with so few digits that people can read it. */
void fact_text_put_number(struct strbuf *out, double value, const char *unit);

#endif
