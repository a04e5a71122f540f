/* What the judge found: outliers, nodes, slots and models as a whole, GPUs to watch, and GPUs that
 * could not be measured. */
#include <math.h>
#include <stdlib.h>

#include "markup/html.h"
#include "markup/table.h"
#include "markup/text.h"
#include "report/advice.h"
#include "report/drain.h"
#include "report/html/sections.h"

/* Findings of a card that are drawn, the others are listed; GPUs of a card that are not folded. */
enum { DRAWN_MAX = 6, UNFOLDED_MAX = 16 };

static void finding_put_deviation(struct strbuf *out, const char *format, double deviation)
{
    if (isfinite(deviation))
        strbuf_printf(out, format, text_percent(deviation));
}

static void finding_put_cause(struct strbuf *out, const struct inventory_evidence *finding)
{
    html_parts(out, finding->cause ? finding->cause : "no cause known");
}

static void finding_put(struct strbuf *out, const struct html_model *model,
                        const struct inventory_evidence *finding, bool drawn)
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
    finding_put_deviation(out, " <span class=bad>(%+.1f&nbsp;%%)</span>", finding->deviation);
    strbuf_puts(out, "<br>");
    finding_put_cause(out, finding);
    strbuf_puts(out, " <span class=dim>against the ");
    html_text(out, finding->basis, HTML_NAME);
    if (isfinite(finding->score))
        strbuf_printf(out, ", score %.3g", finding->score);
    if (finding->confirmed) {
        strbuf_puts(out, ", confirmed: ");
        html_text(out, finding->confirmed, HTML_SENTENCE);
    }
    strbuf_puts(out, "</span></div><div>");
    if (series && series->count > 1 && !series->is_name)
        html_strip(out, series, finding->value, finding->expected);
    strbuf_puts(out, "</div></div>\n");
}

/* The command that drains for this card alone. Takes over `line`; NULL: none. */
static void card_put_drain(struct strbuf *out, const struct html_data *data, char *line)
{
    if (line && !data->inventory->anonymous) { /* its node names mean nothing to Slurm */
        strbuf_puts(out, "<code class=drain>");
        html_text(out, line, HTML_SENTENCE);
        strbuf_puts(out, "</code>\n");
    }
    free(line);
}

/* The end of the head of a card. */
static void verdict_put(struct strbuf *out, enum verdict verdict, double loss, enum action action)
{
    strbuf_printf(out, " <span class=kind>%s", verdict_name(verdict));
    if (isfinite(loss))
        strbuf_printf(out, ", %.1f&nbsp;%%", text_percent(loss));
    strbuf_printf(out, "</span> <span class=kind>%s</span></h3>\n", action_name(action));
}

static void card_put_advice(struct strbuf *out, const struct advice *advice)
{
    strbuf_puts(out, "<p><b>Next:</b> ");
    html_text(out, advice->next, HTML_SENTENCE);
    strbuf_puts(out, "; ");
    html_text(out, advice->vendor, HTML_SENTENCE);
    strbuf_puts(out, ".</p>\n");
}

static const struct inventory_gpu *outlier_gpu(const struct html_data *data,
                                               const struct inventory_outlier *outlier)
{
    for (size_t i = 0; i < data->inventory->gpu_count; i++)
        if (data->gpus[i].outlier == outlier)
            return data->gpus[i].gpu;
    return NULL;
}

static void outlier_put_card(struct strbuf *out, const struct html_data *data,
                             const struct inventory_outlier *outlier)
{
    const struct html_model *model = html_data_model(data, outlier->model);
    const struct inventory_gpu *gpu = outlier_gpu(data, outlier);
    const struct fact *serial = gpu ? facts_get(&gpu->board, "serial") : NULL;
    strbuf_printf(out, "<article class=\"card %s\" id=o%td><h3>", action_name(outlier->action),
                  outlier - data->inventory->outliers);
    html_text(out, outlier->node, HTML_NAME);
    if (gpu && gpu->index >= 0)
        strbuf_printf(out, ", GPU %d", (int)gpu->index);
    strbuf_puts(out, ", slot ");
    html_text(out, outlier->pci, HTML_NAME);
    html_rack(out, data, outlier->node);
    verdict_put(out, outlier->verdict, outlier->loss, outlier->action);
    strbuf_puts(out, "<p><code>");
    html_text(out, outlier->uuid, HTML_NAME);
    strbuf_puts(out, "</code> <span class=dim>model ");
    html_text(out, outlier->model, HTML_NAME);
    if (serial && serial->kind != FACT_UNKNOWN) {
        strbuf_puts(out, ", serial ");
        html_fact(out, serial);
    }
    strbuf_puts(out, "</span></p>\n");
    for (size_t i = 0; i < outlier->evidence_count && i < DRAWN_MAX; i++)
        finding_put(out, model, &outlier->evidence[i], true);
    if (outlier->evidence_count > DRAWN_MAX) {
        strbuf_puts(out, "<details><summary>and ");
        html_count(out, outlier->evidence_count - DRAWN_MAX, "more finding", "more findings");
        strbuf_puts(out, "</summary>\n");
        for (size_t i = DRAWN_MAX; i < outlier->evidence_count; i++)
            finding_put(out, model, &outlier->evidence[i], false);
        strbuf_puts(out, "</details>\n");
    }
    if (gpu)
        html_gpu_load(out, gpu);
    card_put_advice(out, advice_of_gpu(outlier));
    card_put_drain(out, data, drain_line_of_gpu(outlier));
    strbuf_puts(out, "</article>\n");
}

