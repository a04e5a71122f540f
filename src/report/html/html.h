/* An inventory as one self-contained HTML page. */
#ifndef GPUMEMTOPO_REPORT_HTML_HTML_H
#define GPUMEMTOPO_REPORT_HTML_HTML_H

#include "base/str.h"
#include "inventory/inventory.h"
#include "judge/reference.h"
#include "report/racks.h"

/* Appends the page: it needs no network, is readable without its script, and works on screen (light
 * and dark) and paper. Strings from the inventory appear as text. references and racks may be
 * NULL. */
void report_html(const struct inventory *inventory, const struct judge_references *references,
                 const struct racks *racks, struct strbuf *out_page);

#endif
