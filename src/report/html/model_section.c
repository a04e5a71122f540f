/* One model: drawing, comparison with reported and reference values, distributions, sweeps, SMs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "markup/html_text.h"
#include "report/html/sections.h"

/* True for a value that the driver reports and no probe measured. */
static bool is_claim(const struct measure *m)
{
    return m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
           str_equal(m->method, "reported");
}

static void put_value(struct strbuf *out, const struct measure *m)
{
    if (is_claim(m)) {
        strbuf_puts(out, "<span class=dim>not measured</span>");
    } else if (!measure_status_valued(m->status)) {
        strbuf_printf(out, "<span class=warn>%s</span>", measure_status_name(m->status));
    } else if (m->kind == MEASURE_WORDS) {
        for (size_t i = 0; i < m->word_count; i++) {
            strbuf_puts(out, i ? ", " : "");
            html_text(out, m->words[i], HTML_NAME);
        }
        strbuf_puts(out, m->word_count ? "" : "none");
    } else {
        strbuf_puts(out, m->bound == MEASURE_AT_LEAST ? "at least " : "");
        html_quantity(out, m->value, m->unit);
        if (m->status == MEASURE_NOISY)
            strbuf_puts(out, " <span class=warn>noisy</span>");
    }
}

static void put_note(struct strbuf *out, const struct measure *m, const char *note)
{
    double value = fact_number(facts_get(&m->notes, note));
    if (isfinite(value))
        html_quantity(out, value, m->unit);
}

