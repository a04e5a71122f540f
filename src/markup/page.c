/* The frame of a self-contained HTML page: head, style, policy. */
#include "markup/page.h"

#include "page_style.h"

/* The content security policy lets only the page's script run, even if a hostile name got past the
 * escaping. */
void page_begin(struct strbuf *out, const char *title, const char *script_hash)
{
    strbuf_puts(out, "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
                     "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'; ");
    if (script_hash)
        strbuf_printf(out, "script-src '%s'; ", script_hash);
    strbuf_puts(out, "base-uri 'none'; form-action 'none'\">\n"
                     "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    strbuf_printf(out, "<title>%s</title>\n<style>\n", title);
    strbuf_puts(out, page_style);
    strbuf_puts(out, "</style>\n</head>\n<body>\n");
}

void page_end(struct strbuf *out, const char *script)
{
    if (script) {
        strbuf_puts(out, "<script>");
        strbuf_puts(out, script);
        strbuf_puts(out, "</script>\n");
    }
    strbuf_puts(out, "</body>\n</html>\n");
}
