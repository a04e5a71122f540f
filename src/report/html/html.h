/* An inventory as one self-contained HTML page. */
#ifndef GPUMEMTOPO_REPORT_HTML_HTML_H
#define GPUMEMTOPO_REPORT_HTML_HTML_H

#include "base/str.h"
#include "inventory/inventory.h"
#include "judge/reference.h"

/* Appends the page: no network, readable without its script, for screen (light and dark) and paper.
 * Names and all else out of the inventory appear as text. references may be NULL. Fails only by
 * out_page->failed. */
void report_html(const struct inventory *inventory, const struct judge_references *references,
                 struct strbuf *out_page);

#endif
