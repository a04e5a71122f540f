/* Two models side by side, attribute by attribute. */
#ifndef GPUMEMTOPO_REPORT_COMPARE_H
#define GPUMEMTOPO_REPORT_COMPARE_H

#include "inventory/inventory.h"
#include "report/text.h"

struct compare_side {
    const struct inventory *inventory;
    const struct inventory_model *model;
    const char *name; /* of the column: where it comes from */
};

/* Appends a table: what either has, both values, and right over left where both are numbers of one
 * unit. Fails only by out_text->failed. */
void report_compare(const struct compare_side *left, const struct compare_side *right,
                    const struct report_style *style, struct strbuf *out_text);

#endif