/* One row of a table: place, first finding, and the metrics of the others. */
static void outlier_put_row(struct strbuf *out, const struct inventory_outlier *outlier)
{
    table_row(out);
    table_name(out, outlier->node);
    table_name(out, outlier->pci);
    table_mono(out, outlier->uuid);
    table_name(out, verdict_name(outlier->verdict));
    table_name(out, action_name(outlier->action));
    if (!outlier->evidence_count) {
        strbuf_puts(out, "<td>-<td class=n>-<td class=n>-<td class=n>-<td>-\n");
        return;
    }
    const struct inventory_evidence *first = &outlier->evidence[0];
    table_name(out, first->metric);
    table_quantity(out, first->value, first->unit);
    table_quantity(out, first->expected, first->unit);
    strbuf_puts(out, "<td class=n>");
    finding_put_deviation(out, "%+.1f %%", first->deviation);
    strbuf_puts(out, "<td class=t>");
    finding_put_cause(out, first);
    for (size_t i = 1; i < outlier->evidence_count; i++) {
        strbuf_puts(out, i == 1 ? "; also " : ", ");
        html_text(out, outlier->evidence[i].metric, HTML_NAME);
    }
    strbuf_puts(out, "\n");
}

/* Number of outliers of each verdict, and how to read the pictures. */
static void outliers_put_overview(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    bool begun = false;
    strbuf_puts(out, "<p>");
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        size_t count = 0, drained = 0;
        for (size_t i = 0; i < v->outlier_count; i++) {
            count += v->outliers[i].verdict == (enum verdict)verdict;
            drained += v->outliers[i].verdict == (enum verdict)verdict &&
                       v->outliers[i].action == ACTION_DRAIN;
        }
        if (count)
            strbuf_printf(out, "%s%zu %s", begun ? ", " : "", count,
                          verdict_name((enum verdict)verdict));
        if (drained)
            strbuf_printf(out, " (%zu to drain)", drained);
        begun |= count > 0;
    }
    if (data->card_count < v->outlier_count)
        strbuf_printf(out, "; %zu of them only as a whole place, below",
                      v->outlier_count - data->card_count);
    strbuf_puts(out, ". <span class=dim>Each finding is drawn on all GPUs of the model:</span> "
                     "<span class=bad>&#9660;</span> <span class=dim>this GPU,</span> "
                     "<span class=good>&#9482;</span> <span class=dim>expected.</span></p>\n");
}

static void outliers_put_none(struct strbuf *out, const struct inventory *v)
{
    strbuf_puts(out, v->total_measured == 1
                         ? "<p>None. A single GPU has no peers: it was compared with rules, "
                           "specifications and, where a file of them was given, GPUs elsewhere."
                         : "<p>None: no measured GPU calls for an action.");
    if (v->watch_count) {
        strbuf_puts(out, " <a href=#watch>");
        html_count(out, v->watch_count, "GPU is", "GPUs are");
        strbuf_puts(out, " to watch</a>.");
    }
    strbuf_puts(out, "</p>\n");
}

