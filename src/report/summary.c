/* The summary of an inventory: what needs action, the most severe first, then what the GPUs of each
 * model are like. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "markup/text.h"
#include "report/drain.h"
#include "report/entries.h"

/* Keeps the text short; `show --all` and the inventory have the rest. */
enum { ENTRIES_MAX = 20, WATCHED_MAX = 3, MODELS_MAX = 8, NAME_MAX = 24, TEXT_MAX = 300 };

/* How a list of GPUs with a verdict begins, and what is to be done with them in general. */
static const struct {
    const char *title, *next;
} headings[VERDICT_COUNT] = {
    [VERDICT_FAILING] = {"FAILING", "reset or replace the GPU"},
    [VERDICT_DEGRADED] = {"DEGRADED", "look at cooling, power and slot, then replace the GPU"},
    [VERDICT_MISCONFIGURED] = {"MISCONFIGURED", "set it as on the other GPUs"},
    [VERDICT_MISMATCHED] = {"MISMATCHED", "compare it with what was ordered"},
    [VERDICT_UNSTEADY] = {"UNSTEADY",
                          "look for other processes and for heat, then survey it again"},
    [VERDICT_BUILT_SLOWER] = {"BUILT SLOWER", "nothing"},
    [VERDICT_UNKNOWN] = {"UNKNOWN", "survey it again"},
};

static unsigned width_for(const struct report_style *style)
{
    return style ? style->width : REPORT_WIDTH;
}

static bool lists_gpu(const struct inventory_outlier *entries, size_t count, const char *uuid)
{
    for (size_t i = 0; i < count; i++)
        if (str_equal(entries[i].uuid, uuid))
            return true;
    return false;
}

static void put_headline(struct strbuf *out, const struct report_style *style,
                         const struct inventory *v)
{
    struct strbuf line = {0};
    size_t busy = 0;
    for (size_t i = 0; i < v->gpu_count; i++)
        busy += v->gpus[i].status == GPU_BUSY && v->gpus[i].value_count;
    report_put_count(&line, v->total_gpus, "GPU", "GPUs");
    strbuf_puts(&line, " on ");
    report_put_count(&line, v->total_nodes, "node", "nodes");
    strbuf_puts(&line, str_equal(v->backend, "sim") ? " (simulated)" : "");
    strbuf_printf(&line, ": %u measured", v->total_measured);
    if (busy)
        strbuf_printf(&line, " (%zu busy: not judged)", busy);
    if (v->total_unmeasured)
        strbuf_printf(&line, ", %u not measured", v->total_unmeasured);
    if (v->total_lost_ranks) {
        strbuf_puts(&line, ", ");
        report_put_count(&line, v->total_lost_ranks, "rank lost", "ranks lost");
    }
    if (isfinite(v->wall_s))
        strbuf_printf(&line, "; %.1f s", v->wall_s);
    report_end_line(out, style, &line, 0, 4);
}

/* Not listed as an outlier, too. */
static bool is_watched(const struct inventory *v, size_t i)
{
    return !lists_gpu(v->outliers, v->outlier_count, v->watch[i].uuid);
}

static size_t count_watched(const struct inventory *v)
{
    size_t count = 0;
    for (size_t i = 0; i < v->watch_count; i++)
        count += is_watched(v, i);
    return count;
}

/* GPUs of which nothing is said. */
static size_t count_healthy(const struct inventory *v)
{
    const char **watched = mem_array(v->watch_count + 1, sizeof *watched);
    size_t healthy = 0;
    for (size_t i = 0; i < v->watch_count; i++)
        watched[i] = v->watch[i].uuid ? v->watch[i].uuid : "";
    sort_stable(watched, v->watch_count, sizeof *watched, str_item_order);
    for (size_t i = 0; i < v->gpu_count; i++)
        healthy +=
            v->gpus[i].status == GPU_OK && v->gpus[i].uuid &&
            !bsearch(&v->gpus[i].uuid, watched, v->watch_count, sizeof *watched, str_item_order);
    free(watched);
    return healthy;
}

