/* The short summary of an inventory that people see at the end of a survey. */
#ifndef GPUMEMTOPO_REPORT_SUMMARY_H
#define GPUMEMTOPO_REPORT_SUMMARY_H

#include "base/str.h"
#include "inventory/inventory.h"

/* Appends counts, models with their memories, outliers and what could not be measured: at most 100
 * columns wide, long lists shortened, no control character but line breaks. Fails only by
 * out_text->failed. */
void report_summary(const struct inventory *inventory, struct strbuf *out_text);

#endif