/* The fact of the hardware with which a metric is compared. */
static const char *hardware_of(const char *metric)
{
    static const char *const rows[][2] = {
        {"l2.size", "l2_bytes"}, {"main.size", "memory_bytes"}, {"sm.count", "sms"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(metric, rows[i][0]) == 0)
            return rows[i][1];
    return NULL;
}

static void put_reference(struct strbuf *out, const struct measure *m,
                          const struct judge_reference *reference)
{
    static const char *const words[] = {"at least ", "peak ", ""};
    const char *fact = hardware_of(m->metric);
    for (size_t i = 0; reference && i < reference->entry_count; i++) {
        const struct reference_entry *entry = &reference->entries[i];
        const char *key = entry->kind == REFERENCE_HARDWARE ? fact : m->metric;
        if (!key || strcmp(entry->key, key) != 0)
            continue;
        strbuf_puts(out, words[entry->kind]);
        html_quantity(out, entry->value, m->unit);
        return;
    }
}

static void put_row(struct strbuf *out, const struct measure *m,
                    const struct judge_reference *reference)
{
    bool number = m->kind == MEASURE_NUMBER && measure_status_valued(m->status);
    strbuf_puts(out, "<tr><td>");
    html_text(out, m->metric, HTML_NAME);
    strbuf_puts(out, "<td class=n>");
    put_value(out, m);
    strbuf_puts(out, "<td class=n>");
    double ns = fact_number(facts_get(&m->notes, "ns"));
    if (isfinite(ns))
        html_quantity(out, ns, "ns");
    strbuf_puts(out, "<td class=n>");
    if (is_claim(m))
        html_quantity(out, m->value, m->unit);
    else
        put_note(out, m, "reported");
    strbuf_puts(out, "<td class=n>");
    put_note(out, m, "nominal");
    strbuf_puts(out, "<td class=n>");
    put_reference(out, m, reference);
    strbuf_puts(out, "<td class=n>");
    if (number && isfinite(m->spread))
        html_quantity(out, m->spread, m->unit);
    strbuf_puts(out, "<td class=n>");
    if (number && isfinite(m->confidence))
        strbuf_printf(out, "%.4g", m->confidence);
    strbuf_puts(out, "<td class=t>");
    html_text(out, m->reason ? m->reason : m->method, HTML_SENTENCE);
    strbuf_puts(out, "\n");
}

static void put_table(struct strbuf *out, const struct inventory_model *model,
                      const struct judge_reference *reference)
{
    strbuf_puts(
        out, "<details open><summary>Measured, reported, reference</summary><div class=wide>"
             "<table class=\"sort filter\"><thead><tr><th>attribute<th class=n>measured<th "
             "class=n>in time"
             "<th class=n>driver says<th class=n>documented<th class=n>reference<th class=n>spread"
             "<th class=n>confidence"
             "<th>method, or why not</thead><tbody>\n");
    for (size_t i = 0; i < model->memory.count; i++)
        put_row(out, &model->memory.items[i], reference);
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

static void put_distributions(struct strbuf *out, const struct html_model *model)
{
    static const double shares[] = {0, 0.05, 0.5, 0.95, 1};
    if (model->model->count < 2)
        return;
    strbuf_puts(out,
                "<details><summary>Distribution over the GPUs of this model</summary>"
                "<div class=wide><table class=\"sort filter\"><thead><tr><th>metric<th class=n>GPUs"
                "<th class=n>least<th class=n>5&nbsp;%<th class=n>median<th class=n>95&nbsp;%<th "
                "class=n>most<th>all</thead><tbody>\n");
    for (size_t i = 0; i < model->series_count; i++) {
        const struct html_series *series = &model->series[i];
        if (!measures_get(&model->model->memory, series->metric))
            continue; /* an id, such as the slowest SM, has no distribution */
        strbuf_puts(out, "<tr><td>");
        html_text(out, series->metric, HTML_NAME);
        strbuf_printf(out, "<td class=n>%zu", series->count);
        for (size_t s = 0; s < COUNT_OF(shares); s++) {
            strbuf_puts(out, "<td class=n>");
            html_quantity(out, html_quantile(series, shares[s]), series->unit);
        }
        strbuf_puts(out, "<td>");
        html_strip(out, series, NAN, NAN);
        strbuf_puts(out, "\n");
    }
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

static void put_facts(struct strbuf *out, const char *title, const struct facts *facts)
{
    if (!facts->count)
        return;
    strbuf_printf(out, "<details><summary>%s</summary><dl class=facts>\n", title);
    for (size_t i = 0; i < facts->count; i++) {
        strbuf_puts(out, "<div><dt>");
        html_text(out, facts->items[i].key, HTML_NAME);
        strbuf_puts(out, "<dd>");
        html_fact(out, &facts->items[i]);
        strbuf_puts(out, "</div>\n");
    }
    strbuf_puts(out, "</dl></details>\n");
}

/* Boards of this model: how many GPUs have each, and the usual figures that differ. */
static void put_populations(struct strbuf *out, const struct inventory_model *model)
{
    if (!model->population_count)
        return;
    strbuf_puts(out, "<details open><summary>Populations: GPUs with the same board part</summary>"
                     "<div class=wide><table><thead><tr><th>board part<th class=n>GPUs<th>usual "
                     "figures that differ</thead><tbody>\n");
    for (size_t i = 0; i < model->population_count; i++) {
        const struct inventory_population *population = &model->populations[i];
        strbuf_puts(out, "<tr><td>");
        html_text(out, population->value ? population->value : "unknown", HTML_NAME);
        strbuf_printf(out, "<td class=n>%u<td>", population->count);
        for (size_t k = 0; k < population->figures.count; k++) {
            const struct fact *figure = &population->figures.items[k];
            const struct measure *m = measures_get(&model->memory, figure->key);
            strbuf_puts(out, k ? ", " : "");
            html_text(out, figure->key, HTML_NAME);
            strbuf_puts(out, " ");
            html_quantity(out, fact_number(figure), m ? m->unit : "");
        }
        strbuf_puts(out, population->figures.count ? "\n" : "too few GPUs to say, or none\n");
    }
    strbuf_puts(out, "</tbody></table></div></details>\n");
}

void html_model_section(struct strbuf *out, const struct html_data *data,
                        const struct html_model *model, const struct judge_references *references)
{
    const struct inventory_model *m = model->model;
    const struct judge_reference *reference =
        references && m->name ? judge_references_find(references, m->name) : NULL;
    strbuf_printf(out, "<section id=m%zu><h2>", (size_t)(model - data->models));
    html_text(out, m->name ? m->name : m->id, HTML_NAME);
    strbuf_puts(out, "</h2>\n<p>");
    html_count(out, m->count, "GPU", "GPUs");
    strbuf_puts(out, m->count == 1
                         ? " measured."
                         : " measured; the figures are the consensus of the healthy ones.");
    strbuf_puts(out, " <span class=dim>Id ");
    html_text(out, m->id, HTML_NAME);
    strbuf_puts(out, "</span></p>\n");
    html_topology(out, m);
    put_table(out, m, reference);
    put_populations(out, m);
    put_distributions(out, model);
    html_curves(out, m);
    html_load(out, m);
    html_surfaces(out, m);
    html_code(out, m);
    html_clusters(out, m);
    html_maps(out, m);
    put_facts(out, "Hardware as the driver reports it", &m->identity);
    put_facts(out, "Settings of most GPUs", &m->config);
    put_facts(out, "Health of most GPUs", &m->health);
    strbuf_puts(out, "</section>\n");
}