/* "9 need action (2 failing, 7 degraded), 5 nodes to drain; 1 to watch, 8 healthy". */
static void put_counts(struct strbuf *out, const struct report_style *style,
                       const struct inventory *v)
{
    struct strbuf line = {0}, refused = {0};
    struct drain_lines drains;
    size_t ways = 0, watched = count_watched(v);
    if (v->total_outliers)
        strbuf_printf(&line, v->total_outliers == 1 ? "%u needs action" : "%u need action",
                      v->total_outliers);
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        size_t count = 0;
        for (size_t i = 0; i < v->outlier_count; i++)
            count += v->outliers[i].verdict == (enum verdict)verdict;
        if (count)
            strbuf_printf(&line, "%s%zu %s", ways++ ? ", " : " (", count,
                          verdict_name((enum verdict)verdict));
    }
    strbuf_puts(&line, ways ? ")" : v->total_outliers ? "" : "nothing needs action");
    drain_lines_init(&drains, v, &refused);
    if (drains.count) {
        strbuf_puts(&line, ", ");
        report_put_count(&line, drains.count, "node to drain", "nodes to drain");
    }
    drain_lines_fini(&drains);
    strbuf_fini(&refused);
    if (watched)
        strbuf_printf(&line, "; %zu to watch", watched);
    strbuf_printf(&line, "; %zu healthy", count_healthy(v));
    strbuf_puts(out, "  ");
    report_end_line(out, style, &line, 2, 4);
}

static void put_gaps(struct strbuf *out, const struct report_style *style,
                     const struct inventory *v)
{
    struct strbuf line = {0};
    if (v->total_unplanned) {
        strbuf_printf(
            &line,
            "GPUs may be missing: the plan of the survey that measured %u of these was not there",
            v->total_unplanned);
        report_end_line(out, style, &line, 0, 4);
    }
    if (v->unread_files) {
        strbuf_puts(&line, "GPUs may be missing: ");
        report_put_count(&line, v->unread_files, "file", "files");
        strbuf_puts(&line, " could not be read when this inventory was merged");
        report_end_line(out, style, &line, 0, 4);
    }
}

/* "demo2 GPU 1"; where the number is not known, its PCI address, or its UUID. */
static void put_place(struct strbuf *out, const struct inventory *v, const char *node,
                      const char *uuid)
{
    const struct inventory_gpu *gpu = NULL;
    for (size_t i = 0; i < v->gpu_count && !gpu && uuid; i++)
        if (str_equal(v->gpus[i].uuid, uuid))
            gpu = &v->gpus[i];
    text_put_clean(out, node, NAME_MAX);
    strbuf_puts(out, " ");
    if (gpu && gpu->index >= 0)
        strbuf_printf(out, "GPU %d", (int)gpu->index);
    else
        text_put_clean(out, gpu && gpu->pci ? gpu->pci : uuid ? uuid : "unknown GPU", NAME_MAX);
}

/* Begins an entry; what follows begins at column `indent`. */
static void put_head(struct strbuf *out, const struct inventory *v, const char *node,
                     const char *uuid, unsigned indent)
{
    struct strbuf place = {0};
    put_place(&place, v, node, uuid);
    strbuf_puts(out, "  ");
    text_put_column(out, place.data, indent - 4);
    strbuf_puts(out, "  ");
    strbuf_fini(&place);
}

static void put_title(struct strbuf *out, const struct report_style *style, enum report_paint paint,
                      const char *title)
{
    strbuf_puts(out, "\n");
    report_put_painted(out, style, paint, title);
}

static void put_more(struct strbuf *out, size_t count)
{
    if (count > ENTRIES_MAX)
        strbuf_printf(out, "  and %zu more\n", count - ENTRIES_MAX);
}

