/* The result of an acceptance: as text for people, and as a page to be printed and signed. */
#include "report/accept/accept.h"

#include <ctype.h>
#include <math.h>

#include "markup/html.h"
#include "markup/text.h"
#include "report/entries.h"

/* Keeps the text short; the page has more. */
enum { ENTRIES_MAX = 100, NAME_CHARS = 60, TEXT_CHARS = 200 };

static void accept_text_put_subject(struct strbuf *out, const struct accept_finding *finding)
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

static void accept_text_put_finding(struct strbuf *out, const struct accept_finding *finding)
{
    struct strbuf line = {0};
    accept_text_put_subject(&line, finding);
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

static void accept_text_put_class(struct strbuf *out, const struct accept *accept, size_t first,
                                  enum accept_class class)
{
    const size_t count = accept->counts[class];
    const char *name = accept_class_name(class);
    if (!count)
        return;
    strbuf_printf(out, "\n%c%s:\n", toupper((unsigned char)name[0]), name + 1);
    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++)
        accept_text_put_finding(out, &accept->findings[first + i]);
    if (count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", count - ENTRIES_MAX);
}

static void accept_text_put_head(struct strbuf *out, const struct accept *accept,
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

static void accept_text_put_models(struct strbuf *out, const struct accept *accept)
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
        strbuf_printf(out, "Outliers of verdicts that the order allows: %zu\n",
                      accept->allowed_outliers);
}

void accept_put_text(const struct accept *accept, const struct accept_source *source,
                     struct strbuf *out_text)
{
    size_t first = 0;
    accept_text_put_head(out_text, accept, source);
    accept_text_put_models(out_text, accept);
    strbuf_printf(out_text, "%zu comparisons: %zu met", accept->met + accept->finding_count,
                  accept->met);
    for (int class = 0; class < ACCEPT_CLASSES; class ++)
        strbuf_printf(out_text, ", %zu %s", accept->counts[class],
                      accept_class_name((enum accept_class) class));
    strbuf_printf(out_text, "\n%s\n", accept_verdict(accept));
    for (int class = 0; class < ACCEPT_CLASSES; class ++) {
        accept_text_put_class(out_text, accept, first, (enum accept_class) class);
        first += accept->counts[class];
    }
}

/* A browser shows tables of some thousand rows without delay. */
enum { ROWS_MAX = 5000 };

static void accept_page_put_row(struct strbuf *out, const char *name, const char *text)
{
    if (!text)
        return;
    strbuf_printf(out, "<tr><th scope=row>%s</th><td>", name);
    html_text(out, text, HTML_SENTENCE);
    strbuf_puts(out, "</td></tr>\n");
}

static void accept_page_put_sum(struct strbuf *out, const char *name, const char *path,
                                const char *sum)
{
    strbuf_printf(out, "<tr><th scope=row>%s</th><td>", name);
    html_text(out, path, HTML_SENTENCE);
    strbuf_puts(out, "<br><code>SHA-256 ");
    html_text(out, sum, HTML_NAME);
    strbuf_puts(out, "</code></td></tr>\n");
}

static void accept_page_put_subject(struct strbuf *out, const struct accept *accept,
                                    const struct accept_source *source)
{
    const struct inventory *inventory = accept->inventory;
    struct strbuf version = {0};
    inventory_put_measured_by(inventory, &version);
    strbuf_puts(out, "<table>\n");
    accept_page_put_row(out, "Order", accept->order->number);
    accept_page_put_row(out, "Supplier", accept->order->supplier);
    accept_page_put_row(out, "Customer", accept->order->customer);
    accept_page_put_row(out, "Delivered", accept->order->delivered);
    accept_page_put_sum(out, "Order file", source->order_path, source->order_sha256);
    accept_page_put_sum(out, "Inventory", source->inventory_path, source->inventory_sha256);
    accept_page_put_row(out, "Surveyed (UTC)", inventory->generated);
    accept_page_put_row(out, "Surveyed with", version.data);
    accept_page_put_row(out, "Compared with", source->version);
    strbuf_fini(&version);
    strbuf_puts(out, "</table>\n");
    if (str_equal(inventory->backend, "sim"))
        strbuf_puts(out, "<p class=note>The GPUs of this inventory are simulated.</p>\n");
}

static void accept_page_put_summary(struct strbuf *out, const struct accept *accept)
{
    strbuf_printf(out, "<h2 class=%s>%s</h2>\n", accept->finding_count ? "bad" : "good",
                  accept_verdict(accept));
    strbuf_printf(out, "<p>%zu comparisons: %zu met", accept->met + accept->finding_count,
                  accept->met);
    for (int class = 0; class < ACCEPT_CLASSES; class ++)
        strbuf_printf(out, ", %zu %s", accept->counts[class],
                      accept_class_name((enum accept_class) class));
    strbuf_puts(out, ".</p>\n<p>A figure that was not measured, or that is not certain enough to "
                     "decide, is <em>not shown</em>. It does not count as met.</p>\n");
    if (accept->ignored_nodes)
        strbuf_printf(out, "<p>Nodes that are not part of the order: %zu, ignored.</p>\n",
                      accept->ignored_nodes);
    if (accept->allowed_outliers)
        strbuf_printf(out, "<p>Outliers of verdicts that the order allows: %zu.</p>\n",
                      accept->allowed_outliers);
}

static void accept_page_put_cell(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "<td>");
    if (text)
        html_text(out, text, HTML_SENTENCE);
    strbuf_puts(out, "</td>");
}

