/* Settings and health that differ from the majority of the model. Nothing is left out: GPUs with
 * the same difference share a row, and what varies by the moment is shown as a distribution. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "catalogue/facts.h"
#include "markup/html.h"
#include "markup/table.h"
#include "report/html/sections.h"

/* The sets of facts, in the order of the rows: what matters most comes first. */
enum difference_set { DIFFERENCE_HEALTH, DIFFERENCE_CONFIG, DIFFERENCE_HARDWARE, DIFFERENCE_SETS };
static const char *const difference_set_names[] = {"health", "config", "hardware"};

struct difference {
    const struct html_gpu *gpu;
    const struct fact *here, *usual; /* usual may be NULL */
    enum difference_set set;
};

struct differences {
    struct difference *items;
    size_t count, capacity;
};

static const struct facts *difference_facts(const struct inventory_gpu *gpu,
                                            enum difference_set set)
{
    return set == DIFFERENCE_HEALTH   ? &gpu->health
           : set == DIFFERENCE_CONFIG ? &gpu->config
                                      : &gpu->hardware;
}

static const struct facts *difference_usual_facts(const struct html_model *model,
                                                  enum difference_set set)
{
    const struct inventory_model *m = model->model;
    return set == DIFFERENCE_HEALTH   ? &m->health
           : set == DIFFERENCE_CONFIG ? &m->config
                                      : &m->identity;
}

static void differences_collect(const struct html_data *data, struct differences *out)
{
    for (size_t i = 0; i < data->inventory->gpu_count; i++) {
        const struct html_gpu *gpu = &data->gpus[i];
        const struct html_model *model = html_data_model(data, gpu->gpu->model);
        for (int set = 0; set < DIFFERENCE_SETS; set++) {
            const struct facts *facts = difference_facts(gpu->gpu, (enum difference_set)set);
            for (size_t f = 0; f < facts->count; f++) {
                const struct fact *here = &facts->items[f];
                if (catalogue_moment_unit(here->key) && isfinite(fact_number(here)))
                    continue;
                out->items =
                    mem_grow(out->items, &out->capacity, out->count + 1, sizeof *out->items);
                out->items[out->count++] = (struct difference){
                    .gpu = gpu,
                    .here = here,
                    .usual =
                        model ? facts_get(difference_usual_facts(model, (enum difference_set)set),
                                          here->key)
                              : NULL,
                    .set = (enum difference_set)set};
            }
        }
    }
}

/* Larger numbers first, because more errors are worse. Texts by name. */
static int fact_value_order(const struct fact *a, const struct fact *b)
{
    const double left = fact_number(a), right = fact_number(b);
    if (a->kind == FACT_TEXT && b->kind == FACT_TEXT)
        return str_order(a->text, b->text);
    if (a->kind == FACT_BOOL && b->kind == FACT_BOOL)
        return b->flag - a->flag;
    if (isfinite(left) && isfinite(right))
        return (left < right) - (left > right);
    return (a->kind > b->kind) - (a->kind < b->kind);
}

/* The order of rows: values before those that could not be read, health before settings. GPUs
 * of one row are adjacent, in the order of the data. */
static int difference_row_order(const struct difference *a, const struct difference *b)
{
    const bool a_unknown = a->here->kind == FACT_UNKNOWN, b_unknown = b->here->kind == FACT_UNKNOWN;
    if (a_unknown != b_unknown)
        return a_unknown ? 1 : -1;
    if (a->set != b->set)
        return a->set < b->set ? -1 : 1;
    int order = strcmp(a->here->key, b->here->key);
    if (!order)
        order = str_order(a->gpu->gpu->model, b->gpu->gpu->model);
    return order ? order : fact_value_order(a->here, b->here);
}