static int by_loss(const void *a, const void *b)
{
    const struct inventory_outlier *left = *(const struct inventory_outlier *const *)a;
    const struct inventory_outlier *right = *(const struct inventory_outlier *const *)b;
    double x = isfinite(left->loss) ? left->loss : 2, y = isfinite(right->loss) ? right->loss : 2;
    return (x < y) - (x > y);
}

/* The outliers with this verdict and this action, the largest loss first. */
static void put_outliers(struct strbuf *out, const struct report_style *style,
                         const struct inventory *v, enum verdict verdict, enum action action,
                         unsigned indent)
{
    const struct inventory_outlier **found = mem_array(v->outlier_count + 1, sizeof *found);
    struct strbuf line = {0};
    size_t count = 0;
    for (size_t i = 0; i < v->outlier_count; i++)
        if (v->outliers[i].verdict == verdict && v->outliers[i].action == action)
            found[count++] = &v->outliers[i];
    sort_stable(found, count, sizeof *found, by_loss);
    if (count) {
        bool drain = action == ACTION_DRAIN;
        put_title(out, style, drain ? REPORT_RED : REPORT_YELLOW, headings[verdict].title);
        strbuf_printf(&line, " (%zu): %s; %s", count,
                      drain ? "drain the node" : "the node is not drained", headings[verdict].next);
        report_end_line(out, style, &line, (unsigned)strlen(headings[verdict].title), 4);
    }
    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++) {
        put_head(out, v, found[i]->node, found[i]->uuid, indent);
        report_put_outlier_briefly(out, style, found[i], indent);
    }
    put_more(out, count);
    free(found);
}

/* GPUs that are among the outliers have been listed with these. */
static void put_unmeasured(struct strbuf *out, const struct report_style *style,
                           const struct inventory *v, unsigned indent)
{
    size_t count = 0;
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        const struct inventory_unmeasured *gpu = &v->unmeasured[i];
        struct strbuf line = {0};
        if (gpu->uuid && lists_gpu(v->outliers, v->outlier_count, gpu->uuid))
            continue;
        if (!count)
            put_title(out, style, REPORT_BOLD, "NOT MEASURED\n");
        if (count++ >= ENTRIES_MAX)
            continue;
        put_head(out, v, gpu->node, gpu->uuid, indent);
        strbuf_puts(&line, gpu_status_name(gpu->status));
        if (gpu->reason) {
            strbuf_puts(&line, ": ");
            text_put_clean(&line, gpu->reason, TEXT_MAX);
        }
        report_end_line(out, style, &line, indent, indent);
    }
    put_more(out, count);
}

static void put_finding(struct strbuf *out, const struct report_style *style,
                        const struct inventory_node *place)
{
    struct strbuf line = {0};
    if (place->node) {
        text_put_clean(&line, place->node, NAME_MAX);
        strbuf_puts(&line, ": ");
    }
    text_put_clean(&line, place->finding, TEXT_MAX);
    if (place->action >= ACTION_ALERT)
        strbuf_printf(&line, " [%s: %s]", verdict_name(place->verdict), action_name(place->action));
    strbuf_puts(out, "  ");
    report_end_line(out, style, &line, 2, 4);
}

/* Those that call for an action first. */
static void put_findings(struct strbuf *out, const struct report_style *style,
                         const struct inventory *v)
{
    size_t count = 0;
    if (v->node_finding_count)
        put_title(out, style, REPORT_BOLD, "NODES AND MODELS\n");
    for (int action = ACTION_DRAIN; action >= ACTION_NOTHING; action--)
        for (size_t i = 0; i < v->node_finding_count; i++)
            if (v->node_findings[i].action == (enum action)action && count++ < ENTRIES_MAX)
                put_finding(out, style, &v->node_findings[i]);
    put_more(out, count);
}

