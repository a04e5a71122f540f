/* The frame of a self-contained HTML page. */
#ifndef GPUMEMTOPO_MARKUP_PAGE_H
#define GPUMEMTOPO_MARKUP_PAGE_H

#include "base/str.h"

/* Head and the beginning of the body. The page needs no network and is styled for screen (light and
 * dark), phone and paper. title: plain text without markup. script_hash: of the only script that
 * may run, as "sha256-..."; NULL: none may. */
void page_begin(struct strbuf *out, const char *title, const char *script_hash);

/* script: NULL for none. */
void page_end(struct strbuf *out, const char *script);

#endif
