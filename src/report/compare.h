/* Compares two models, attribute by attribute. */
#ifndef GPUMEMTOPO_REPORT_COMPARE_H
#define GPUMEMTOPO_REPORT_COMPARE_H

#include "inventory/inventory.h"
#include "report/style.h"

struct compare_side {
    const struct inventory *inventory;
    const struct inventory_model *model;
    const char *name; /* title of the column: the file */
};

/* Appends a table with all attributes that either model has: both values, and right divided by left
 * if both are numbers of the same unit. Errors only set out_text->failed. */
void report_compare(const struct compare_side *left, const struct compare_side *right,
                    const struct report_style *style, struct strbuf *out_text);

#endif