static void put_watched(struct strbuf *out, const struct report_style *style,
                        const struct inventory *v, unsigned indent)
{
    const size_t count = count_watched(v);
    if (!count)
        return;
    put_title(out, style, REPORT_BOLD, "TO WATCH");
    strbuf_printf(out, " (%zu): nothing is to be done\n", count);
    for (size_t i = 0; i < v->watch_count && count <= WATCHED_MAX; i++) {
        if (!is_watched(v, i))
            continue;
        put_head(out, v, v->watch[i].node, v->watch[i].uuid, indent);
        report_put_outlier_briefly(out, style, &v->watch[i], indent);
    }
}

/* The columns of the name, if they are more than `before`. */
static unsigned wider(const char *name, unsigned before, unsigned most)
{
    unsigned columns = text_columns(name ? name : "-", most);
    columns = columns < most ? columns : most;
    return columns > before ? columns : before;
}

/* The column at which the texts of all entries begin. */
static unsigned entries_indent(const struct inventory *v, const struct report_style *style)
{
    enum { NUMBER = 6, ADDRESS = 12, AROUND = 5 }; /* "GPU 15", "0000:0b:00.0" */
    unsigned most = width_for(style) / 2 < NAME_MAX ? width_for(style) / 2 : NAME_MAX;
    unsigned widest = 0, gpu = NUMBER;
    for (size_t i = 0; i < v->gpu_count; i++)
        gpu = v->gpus[i].index < 0 ? ADDRESS : gpu;
    for (size_t i = 0; i < v->outlier_count; i++)
        widest = wider(v->outliers[i].node, widest, most);
    for (size_t i = 0; i < v->watch_count && v->watch_count <= WATCHED_MAX; i++)
        widest = wider(v->watch[i].node, widest, most);
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        widest = wider(v->unmeasured[i].node, widest, most);
        gpu = v->unmeasured[i].uuid ? gpu : ADDRESS;
    }
    return widest + gpu + AROUND;
}

/* The rows of the table of models: the figures of a memory that are there are its cell. */
static const struct {
    const char *title;
    const char *figures[3];
} rows[] = {
    {"L1 data, each SM", {"l1_data.size", "l1_data.latency", "l1_data.bandwidth.read"}},
    {"L2", {"l2.size", "l2.latency", "l2.bandwidth.read"}},
    {"main memory", {"main.size", "main.latency", "main.bandwidth.read"}},
    {"link to the host", {NULL, "host.latency", "host.bandwidth.h2d"}},
};
enum { ROWS = COUNT_OF(rows), TITLE_COLUMNS = 18, GAP = 3 };

static void put_figure(struct strbuf *cell, const struct inventory_model *model, const char *metric)
{
    const struct measure *m = metric ? measures_get(&model->memory, metric) : NULL;
    if (!m || m->kind != MEASURE_NUMBER || !measure_status_valued(m->status))
        return;
    const struct measure *caches =
        strcmp(metric, "l1_data.size") == 0 ? measures_get(&model->memory, "l1_data.per_sm") : NULL;
    double ns = fact_number(facts_get(&m->notes, "ns"));
    bool in_ns = isfinite(ns) && (metric[0] == 'm' || metric[0] == 'h');
    strbuf_puts(cell, cell->length ? "  " : "");
    strbuf_puts(cell, m->bound == MEASURE_AT_LEAST ? ">= " : "");
    if (caches && caches->value > 1)
        strbuf_printf(cell, "%.0f x ", caches->value);
    text_put_quantity(cell, in_ns ? ns : m->value, in_ns ? "ns" : m->unit);
    strbuf_puts(cell, m->status == MEASURE_NOISY ? " (noisy)" : "");
}

/* Row 0 of a column is the name of the model. */
struct column {
    struct strbuf cells[ROWS + 1];
    unsigned width;
};