static int difference_order(const void *left, const void *right)
{
    const struct difference *a = left, *b = right;
    int order = difference_row_order(a, b);
    return order ? order : (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

/* "gpu0001:0,1,2 gpu0002:3": nodes with the indices of their GPUs. The GPUs are sorted by node. */
static void difference_put_places(struct strbuf *out, const struct difference *items, size_t count)
{
    const char *node = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct inventory_gpu *gpu = items[i].gpu->gpu;
        if (i && str_equal(node, gpu->node)) {
            strbuf_printf(out, ",%d", (int)gpu->index);
            continue;
        }
        strbuf_puts(out, i ? " " : "");
        html_text(out, gpu->node, HTML_NAME);
        strbuf_printf(out, ":%d", (int)gpu->index);
        node = gpu->node;
    }
}

/* The GPUs of one row: a few with their UUIDs, more folded. */
static void difference_put_gpus(struct strbuf *out, const struct difference *items, size_t count)
{
    enum { UUIDS_MAX = 4, UNFOLDED_MAX = 32 };
    if (count <= UUIDS_MAX)
        for (size_t i = 0; i < count; i++) {
            strbuf_puts(out, i ? "<br>" : "");
            difference_put_places(out, &items[i], 1);
            strbuf_puts(out, " <code>");
            html_text(out, items[i].gpu->gpu->uuid, HTML_NAME);
            strbuf_puts(out, "</code>");
        }
    else if (count <= UNFOLDED_MAX)
        difference_put_places(out, items, count);
    else {
        strbuf_printf(out, "<details><summary>%zu GPUs</summary>", count);
        difference_put_places(out, items, count);
        strbuf_puts(out, "</details>");
    }
}

static void differences_put_rows(struct strbuf *out, const struct html_data *data,
                                 const struct differences *differences)
{
    const struct difference *items = differences->items;
    const bool models = data->inventory->model_count > 1;
    table_open(out, "sort filter");
    table_heads(out, models ? "fact|model" : "fact");
    table_heads(out, "here|most of its model|#GPUs|which (node:GPU)");
    table_heads_end(out);
    for (size_t from = 0, to; from < differences->count; from = to) {
        const struct difference *row = &items[from];
        for (to = from + 1; to < differences->count && difference_row_order(row, &items[to]) == 0;)
            to++;
        strbuf_printf(out, "<tr><td>%s.", difference_set_names[row->set]);
        html_text(out, row->here->key, HTML_NAME);
        if (models)
            table_name(out, row->gpu->gpu->model);
        strbuf_puts(out, "<td>");
        if (row->here->kind == FACT_UNKNOWN)
            strbuf_puts(out, "not known");
        else
            html_fact(out, row->here);
        strbuf_puts(out, "<td>");
        html_fact(out, row->usual);
        strbuf_printf(out, "<td class=n>%zu<td class=t>", to - from);
        difference_put_gpus(out, row, to - from);
        strbuf_puts(out, "\n");
    }
    table_end(out);
}

/* A value of the moment of one GPU. */
struct moment {
    double value;
    const struct html_gpu *gpu;
};

static int moment_order(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

/* The values of one fact of the GPUs of a model, sorted; returns their number, or 0 if no GPU
 * differs from the model. A GPU that does not list the fact has the value of its model. */
static size_t moments_collect(const struct html_data *data, const struct html_model *model,
                              const char *key, struct moment *out)
{
    bool differ = false;
    size_t count = 0;
    for (size_t i = 0; i < data->inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = data->gpus[i].gpu;
        const bool measured = gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
        const struct fact *fact = NULL;
        if (!str_equal(gpu->model, model->model->id))
            continue;
        for (int set = 0; set < DIFFERENCE_SETS && !fact; set++)
            fact = facts_get(difference_facts(gpu, (enum difference_set)set), key);
        differ |= fact != NULL;
        for (int set = 0; measured && set < DIFFERENCE_SETS && !fact; set++)
            fact = facts_get(difference_usual_facts(model, (enum difference_set)set), key);
        if (isfinite(fact_number(fact)))
            out[count++] = (struct moment){fact_number(fact), &data->gpus[i]};
    }
    if (count)
        sort_stable(out, count, sizeof *out, moment_order);
    return differ ? count : 0;
}

static void moment_put_end(struct strbuf *out, const struct moment *moment)
{
    table_figure(out, moment->value);
    table_name(out, moment->gpu->gpu->node);
    strbuf_printf(out, ":%d", (int)moment->gpu->gpu->index);
}

/* The row of a distribution; nothing if the fact does not differ. A GPU that is too hot, or has too
 * little free memory, is found by the judge and listed among outliers or GPUs to watch. */
static void moments_put_row(struct strbuf *out, const struct html_data *data, size_t model,
                            const char *key, const char *unit, struct moment *moments)
{
    const size_t count = unit ? moments_collect(data, &data->models[model], key, moments) : 0;
    if (!count)
        return;
    table_row(out);
    table_name(out, key);
    table_name(out, data->inventory->models[model].id);
    strbuf_printf(out, "<td>%s<td class=n>%zu", unit, count);
    moment_put_end(out, &moments[0]);
    table_figure(out, (moments[(count - 1) / 2].value + moments[count / 2].value) / 2);
    moment_put_end(out, &moments[count - 1]);
    strbuf_puts(out, "\n");
}

static void moments_put_rows(struct strbuf *out, const struct html_data *data)
{
    struct moment *moments = mem_array(data->inventory->gpu_count, sizeof *moments);
    for (size_t m = 0; m < data->inventory->model_count; m++) {
        for (size_t i = 0; i < HEALTH_FACTS; i++)
            moments_put_row(out, data, m, catalogue_health[i].key, catalogue_health[i].moment_unit,
                            moments);
        for (size_t i = 0; i < catalogue_setting_count; i++)
            moments_put_row(out, data, m, catalogue_settings[i].key,
                            catalogue_settings[i].moment_unit, moments);
    }
    free(moments);
}

void html_differences(struct strbuf *out, const struct html_data *data)
{
    struct differences differences = {0};
    struct strbuf moments = {0};
    differences_collect(data, &differences);
    if (differences.count)
        sort_stable(differences.items, differences.count, sizeof *differences.items,
                    difference_order);
    moments_put_rows(&moments, data);
    if (differences.count || moments.length)
        strbuf_puts(out, "<section id=differences><h2>Settings and health that differ</h2>\n");
    if (differences.count)
        differences_put_rows(out, data, &differences);
    if (moments.length) {
        strbuf_puts(out, "<h3>What varies by the moment</h3>\n");
        table_begin(out, "sort filter", "fact|model|unit|#GPUs|#least|on|#median|#most|on");
        strbuf_append(out, moments.data, moments.length);
        table_end(out);
    }
    if (differences.count || moments.length)
        strbuf_puts(out, "</section>\n");
    strbuf_fini(&moments);
    free(differences.items);
}
