/* What a vendor needs to know about one GPU, as text for people. */
#include <math.h>

#include "judge/fact_text.h"
#include "markup/text.h"
#include "report/entries.h"
#include "report/rma.h"

enum { LABEL_COLUMNS = 18, METRIC_COLUMNS = 24, CELL_COLUMNS = 15, TEXT_CHARS = 300 };

static void put_row(struct strbuf *out, const char *label, const char *text)
{
    struct strbuf line = {0};
    text_put_clean(&line, text ? text : "unknown", TEXT_CHARS);
    text_put_column(out, label, LABEL_COLUMNS);
    report_end_line(out, NULL, &line, LABEL_COLUMNS, LABEL_COLUMNS);
}

static void put_versions(struct strbuf *out, const struct inventory *inventory)
{
    struct strbuf text = {0};
    inventory_put_measured_by(inventory, &text);
    put_row(out, "with gpumemtopo", text.data);
    out->failed |= text.failed;
    strbuf_fini(&text);
}

static void put_identity(struct strbuf *out, const struct rma *rma)
{
    const struct facts *board = &rma->facts[INVENTORY_BOARD];
    const struct inventory_gpu *gpu = rma->gpu;
    strbuf_puts(out, "Report about one GPU, made by gpumemtopo from measurements\n\n");
    put_row(out, "GPU", gpu->uuid);
    put_row(out, "model", rma->model ? rma->model->name : NULL);
    put_row(out, "serial number", facts_text(board, "serial"));
    put_row(out, "board part", facts_text(board, "part"));
    put_row(out, "VBIOS", facts_text(board, "vbios"));
    put_row(out, "driver", facts_text(board, "driver"));
    put_row(out, "node", gpu->node);
    put_row(out, "PCI address", gpu->pci);
    put_row(out, "surveyed", rma->inventory->generated);
    put_versions(out, rma->inventory);
    put_row(out, "backend", rma->inventory->backend);
    put_row(out, "status",
            rma->outlier ? inventory_kind_name(rma->outlier->kind) : gpu_status_name(gpu->status));
    if (rma->failure)
        put_row(out, "not measured", rma->failure->reason);
}

static void put_finding(struct strbuf *out, const struct inventory_finding *finding)
{
    struct strbuf line = {0};
    text_put_clean(&line, finding->metric, TEXT_CHARS);
    strbuf_puts(&line, " ");
    text_put_quantity(&line, finding->value, finding->unit);
    if (isfinite(finding->expected)) {
        strbuf_puts(&line, ", expected ");
        text_put_quantity(&line, finding->expected, finding->unit);
    }
    if (isfinite(finding->deviation))
        strbuf_printf(&line, " (%+.1f %%)", 100 * finding->deviation);
    if (isfinite(finding->score))
        strbuf_printf(&line, ", %.0f times the scatter", fabs(finding->score));
    if (finding->confirmed) {
        strbuf_puts(&line, ", confirmed ");
        text_put_clean(&line, finding->confirmed, TEXT_CHARS);
    }
    strbuf_puts(&line, ", basis ");
    text_put_clean(&line, finding->basis, TEXT_CHARS);
    strbuf_puts(&line, ": ");
    text_put_clean(&line, finding->cause ? finding->cause : "no cause known", TEXT_CHARS);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 4);
}

static void put_findings(struct strbuf *out, const char *title,
                         const struct inventory_outlier *entry)
{
    if (!entry || !entry->finding_count)
        return;
    strbuf_printf(out, "\n%s:\n", title);
    for (size_t i = 0; i < entry->finding_count; i++)
        put_finding(out, &entry->findings[i]);
}

/* Findings of a place that lists this GPU. */
static void put_places(struct strbuf *out, const struct rma *rma)
{
    size_t count = 0;
    for (size_t i = 0; i < rma->inventory->node_finding_count; i++) {
        const struct inventory_node *place = &rma->inventory->node_findings[i];
        for (size_t g = 0; g < place->gpu_count; g++) {
            if (!str_equal(place->gpus[g], rma->gpu->uuid))
                continue;
            strbuf_puts(out, count++ ? "" : "\nFindings of its node, slot or model:\n");
            report_put_node(out, NULL, place);
            break;
        }
    }
}

static void put_cell(struct strbuf *out, double value, const char *unit)
{
    struct strbuf cell = {0};
    text_put_quantity(&cell, value, unit);
    text_put_column(out, cell.data ? cell.data : "-", CELL_COLUMNS);
    out->failed |= cell.failed;
    strbuf_fini(&cell);
}