static void column_fill(struct column *column, const struct inventory_model *model, unsigned most)
{
    text_put_clean(&column->cells[0], model->name ? model->name : model->id, most);
    strbuf_printf(&column->cells[0], " (%u)", model->count);
    for (size_t row = 0; row < ROWS; row++) {
        struct strbuf *cell = &column->cells[row + 1];
        for (size_t i = 0; i < COUNT_OF(rows[row].figures); i++)
            put_figure(cell, model, rows[row].figures[i]);
        strbuf_puts(cell, cell->length ? "" : "-");
    }
    for (size_t row = 0; row <= ROWS; row++) {
        unsigned columns = text_columns(column->cells[row].data, most);
        column->width = columns > column->width ? columns : column->width;
    }
    column->width = column->width < most ? column->width : most;
}

/* As many models beside each other as the width holds; returns how many. */
static size_t put_models_beside(struct strbuf *out, const struct report_style *style,
                                const struct inventory_model *models, size_t count)
{
    struct column columns[MODELS_MAX] = {0};
    unsigned width = width_for(style), used = TITLE_COLUMNS + 2;
    size_t shown = 0;
    while (shown < count && shown < MODELS_MAX) {
        struct column *column = &columns[shown];
        column_fill(column, &models[shown], width - TITLE_COLUMNS - 2);
        if (shown && used + GAP + column->width > width)
            break;
        used += column->width + (shown ? GAP : 0);
        shown++;
    }
    for (size_t row = 0; row <= ROWS; row++) {
        strbuf_puts(out, row ? "  " : "\n");
        if (!row)
            report_begin_paint(out, style, REPORT_BOLD);
        text_put_column(out, row ? rows[row - 1].title : "MODELS", TITLE_COLUMNS + (row ? 0 : 2));
        for (size_t i = 0; i < shown; i++) {
            strbuf_printf(out, "%*s", i ? GAP : 0, "");
            if (i + 1 < shown)
                text_put_column(out, columns[i].cells[row].data, columns[i].width);
            else
                text_put_clean(out, columns[i].cells[row].data, columns[i].width);
        }
        if (!row)
            report_end_paint(out, style);
        strbuf_puts(out, "\n");
    }
    for (size_t i = 0; i < MODELS_MAX; i++)
        for (size_t row = 0; row <= ROWS; row++)
            strbuf_fini(&columns[i].cells[row]);
    return shown;
}

static void put_models(struct strbuf *out, const struct report_style *style,
                       const struct inventory *v)
{
    size_t shown = 0;
    while (shown < v->model_count && shown < MODELS_MAX)
        shown += put_models_beside(out, style, &v->models[shown], v->model_count - shown);
    if (shown < v->model_count)
        strbuf_printf(out, "  and %zu more models\n", v->model_count - shown);
}

void report_summary(const struct inventory *inventory, const char *file,
                    const struct report_style *style, struct strbuf *out_text)
{
    const struct inventory *v = inventory;
    unsigned indent = entries_indent(v, style);
    put_headline(out_text, style, v);
    if (v->total_gpus)
        put_counts(out_text, style, v);
    put_gaps(out_text, style, v);
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        for (int action = ACTION_DRAIN; action >= ACTION_ALERT; action--)
            put_outliers(out_text, style, v, (enum verdict)verdict, (enum action)action, indent);
    put_unmeasured(out_text, style, v, indent);
    put_findings(out_text, style, v);
    put_watched(out_text, style, v, indent);
    put_models(out_text, style, v);
    if (!file)
        return;
    struct strbuf line = {0};
    strbuf_puts(&line, "Next: gpumemtopo-report show --all ");
    text_put_clean(&line, file, TEXT_MAX);
    if (inventory_action(v) == ACTION_DRAIN) {
        strbuf_puts(&line, "; gpumemtopo-report drain ");
        text_put_clean(&line, file, TEXT_MAX);
        strbuf_puts(&line, " prints what drains the nodes");
    }
    strbuf_puts(out_text, "\n");
    report_end_line(out_text, style, &line, 0, 4);
}
