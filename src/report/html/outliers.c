/* Outliers, GPUs to watch, GPUs that could not be measured. */
#include <math.h>
#include <stdlib.h>

#include "markup/html_text.h"
#include "report/html/sections.h"

/* Findings of a card that are drawn; the others are listed. */
enum { FINDINGS_MAX = 6 };

static void put_finding(struct strbuf *out, const struct html_model *model,
                        const struct inventory_finding *finding, bool drawn)
{
    const struct html_series *series = drawn ? html_data_series(model, finding->metric) : NULL;
    strbuf_puts(out, "<div class=finding><div><b>");
    html_text(out, finding->metric, HTML_NAME);
    strbuf_puts(out, "</b> ");
    html_quantity(out, finding->value, finding->unit);
    if (isfinite(finding->expected)) {
        strbuf_puts(out, " <span class=dim>expected</span> ");
        html_quantity(out, finding->expected, finding->unit);
    }
    if (isfinite(finding->deviation))
        strbuf_printf(out, " <span class=bad>(%+.1f&nbsp;%%)</span>", 100 * finding->deviation);
    strbuf_puts(out, "<br>");
    html_text(out, finding->cause ? finding->cause : "no cause known", HTML_SENTENCE);
    strbuf_puts(out, " <span class=dim>against the ");
    html_text(out, finding->basis, HTML_NAME);
    if (isfinite(finding->score))
        strbuf_printf(out, ", score %.3g", finding->score);
    if (finding->confirmed) {
        strbuf_puts(out, ", confirmed: ");
        html_text(out, finding->confirmed, HTML_SENTENCE);
    }
    strbuf_puts(out, "</span></div><div>");
    if (series && series->count > 1)
        html_strip(out, series, finding->value, finding->expected);
    strbuf_puts(out, "</div></div>\n");
}

static const struct inventory_gpu *gpu_of(const struct html_data *data,
                                          const struct inventory_outlier *outlier)
{
    for (size_t i = 0; i < data->inventory->gpu_count; i++)
        if (data->gpus[i].outlier == outlier)
            return data->gpus[i].gpu;
    return NULL;
}

static void put_where(struct strbuf *out, const struct html_data *data,
                      const struct inventory_outlier *outlier)
{
    const struct inventory_gpu *gpu = gpu_of(data, outlier);
    html_text(out, outlier->node, HTML_NAME);
    if (gpu && gpu->index >= 0)
        strbuf_printf(out, ", GPU %d", (int)gpu->index);
    strbuf_puts(out, ", slot ");
    html_text(out, outlier->pci, HTML_NAME);
    html_rack(out, data, outlier->node);
    strbuf_printf(out, " <span class=kind>%s</span></h3>\n<p><code>",
                  inventory_kind_name(outlier->kind));
    html_text(out, outlier->uuid, HTML_NAME);
    strbuf_puts(out, "</code> <span class=dim>model ");
    html_text(out, outlier->model, HTML_NAME);
    const struct fact *serial = gpu ? facts_get(&gpu->board, "serial") : NULL;
    if (serial && serial->kind != FACT_UNKNOWN) {
        strbuf_puts(out, ", serial ");
        html_fact(out, serial);
    }
    strbuf_puts(out, "</span></p>\n");
}

void html_drain(struct strbuf *out, const struct html_data *data, char *line)
{
    if (line && !data->inventory->anonymous) { /* its node names mean nothing to Slurm */
        strbuf_puts(out, "<code class=drain>");
        html_text(out, line, HTML_SENTENCE);
        strbuf_puts(out, "</code>\n");
    }
    free(line);
}

static void put_card(struct strbuf *out, const struct html_data *data,
                     const struct inventory_outlier *outlier)
{
    const struct html_model *model = html_data_model(data, outlier->model);
    strbuf_printf(out, "<article class=card id=o%td><h3>", outlier - data->inventory->outliers);
    put_where(out, data, outlier);
    for (size_t i = 0; i < outlier->finding_count && i < FINDINGS_MAX; i++)
        put_finding(out, model, &outlier->findings[i], true);
    if (outlier->finding_count > FINDINGS_MAX) {
        strbuf_puts(out, "<details><summary>and ");
        html_count(out, outlier->finding_count - FINDINGS_MAX, "more finding", "more findings");
        strbuf_puts(out, "</summary>\n");
        for (size_t i = FINDINGS_MAX; i < outlier->finding_count; i++)
            put_finding(out, model, &outlier->findings[i], false);
        strbuf_puts(out, "</details>\n");
    }
    const struct inventory_gpu *gpu = gpu_of(data, outlier);
    if (gpu)
        html_gpu_load(out, gpu);
    html_drain(out, data, drain_line_of_gpu(outlier));
    strbuf_puts(out, "</article>\n");
}

