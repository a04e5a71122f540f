/* The result of an acceptance as text for people. */
#include "report/accept/accept.h"

#include <ctype.h>

#include "markup/text.h"
#include "report/entries.h"

/* Keeps the text short; the page has more. */
enum { ENTRIES_MAX = 100, NAME_CHARS = 60, TEXT_CHARS = 200 };

static void put_subject(struct strbuf *out, const struct accept_finding *finding)
{
    if (finding->node) {
        text_put_clean(out, finding->node, NAME_CHARS);
        if (finding->index >= 0)
            strbuf_printf(out, ":%d", (int)finding->index);
        strbuf_puts(out, " ");
    }
    if (finding->uuid) {
        text_put_clean(out, finding->uuid, NAME_CHARS);
        strbuf_puts(out, " ");
    }
    if (finding->model && !finding->uuid) {
        text_put_clean(out, finding->model, NAME_CHARS);
        strbuf_puts(out, " ");
    }
}

static void put_finding(struct strbuf *out, const struct accept_finding *finding)
{
    struct strbuf line = {0};
    put_subject(&line, finding);
    text_put_clean(&line, finding->what, NAME_CHARS);
    strbuf_puts(&line, ": ordered ");
    text_put_clean(&line, finding->ordered, TEXT_CHARS);
    strbuf_puts(&line, ", found ");
    text_put_clean(&line, finding->found, TEXT_CHARS);
    if (finding->reason) {
        strbuf_puts(&line, " (");
        text_put_clean(&line, finding->reason, TEXT_CHARS);
        strbuf_puts(&line, ")");
    }
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 6);
}

static void put_class(struct strbuf *out, const struct accept *accept, size_t first,
                      enum accept_class class)
{
    const size_t count = accept->counts[class];
    const char *name = accept_class_name(class);
    if (!count)
        return;
    strbuf_printf(out, "\n%c%s:\n", toupper((unsigned char)name[0]), name + 1);
    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++)
        put_finding(out, &accept->findings[first + i]);
    if (count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", count - ENTRIES_MAX);
}

static void put_head(struct strbuf *out, const struct accept *accept,
                     const struct accept_source *source)
{
    struct strbuf line = {0};
    strbuf_puts(&line, "Order ");
    text_put_clean(&line, accept->order->number ? accept->order->number : source->order_path,
                   NAME_CHARS);
    strbuf_puts(&line, ", compared with ");
    text_put_clean(&line, source->inventory_path, TEXT_CHARS);
    strbuf_puts(&line, " of ");
    text_put_clean(&line, accept->inventory->generated, NAME_CHARS);
    report_end_line(out, NULL, &line, 0, 2);
    if (str_equal(accept->inventory->backend, "sim"))
        strbuf_puts(out, "The GPUs of this inventory are simulated.\n");
}

static void put_models(struct strbuf *out, const struct accept *accept)
{
    for (size_t m = 0; m < accept->order->model_count; m++) {
        const struct accept_model *model = &accept->models[m];
        struct strbuf line = {0};
        text_put_clean(&line, model->order->name, NAME_CHARS);
        strbuf_printf(&line, ": %u ordered, %zu found, %zu measured", model->order->count,
                      model->found, model->measured);
        report_end_line(out, NULL, &line, 0, 2);
    }
    if (accept->ignored_nodes)
        strbuf_printf(out, "Not part of the order, ignored: %zu node%s\n", accept->ignored_nodes,
                      accept->ignored_nodes == 1 ? "" : "s");
    if (accept->allowed_outliers)
        strbuf_printf(out, "Outliers of kinds that the order allows: %zu\n",
                      accept->allowed_outliers);
}

void accept_put_text(const struct accept *accept, const struct accept_source *source,
                     struct strbuf *out_text)
{
    size_t first = 0;
    put_head(out_text, accept, source);
    put_models(out_text, accept);
    strbuf_printf(out_text, "%zu comparisons: %zu met", accept->met + accept->finding_count,
                  accept->met);
    for (int class = 0; class < ACCEPT_CLASSES; class ++)
        strbuf_printf(out_text, ", %zu %s", accept->counts[class],
                      accept_class_name((enum accept_class) class));
    strbuf_printf(out_text, "\n%s\n", accept_verdict(accept));
    for (int class = 0; class < ACCEPT_CLASSES; class ++) {
        put_class(out_text, accept, first, (enum accept_class) class);
        first += accept->counts[class];
    }
}
