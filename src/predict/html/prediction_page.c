/* The page: head, headline, and its parts in order. */
#include "predict/html/prediction_page.h"

#include <string.h>

#include "markup/html_text.h"
#include "markup/page.h"
#include "predict/html/sections.h"
#include "predict/quantity.h"

static const char title[] = "Predicted cache behaviour";

static void put_tile(struct strbuf *out, size_t count, const char *one, const char *many, bool bad)
{
    strbuf_printf(out, "<li><b%s>%zu</b>%s</li>", bad && count ? " class=bad" : "", count,
                  count == 1 ? one : many);
}

static void put_headline(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    struct section_kernel kernel;
    size_t kernels = 0, models = 0, what_ifs = 0, absent = 0;
    for (size_t at = 0; section_next(predictions, count, &at, &kernel); kernels++) {
    }
    for (size_t i = 0; i < count; i++) {
        models += !predictions[i].program && !predictions[i].what_if;
        what_ifs += !predictions[i].program && predictions[i].what_if;
        absent += predictions[i].reason[0] != 0;
    }
    strbuf_printf(out, "<header><h1>%s</h1>\n<ul class=tiles>", title);
    put_tile(out, kernels, "kernel", "kernels", false);
    put_tile(out, models, "GPU model", "GPU models", false);
    if (what_ifs)
        put_tile(out, models ? what_ifs / models : 0, "change", "changes", false);
    put_tile(out, absent, "not predicted", "not predicted", true);
    strbuf_puts(out, "</ul>\n");
}

static void put_navigation(struct strbuf *out, const struct prediction *predictions, size_t count)
{
    struct section_kernel kernel;
    strbuf_puts(out, "<nav>");
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);) {
        strbuf_printf(out, "<a href=#k%zu>", kernel.number);
        html_text(out, kernel.predictions->kernel, HTML_NAME);
        strbuf_puts(out, "</a>");
    }
    strbuf_puts(out, "<a href=#assumed>What was assumed</a></nav></header>\n<main>\n");
}

static void put_launch(struct strbuf *out, const struct prediction *p)
{
    char text[QUANTITY_MAX];
    strbuf_puts(out, "<p class=dim>");
    html_text(out, p->summary, HTML_SENTENCE);
    if (p->size)
        strbuf_printf(out, "; N = %llu", (unsigned long long)p->size);
    strbuf_printf(out, "; blocks of %u &times; %u threads", p->block_x, p->block_y);
    if (p->footprint_bytes)
        strbuf_printf(out, "; arrays of %s", quantity_bytes((double)p->footprint_bytes, text));
    strbuf_puts(out, "</p>\n");
}

static void put_kernel(struct strbuf *out, const struct section_kernel *kernel, bool with_file)
{
    strbuf_printf(out, "<section id=k%zu><h2>", kernel->number);
    html_text(out, kernel->predictions->kernel, HTML_NAME);
    strbuf_puts(out, "</h2>\n");
    put_launch(out, kernel->predictions);
    section_models(out, kernel, with_file);
    section_what_if(out, kernel, with_file);
    section_curves(out, kernel);
    strbuf_puts(out, "</section>\n");
}

void prediction_page(const struct prediction *predictions, size_t count, struct strbuf *out)
{
    struct section_kernel kernel;
    bool with_file = false;
    for (size_t i = 0; i < count; i++)
        with_file |= strcmp(predictions[i].inventory, predictions[0].inventory) != 0;
    page_begin(out, title, NULL);
    put_headline(out, predictions, count);
    put_navigation(out, predictions, count);
    section_absent(out, predictions, count);
    section_all_kernels(out, predictions, count, with_file);
    for (size_t at = 0; section_next(predictions, count, &at, &kernel);)
        put_kernel(out, &kernel, with_file);
    section_assumed(out, predictions, count, with_file);
    strbuf_puts(out, "</main>\n");
    page_end(out, NULL);
}