void html_outliers(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    strbuf_puts(out, "<section id=outliers><h2>Outliers</h2>\n");
    if (!v->total_outliers && !v->total_measured)
        strbuf_puts(out, "<p>No GPU was measured.</p>\n");
    else if (!v->total_outliers)
        outliers_put_none(out, v);
    else if (!data->card_count)
        strbuf_puts(out, "<p>All of them belong to a place below.</p>\n");
    else
        outliers_put_overview(out, data);
    for (size_t i = 0; i < data->card_count && i < HTML_CARDS_MAX; i++)
        outlier_put_card(out, data, data->cards[i]);
    if (data->card_count > HTML_CARDS_MAX) {
        strbuf_printf(out, "<h3>%zu more</h3>\n", data->card_count - HTML_CARDS_MAX);
        table_begin(out, "sort filter",
                    "node|slot|uuid|verdict|action|metric|#value|#expected|#deviation|cause");
        for (size_t i = HTML_CARDS_MAX; i < data->card_count; i++)
            outlier_put_row(out, data->cards[i]);
        table_end(out);
    }
    strbuf_puts(out, "</section>\n");
}

void html_watch(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    if (!v->watch_count)
        return;
    strbuf_puts(out, "<section id=watch><h2>To watch</h2>\n<p>Deviations that are small or not "
                     "certain; they change neither status nor exit code.</p>\n");
    table_begin(out, "sort filter",
                "node|slot|uuid|verdict|action|metric|#value|#expected|#deviation|cause");
    for (size_t i = 0; i < v->watch_count; i++)
        outlier_put_row(out, &v->watch[i]);
    table_end(out);
    strbuf_puts(out, "</section>\n");
}

void html_unmeasured(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    if (!v->unmeasured_count)
        return;
    strbuf_puts(out, "<section id=unmeasured><h2>Unmeasured</h2>\n");
    table_begin(out, "sort filter", "node|rank|uuid|status|reason");
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        const struct inventory_unmeasured *u = &v->unmeasured[i];
        table_row(out);
        table_name(out, u->node);
        table_index(out, u->rank);
        table_mono(out, u->uuid ? u->uuid : "unknown GPU");
        table_name(out, gpu_status_name(u->status));
        table_sentence(out, u->reason);
        strbuf_puts(out, "\n");
    }
    table_end(out);
    strbuf_puts(out, "</section>\n");
}

static void place_put_card(struct strbuf *out, const struct html_data *data,
                           const struct inventory_node *place)
{
    strbuf_printf(out, "<article class=\"card %s\" id=p%td><h3>", action_name(place->action),
                  place - data->inventory->node_findings);
    html_text(out, place->node ? place->node : "Several nodes", HTML_NAME);
    html_rack(out, data, place->node);
    verdict_put(out, place->verdict, place->loss, place->action);
    strbuf_puts(out, "<p>");
    html_text(out, place->finding, HTML_SENTENCE);
    strbuf_puts(out, "</p>\n<p class=dim>");
    html_count(out, place->gpu_count, "GPU", "GPUs");
    for (size_t i = 0; i < place->gpu_count; i++) {
        if (i == UNFOLDED_MAX)
            strbuf_puts(out, "</p>\n<details><summary>all others</summary><p class=dim>");
        strbuf_puts(out, !i ? ": <code>" : i == UNFOLDED_MAX ? "<code>" : ", <code>");
        html_text(out, place->gpus[i], HTML_NAME);
        strbuf_puts(out, "</code>");
    }
    strbuf_puts(out, place->gpu_count > UNFOLDED_MAX ? "</p></details>\n" : "</p>\n");
    card_put_advice(out, advice_of_place(place));
    card_put_drain(out, data, drain_line_of_place(place));
    strbuf_puts(out, "</article>\n");
}

static void place_put_row(struct strbuf *out, const struct inventory_node *place)
{
    table_row(out);
    table_name(out, place->node);
    table_name(out, verdict_name(place->verdict));
    table_name(out, action_name(place->action));
    table_count(out, place->gpu_count);
    table_sentence(out, place->finding);
    strbuf_puts(out, "\n");
}

void html_places(struct strbuf *out, const struct html_data *data)
{
    const struct inventory *v = data->inventory;
    const size_t cards = data->place_count < HTML_CARDS_MAX ? data->place_count : HTML_CARDS_MAX;
    if (!v->node_finding_count)
        return;
    strbuf_puts(out, "<section id=places><h2>Nodes, slots and models as a whole</h2>\n");
    for (size_t i = 0; i < cards; i++)
        place_put_card(out, data, data->places[i]);
    if (v->node_finding_count > cards) { /* notes, and places for which there are too many cards */
        table_begin(out, "sort filter", "node|verdict|action|GPUs|finding");
        for (size_t i = cards; i < data->place_count; i++)
            place_put_row(out, data->places[i]);
        for (size_t i = 0; i < v->node_finding_count; i++)
            if (v->node_findings[i].action < ACTION_ALERT)
                place_put_row(out, &v->node_findings[i]);
        table_end(out);
    }
    strbuf_puts(out, "</section>\n");
}