static void put_figure(struct strbuf *out, const struct rma_figure *figure)
{
    const struct inventory_value *value = figure->value;
    const bool valued = measure_status_valued(value->status);
    strbuf_puts(out, "  ");
    text_put_column(out, value->metric, METRIC_COLUMNS);
    put_cell(out, valued ? value->value : NAN, figure->unit);
    put_cell(out, figure->median, figure->unit);
    put_cell(out, figure->scatter, figure->unit);
    if (isfinite(figure->deviation))
        strbuf_printf(out, "%+.1f %%", 100 * figure->deviation);
    else
        strbuf_puts(out, "-");
    if (isfinite(figure->deviation) && figure->scatter > 0)
        strbuf_printf(out, " (%+.1f)", figure->deviation * fabs(figure->median) / figure->scatter);
    if (value->status != MEASURE_OK)
        strbuf_printf(out, " %s", measure_status_name(value->status));
    strbuf_puts(out, "\n");
}

static void put_figures(struct strbuf *out, const struct rma *rma)
{
    if (!rma->figure_count) {
        strbuf_puts(out, "\nNo figure was measured.\n");
        return;
    }
    strbuf_printf(out, "\nFigures beside %zu healthy GPUs of %s:\n  ", rma->peers,
                  rma->same_board ? "the same model and board part" : "the same model");
    text_put_column(out, "metric", METRIC_COLUMNS);
    text_put_column(out, "this GPU", CELL_COLUMNS);
    text_put_column(out, "median", CELL_COLUMNS);
    text_put_column(out, "scatter", CELL_COLUMNS);
    strbuf_puts(out, "deviation (in scatters)\n");
    for (size_t i = 0; i < rma->figure_count; i++)
        put_figure(out, &rma->figures[i]);
    strbuf_puts(out, "  Scatter: robust standard deviation of the healthy GPUs. The figures are as "
                     "measured; findings\n  compare figures at equal SM clock.\n");
}

static void put_value(struct strbuf *line, const struct fact *fact)
{
    struct strbuf value = {0};
    fact_text_put_value(&value, fact);
    text_put_clean(line, value.data, TEXT_CHARS);
    line->failed |= value.failed;
    strbuf_fini(&value);
}

/* usual: the facts of most GPUs of the model; NULL: unknown. */
static void put_facts(struct strbuf *out, const char *title, const struct facts *facts,
                      const struct facts *usual)
{
    strbuf_puts(out, facts->count ? title : "");
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->items[i];
        const struct fact *other = usual ? facts_get(usual, fact->key) : NULL;
        struct strbuf line = {0};
        text_put_clean(&line, fact->key, TEXT_CHARS);
        strbuf_puts(&line, ": ");
        put_value(&line, fact);
        if (other && !fact_equal(fact, other)) {
            strbuf_puts(&line, " (most GPUs of its model: ");
            put_value(&line, other);
            strbuf_puts(&line, ")");
        }
        strbuf_puts(out, "  ");
        report_end_line(out, NULL, &line, 2, 4);
    }
}

static void put_files(struct strbuf *out, const struct rma *rma)
{
    strbuf_puts(out, "\nFiles:\n"
                     "  README.txt   this text\n"
                     "  gpu.json     the same for programs\n");
    if (!rma->has_record) {
        strbuf_puts(out, "There is no record: the raw samples of this survey were not given "
                         "(gpumemtopo-survey --record).\n");
        return;
    }
    strbuf_puts(out, "  record.gmr   every request to the GPUs of the survey and every answer\n");
    if (!rma->record_is_complete) {
        strbuf_puts(out, "The record is cut off: it was not copied as a whole, or the survey was "
                         "ended. It cannot be\nreplayed.\n");
        return;
    }
    strbuf_puts(out, "\nTo repeat the whole analysis from the raw samples, without a GPU:\n"
                     "  gpumemtopo-survey --replay record.gmr -o replayed.yaml\n"
                     "  gpumemtopo-report show replayed.yaml\n");
}

void rma_put_readme(const struct rma *rma, struct strbuf *out_text)
{
    put_identity(out_text, rma);
    put_findings(out_text, "Findings", rma->outlier);
    put_findings(out_text, "Deviations too small to act on", rma->watched);
    put_places(out_text, rma);
    put_figures(out_text, rma);
    put_facts(out_text, "\nHealth:\n", &rma->facts[INVENTORY_HEALTH],
              rma->model ? &rma->model->health : NULL);
    put_facts(out_text, "\nSettings:\n", &rma->facts[INVENTORY_CONFIG],
              rma->model ? &rma->model->config : NULL);
    put_files(out_text, rma);
    strbuf_puts(out_text, "\nTo measure again on a machine with the GPU:\n"
                          "  gpumemtopo-survey --profile full -o again.yaml\n");
}