/* One row of the tables: place, first finding, and the metrics of the others. */
static void put_row(struct strbuf *out, const struct inventory_outlier *outlier, bool kind)
{
    strbuf_puts(out, "<tr><td>");
    html_text(out, outlier->node, HTML_NAME);
    strbuf_puts(out, "<td>");
    html_text(out, outlier->pci, HTML_NAME);
    strbuf_puts(out, "<td class=mono>");
    html_text(out, outlier->uuid, HTML_NAME);
    if (kind)
        strbuf_printf(out, "<td>%s", inventory_kind_name(outlier->kind));
    if (!outlier->finding_count) {
        strbuf_puts(out, "<td>-<td class=n>-<td class=n>-<td class=n>-<td>-\n");
        return;
    }
    const struct inventory_finding *f = &outlier->findings[0];
    strbuf_puts(out, "<td>");
    html_text(out, f->metric, HTML_NAME);
    strbuf_puts(out, "<td class=n>");
    html_quantity(out, f->value, f->unit);
    strbuf_puts(out, "<td class=n>");
    html_quantity(out, f->expected, f->unit);
    strbuf_puts(out, "<td class=n>");
    if (isfinite(f->deviation))
        strbuf_printf(out, "%+.1f %%", 100 * f->deviation);
    strbuf_puts(out, "<td class=t>");
    html_text(out, f->cause ? f->cause : "no cause known", HTML_SENTENCE);
    for (size_t i = 1; i < outlier->finding_count; i++) {
        strbuf_puts(out, i == 1 ? "; also " : ", ");
        html_text(out, outlier->findings[i].metric, HTML_NAME);
    }
    strbuf_puts(out, "\n");
}

static void begin_table(struct strbuf *out, bool kind)
{
    strbuf_printf(out,
                  "<div class=wide><table class=\"sort filter\"><thead><tr><th>node<th>slot<th>uuid"
                  "%s<th>metric<th class=n>value<th class=n>expected<th "
                  "class=n>deviation<th>cause</thead><tbody>\n",
                  kind ? "<th>kind" : "");
}

/* The outliers for which there are too many cards. */
static void put_rest(struct strbuf *out, const struct html_data *data)
{
    size_t count = data->card_count - HTML_CARDS_MAX;
    strbuf_printf(out, "<h3>%zu more</h3>\n", count);
    begin_table(out, true);
    for (size_t i = 0; i < count; i++)
        put_row(out, data->cards[HTML_CARDS_MAX + i], true);
    strbuf_puts(out, "</tbody></table></div>\n");
}

/* Number of outliers of each kind, and how to read the pictures. */
static void put_overview(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    bool begun = false;
    strbuf_puts(out, "<p>");
    for (int kind = KIND_FAILING; kind <= KIND_MISMATCHED; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < v->outlier_count; i++)
            count += v->outliers[i].kind == (enum inventory_kind)kind;
        if (count)
            strbuf_printf(out, "%s%zu %s", begun ? ", " : "", count,
                          inventory_kind_name((enum inventory_kind)kind));
        begun |= count > 0;
    }
    if (data->card_count < v->outlier_count)
        strbuf_printf(out, "; %zu of them only as a whole place, below",
                      v->outlier_count - data->card_count);
    strbuf_puts(out, ". <span class=dim>Each finding is drawn on all GPUs of the model:</span> "
                     "<span class=bad>&#9660;</span> <span class=dim>this GPU,</span> "
                     "<span class=good>&#9482;</span> <span class=dim>expected.</span></p>\n");
}

void html_outliers(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    strbuf_puts(out, "<section id=outliers><h2>Outliers</h2>\n");
    if (!v->total_outliers)
        strbuf_puts(out,
                    v->total_measured > 1 ? "<p>None: no measured GPU differs from its peers.</p>\n"
                    : v->total_measured == 1 ? "<p>None. A single GPU has no peers: it was held "
                                               "against rules and references only.</p>\n"
                                             : "<p>No GPU was measured.</p>\n");
    else if (!data->card_count)
        strbuf_puts(out, "<p>All of them belong to a place below.</p>\n");
    else
        put_overview(out, data);
    for (size_t i = 0; i < data->card_count && i < HTML_CARDS_MAX; i++)
        put_card(out, data, data->cards[i]);
    if (data->card_count > HTML_CARDS_MAX)
        put_rest(out, data);
    strbuf_puts(out, "</section>\n");
}

void html_watch(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    if (!v->watch_count)
        return;
    strbuf_puts(out, "<section id=watch><h2>To watch</h2>\n<p>Deviations too small to accuse "
                     "anyone; they change neither status nor exit code.</p>\n");
    begin_table(out, false);
    for (size_t i = 0; i < v->watch_count; i++)
        put_row(out, &v->watch[i], false);
    strbuf_puts(out, "</tbody></table></div>\n</section>\n");
}

void html_unmeasured(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    if (!v->unmeasured_count)
        return;
    strbuf_puts(out, "<section id=unmeasured><h2>Unmeasured</h2>\n<div class=wide>"
                     "<table class=\"sort filter\"><thead><tr><th>node<th>rank<th>uuid<th>status"
                     "<th>reason</thead><tbody>\n");
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        const struct inventory_unmeasured *u = &v->unmeasured[i];
        strbuf_puts(out, "<tr><td>");
        html_text(out, u->node, HTML_NAME);
        html_number_cell(out, u->rank);
        strbuf_puts(out, "<td class=mono>");
        html_text(out, u->uuid ? u->uuid : "unknown GPU", HTML_NAME);
        strbuf_printf(out, "<td>%s<td class=t>", gpu_status_name(u->status));
        html_text(out, u->reason, HTML_SENTENCE);
        strbuf_puts(out, "\n");
    }
    strbuf_puts(out, "</tbody></table></div>\n</section>\n");
}
