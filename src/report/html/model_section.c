/* One model: comparison with reported and reference values, distributions, caches of instructions,
 * clusters, facts; drawings, sweeps and maps are in files of their own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "catalogue/facts.h"
#include "catalogue/metrics.h"
#include "markup/html.h"
#include "markup/table.h"
#include "report/html/sections.h"

/* True for a value that the driver reports and no probe measured. */
static bool is_claim(const struct measure *m)
{
    return m->kind == MEASURE_NUMBER && measure_status_valued(m->status) && measure_is_reported(m);
}

static void measure_put_value(struct strbuf *out, const struct measure *m)
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

static void measure_put_note(struct strbuf *out, const struct measure *m, const char *note)
{
    double value = fact_number(facts_get(&m->notes, note));
    if (isfinite(value))
        html_quantity(out, value, m->unit);
}

/* The fact of the hardware with which a metric is compared. */
static const char *metric_hardware_fact(const char *metric)
{
    static const char *const rows[][2] = {
        {"l2.size", "l2_bytes"}, {"main.size", "memory_bytes"}, {"sm.count", "sms"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(metric, rows[i][0]) == 0)
            return rows[i][1];
    return NULL;
}

static void measure_put_reference(struct strbuf *out, const struct measure *m,
                                  const struct judge_reference *reference)
{
    static const char *const words[] = {"at least ", "peak ", ""};
    const char *fact = metric_hardware_fact(m->metric);
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

static void measure_put_row(struct strbuf *out, const struct measure *m,
                            const struct judge_reference *reference)
{
    const bool number = m->kind == MEASURE_NUMBER && measure_status_valued(m->status) &&
                        !metric_is_name(m->metric, m->unit);
    const double ns = fact_number(facts_get(&m->notes, "ns"));
    table_row(out);
    table_name(out, m->metric);
    strbuf_puts(out, "<td class=n>");
    measure_put_value(out, m);
    strbuf_puts(out, "<td class=n>");
    if (isfinite(ns))
        html_quantity(out, ns, "ns");
    strbuf_puts(out, "<td class=n>");
    if (is_claim(m))
        html_quantity(out, m->value, m->unit);
    else
        measure_put_note(out, m, "reported");
    strbuf_puts(out, "<td class=n>");
    measure_put_note(out, m, "nominal");
    strbuf_puts(out, "<td class=n>");
    measure_put_reference(out, m, reference);
    strbuf_puts(out, "<td class=n>");
    if (number && isfinite(m->spread))
        html_quantity(out, m->spread, m->unit);
    strbuf_puts(out, "<td class=n>");
    if (number && isfinite(m->confidence))
        strbuf_printf(out, "%.4g", m->confidence);
    table_sentence(out, m->reason ? m->reason : m->method);
    strbuf_puts(out, "\n");
}

static void model_put_measures(struct strbuf *out, const struct inventory_model *model,
                               const struct judge_reference *reference)
{
    strbuf_puts(out, "<details open><summary>Measured, reported, reference</summary>");
    table_begin(out, "sort filter",
                "attribute|#measured|#in time|#driver says|#documented|#reference|#spread"
                "|#confidence|method, or why not");
    for (size_t i = 0; i < model->memory.count; i++)
        measure_put_row(out, &model->memory.items[i], reference);
    table_end(out);
    strbuf_puts(out, "</details>\n");
}

static void model_put_distributions(struct strbuf *out, const struct html_model *model)
{
    static const double shares[] = {0, 0.05, 0.5, 0.95, 1};
    if (model->model->count < 2)
        return;
    strbuf_puts(out, "<details><summary>Distribution over the GPUs of this model</summary>");
    table_begin(out, "sort filter", "metric|#GPUs|#least|#5&nbsp;%|#median|#95&nbsp;%|#most|all");
    for (size_t i = 0; i < model->series_count; i++) {
        const struct html_series *series = &model->series[i];
        if (series->is_name || !measures_get(&model->model->memory, series->metric))
            continue;
        table_row(out);
        table_name(out, series->metric);
        table_count(out, series->count);
        for (size_t s = 0; s < COUNT_OF(shares); s++)
            table_quantity(out, html_quantile(series, shares[s]), series->unit);
        strbuf_puts(out, "<td>");
        html_strip(out, series, NAN, NAN);
        strbuf_puts(out, "\n");
    }
    table_end(out);
    strbuf_puts(out, "</details>\n");
}

/* "140706 on 15, 926679 on 1": how many GPUs have which value. */
static void names_put_values(struct strbuf *out, const struct html_series *series)
{
    enum { LISTED_MAX = 8 };
    size_t different = 1;
    for (size_t i = 1; i < series->count; i++)
        different += series->sorted[i] != series->sorted[i - 1];
    if (different > LISTED_MAX) {
        strbuf_printf(out, "%zu different ones", different);
        return;
    }
    for (size_t i = 0, end; i < series->count; i = end) {
        for (end = i + 1; end < series->count && series->sorted[end] == series->sorted[i];)
            end++;
        strbuf_puts(out, i ? ", " : "");
        html_quantity(out, series->sorted[i], series->unit);
        strbuf_printf(out, " on %zu", end - i);
    }
}

static void model_put_names(struct strbuf *out, const struct html_model *model)
{
    struct strbuf rows = {0};
    for (size_t i = 0; i < model->series_count; i++) {
        const struct html_series *series = &model->series[i];
        if (!series->is_name || !series->count)
            continue;
        table_row(&rows);
        table_name(&rows, series->metric);
        table_count(&rows, series->count);
        strbuf_puts(&rows, "<td class=t>");
        names_put_values(&rows, series);
        strbuf_puts(&rows, "\n");
    }
    if (rows.length && model->model->count > 1) {
        strbuf_puts(out, "<details class=names><summary>Identifiers: SMs, places in the memory, "
                         "digests</summary>");
        table_begin(out, "sort filter", "identifier|#GPUs|which value on how many");
        strbuf_append(out, rows.data, rows.length);
        table_end(out);
        strbuf_puts(out, "</details>\n");
    }
    strbuf_fini(&rows);
}

static void model_put_facts(struct strbuf *out, const char *title, const struct facts *facts)
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
static void model_put_populations(struct strbuf *out, const struct inventory_model *model)
{
    if (!model->population_count)
        return;
    bool by_board = str_equal(model->populations[0].by, "board.part");
    strbuf_printf(out, "<details open><summary>Populations: GPUs %s</summary>",
                  by_board ? "with the same board part" : "of the same kind");
    table_begin(out, NULL,
                by_board ? "board part|#GPUs|usual figures that differ"
                         : "kind|#GPUs|usual figures that differ");
    for (size_t i = 0; i < model->population_count; i++) {
        const struct inventory_population *population = &model->populations[i];
        table_row(out);
        table_name(out, population->value ? population->value : "unknown");
        table_count(out, population->count);
        strbuf_puts(out, "<td>");
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
    table_end(out);
    strbuf_puts(out, "</details>\n");
}

/* Caches of instructions: a row for each level. */
enum { LEVELS_MAX = 8, NAME_MAX_BYTES = 64 };

static const struct measure *code_measure(const struct inventory_model *model, const char *level,
                                          const char *what)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "instruction_cache.%s.%s", level, what);
    return measures_get(&model->memory, metric);
}

/* The reason if there is no value; empty if nothing is known. */
static void code_put_figure(struct strbuf *out, const struct measure *m)
{
    strbuf_puts(out, "<td class=n>");
    if (m && measure_status_valued(m->status))
        html_quantity(out, m->value, m->unit);
    else if (m)
        html_text(out, m->reason, HTML_SENTENCE);
    if (m && m->status == MEASURE_NOISY)
        strbuf_puts(out, " <span class=warn>noisy</span>");
}

static void code_put_note(struct strbuf *out, const struct measure *m, const char *note)
{
    strbuf_puts(out, "<td class=n>");
    if (m && facts_get(&m->notes, note))
        html_fact(out, facts_get(&m->notes, note));
}

static void code_put_level(struct strbuf *out, const struct inventory_model *model,
                           const char *level, const char *title)
{
    const struct measure *cycles = code_measure(model, level, "cycles"),
                         *shared = code_measure(model, level, "shared_by");
    strbuf_printf(out, "<tr><td>%s", title);
    code_put_figure(out, code_measure(model, level, "size"));
    code_put_figure(out, cycles);
    code_put_note(out, cycles, "least");
    code_put_note(out, cycles, "most");
    code_put_figure(out, shared);
    code_put_note(out, shared, "scope");
    strbuf_puts(out, "\n");
}

static void model_put_code_caches(struct strbuf *out, const struct inventory_model *model)
{
    double levels = 0;
    if (!measures_value(&model->memory, "instruction_cache.levels", &levels))
        return;
    strbuf_puts(out, "<details class=code open><summary>Caches of instructions</summary><table>"
                     "<thead><tr><th>code in<th class=n>size<th class=n>per instruction<th "
                     "class=n>fastest SM<th class=n>slowest SM<th class=n>SMs that share it<th "
                     "class=n>they are</thead><tbody>\n");
    if (code_measure(model, "l0", "size")) {
        code_put_level(out, model, "l0", "a sub-core's");
        levels--;
    }
    for (int i = 1; i <= levels && i <= LEVELS_MAX; i++) {
        char level[NAME_MAX_BYTES], title[NAME_MAX_BYTES];
        snprintf(level, sizeof level, "level%d", i);
        snprintf(title, sizeof title, "level %d", i);
        code_put_level(out, model, level, title);
    }
    code_put_level(out, model, "beyond", "none of these");
    strbuf_puts(out, "</tbody></table></details>\n");
}

/* Clusters: which SMs form them, and bulk copies by their size. */
enum { SIZES_MAX = 32 };

/* The columns of the table of bulk copies: metrics with a note "256:359 512:364 ...". */
static const struct copy_column {
    const char *metric, *title;
} copy_columns[] = {
    {"bulk_copy.latency.l2", "from L2, cycles"},
    {"bulk_copy.latency.memory", "from memory, cycles"},
    {"bulk_copy.latency.cluster", "to another SM, cycles"},
    {"bulk_copy.bandwidth.l2", "from L2, all SMs, GB/s"},
    {"bulk_copy.bandwidth.memory", "from memory, all SMs, GB/s"},
};

struct by_bytes {
    size_t count;
    double bytes[SIZES_MAX], values[SIZES_MAX];
};

static const struct measure *cluster_measure(const struct inventory_model *model,
                                             const char *metric)
{
    const struct measure *m = measures_get(&model->memory, metric);
    return m && measure_status_valued(m->status) ? m : NULL;
}

/* Empty if there is none, or if the lists are not as long. */
static struct by_bytes by_bytes_read(const struct measure *m)
{
    struct by_bytes by_bytes = {0};
    size_t count = 0, at_count = 0;
    const double *values = m ? facts_numbers(&m->notes, "by_bytes", &count) : NULL;
    const double *at = m ? facts_numbers(&m->notes, "by_bytes_at", &at_count) : NULL;
    if (!values || !at || count != at_count || count > SIZES_MAX)
        return by_bytes;
    by_bytes.count = count;
    memcpy(by_bytes.bytes, at, count * sizeof *at);
    memcpy(by_bytes.values, values, count * sizeof *values);
    return by_bytes;
}

static double by_bytes_at(const struct by_bytes *by_bytes, double bytes)
{
    for (size_t i = 0; i < by_bytes->count; i++)
        if (by_bytes->bytes[i] == bytes)
            return by_bytes->values[i];
    return NAN;
}

static void cluster_put_copies(struct strbuf *out, const struct inventory_model *model)
{
    struct by_bytes copies[COUNT_OF(copy_columns)];
    const struct by_bytes *longest = &copies[0];
    for (size_t i = 0; i < COUNT_OF(copy_columns); i++) {
        copies[i] = by_bytes_read(cluster_measure(model, copy_columns[i].metric));
        longest = copies[i].count > longest->count ? &copies[i] : longest;
    }
    if (!longest->count)
        return;
    strbuf_puts(out, "<h4>Bulk copies into shared memory, by size</h4>");
    table_open(out, NULL);
    table_heads(out, "#bytes");
    for (size_t i = 0; i < COUNT_OF(copy_columns); i++)
        strbuf_printf(out, "<th class=n>%s", copy_columns[i].title);
    table_heads_end(out);
    for (size_t k = 0; k < longest->count; k++) {
        strbuf_printf(out, "<tr><td class=n>%.0f", longest->bytes[k]);
        for (size_t i = 0; i < COUNT_OF(copy_columns); i++)
            table_figure(out, by_bytes_at(&copies[i], longest->bytes[k]));
        strbuf_puts(out, "\n");
    }
    table_end(out);
}

static void cluster_put_groups(struct strbuf *out, const struct inventory_model *model)
{
    const struct measure *size = cluster_measure(model, "cluster.size_max");
    const struct measure *count = cluster_measure(model, "cluster.count");
    const struct measure *groups = cluster_measure(model, "cluster.groups");
    size_t sizes = 0;
    if (groups)
        facts_numbers(&groups->notes, "sizes", &sizes);
    if (!size || !count)
        return;
    strbuf_printf(out, "<p>Clusters of up to %.0f blocks; %.0f of them at once.", size->value,
                  count->value);
    if (sizes) {
        strbuf_puts(out, " SMs that can form one, in groups of: ");
        html_fact(out, facts_get(&groups->notes, "sizes"));
        strbuf_puts(out, ".");
    }
    strbuf_puts(out, "</p>\n");
}

static void model_put_clusters(struct strbuf *out, const struct inventory_model *model)
{
    if (!cluster_measure(model, "cluster.size_max") &&
        !cluster_measure(model, "bulk_copy.latency.l2"))
        return;
    strbuf_puts(out, "<details><summary>Clusters and bulk copies</summary>\n");
    cluster_put_groups(out, model);
    cluster_put_copies(out, model);
    strbuf_puts(out, "</details>\n");
}

void html_model_section(struct strbuf *out, const struct html_data *data,
                        const struct html_model *model, const struct judge_references *references)
{
    const struct inventory_model *m = model->model;
    const struct judge_reference *reference =
        references && m->name ? judge_references_find(references, m->name) : NULL;
    strbuf_printf(out, "<section id=m%zu><h2>", (size_t)(model - data->models));
    html_text(out, m->name ? m->name : m->id, HTML_NAME);
    struct strbuf kinds = {0};
    catalogue_put_kinds(&m->config, &kinds);
    html_text(out, kinds.data ? kinds.data : "", HTML_NAME);
    strbuf_fini(&kinds);
    strbuf_puts(out, "</h2>\n<p>");
    html_count(out, m->count, "GPU", "GPUs");
    strbuf_puts(out, m->count == 1
                         ? " measured."
                         : " measured; the figures are the consensus of the healthy ones.");
    strbuf_puts(out, " <span class=dim>Id ");
    html_text(out, m->id, HTML_NAME);
    strbuf_puts(out, "</span></p>\n");
    html_topology(out, m);
    model_put_measures(out, m, reference);
    model_put_populations(out, m);
    model_put_distributions(out, model);
    model_put_names(out, model);
    html_sweeps(out, m);
    html_load(out, m);
    html_surfaces(out, m);
    model_put_code_caches(out, m);
    model_put_clusters(out, m);
    html_maps(out, m);
    model_put_facts(out, "Hardware as the driver reports it", &m->identity);
    model_put_facts(out, "Settings of most GPUs", &m->config);
    model_put_facts(out, "Health of most GPUs", &m->health);
    strbuf_puts(out, "</section>\n");
}