static void accept_page_put_finding(struct strbuf *out, const struct accept_finding *finding)
{
    strbuf_printf(out, "<tr><td>%s</td>", accept_class_name(finding->class));
    accept_page_put_cell(out, finding->node);
    if (finding->index >= 0)
        strbuf_printf(out, "<td class=n>%d</td>", (int)finding->index);
    else
        strbuf_puts(out, "<td></td>");
    accept_page_put_cell(out, finding->uuid);
    accept_page_put_cell(out, finding->model);
    accept_page_put_cell(out, finding->what);
    accept_page_put_cell(out, finding->ordered);
    accept_page_put_cell(out, finding->found);
    accept_page_put_cell(out, finding->reason);
    strbuf_puts(out, "</tr>\n");
}

static void accept_page_put_findings(struct strbuf *out, const struct accept *accept)
{
    strbuf_puts(out, "<h2>Findings</h2>\n");
    if (!accept->finding_count) {
        strbuf_puts(out, "<p>None.</p>\n");
        return;
    }
    strbuf_puts(
        out, "<div class=wide><table>\n<thead><tr><th scope=col>Finding</th><th scope=col>Node</th>"
             "<th scope=col>GPU</th><th scope=col>UUID</th><th scope=col>Model</th>"
             "<th scope=col>Figure</th><th scope=col>Ordered</th><th scope=col>Found</th>"
             "<th scope=col>Reason</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < accept->finding_count && i < ROWS_MAX; i++)
        accept_page_put_finding(out, &accept->findings[i]);
    strbuf_puts(out, "</tbody>\n</table></div>\n");
    if (accept->finding_count > ROWS_MAX)
        strbuf_printf(out, "<p class=note>%zu more findings are not on this page.</p>\n",
                      accept->finding_count - ROWS_MAX);
}

static void accept_page_put_quantity(struct strbuf *out, double value, const char *unit)
{
    strbuf_puts(out, "<td class=n>");
    html_quantity(out, value, unit);
    strbuf_puts(out, "</td>");
}

static void accept_page_put_figure(struct strbuf *out, const struct accept_model *model,
                                   const struct accept_figure *figure)
{
    strbuf_puts(out, "<tr>");
    accept_page_put_cell(out, figure->order->metric);
    accept_page_put_quantity(out, figure->order->at_least, figure->order->unit);
    accept_page_put_quantity(out, figure->order->at_most, figure->order->unit);
    strbuf_printf(out, "<td class=n>%zu of %zu</td>", figure->count, model->found);
    accept_page_put_quantity(out, figure->least, figure->unit);
    accept_page_put_quantity(out, figure->median, figure->unit);
    accept_page_put_quantity(out, figure->most, figure->unit);
    for (int which = 0; which < 2; which++) {
        double share = which ? figure->spread : figure->order->spread;
        if (isfinite(share))
            strbuf_printf(out, "<td class=n>%.3g %%</td>", 100 * share);
        else
            strbuf_puts(out, "<td class=n>-</td>");
    }
    strbuf_puts(out, "</tr>\n");
}

static void accept_page_put_model(struct strbuf *out, const struct accept_model *model)
{
    strbuf_puts(out, "<h3>");
    html_text(out, model->order->name, HTML_NAME);
    strbuf_printf(out, "</h3>\n<p>%u ordered, %zu found, %zu measured.</p>\n", model->order->count,
                  model->found, model->measured);
    if (!model->order->figure_count)
        return;
    strbuf_puts(
        out,
        "<div class=wide><table>\n<thead><tr><th scope=col>Figure</th><th scope=col>At least</th>"
        "<th scope=col>At most</th><th scope=col>GPUs</th><th scope=col>Least</th>"
        "<th scope=col>Median</th><th scope=col>Most</th>"
        "<th scope=col>Spread allowed</th><th scope=col>Spread</th></tr></thead>\n"
        "<tbody>\n");
    for (size_t i = 0; i < model->order->figure_count; i++)
        accept_page_put_figure(out, model, &model->figures[i]);
    strbuf_puts(out, "</tbody>\n</table></div>\n");
}

static void accept_page_put_signatures(struct strbuf *out)
{
    static const char *const parties[] = {"Customer", "Supplier"};
    /* Room to write by hand: wide and high enough. */
    static const char room[] = "<td>&emsp;&emsp;&emsp;&emsp;&emsp;&emsp;&emsp;&emsp;&emsp;&emsp;"
                               "<br><br><br></td>";
    strbuf_puts(out, "<h2>Signatures</h2>\n<table>\n<thead><tr><th></th><th scope=col>Name</th>"
                     "<th scope=col>Date</th><th scope=col>Signature</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < 2; i++)
        strbuf_printf(out, "<tr><th scope=row>%s</th>%s%s%s</tr>\n", parties[i], room, room, room);
    strbuf_puts(out, "</tbody>\n</table>\n");
}

void accept_put_page(const struct accept *accept, const struct accept_source *source,
                     struct strbuf *out_page)
{
    html_page_begin(out_page, "Acceptance of GPUs", NULL);
    strbuf_puts(out_page, "<main>\n<h1>Acceptance of GPUs</h1>\n");
    accept_page_put_subject(out_page, accept, source);
    accept_page_put_summary(out_page, accept);
    accept_page_put_findings(out_page, accept);
    strbuf_puts(
        out_page,
        "<h2>Figures by model</h2>\n<p>Of the GPUs that have the figure with "
        "certainty. The spread is (most &minus; least) / median of the GPUs with the same board "
        "part; the widest one counts.</p>\n");
    for (size_t m = 0; m < accept->order->model_count; m++)
        accept_page_put_model(out_page, &accept->models[m]);
    accept_page_put_signatures(out_page);
    strbuf_puts(out_page, "</main>\n");
    html_page_end(out_page, NULL);
}
