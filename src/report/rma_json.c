/* What a vendor needs to know about one GPU, as JSON. */
#include <math.h>

#include "report/rma.h"
#include "schema/writer.h"

static void put_fact(struct writer *json, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_BOOL:
        writer_bool(json, fact->key, fact->flag);
        break;
    case FACT_INT:
        writer_number(json, fact->key, (double)fact->integer);
        break;
    case FACT_REAL:
        writer_number(json, fact->key, fact->real);
        break;
    case FACT_TEXT:
        writer_text(json, fact->key, fact->text);
        break;
    default:
        writer_text(json, fact->key, NULL);
    }
}

static void put_facts(struct writer *json, const char *key, const struct facts *facts)
{
    writer_map(json, key, WRITER_BLOCK);
    for (size_t i = 0; i < facts->count; i++)
        put_fact(json, &facts->items[i]);
    writer_end(json);
}

static void put_findings(struct writer *json, const char *key,
                         const struct inventory_outlier *entry)
{
    writer_list(json, key, WRITER_BLOCK);
    for (size_t i = 0; entry && i < entry->finding_count; i++) {
        const struct inventory_finding *finding = &entry->findings[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "metric", finding->metric);
        writer_number(json, "value", finding->value);
        writer_number(json, "expected", finding->expected);
        writer_text(json, "unit", finding->unit);
        writer_number(json, "deviation", finding->deviation);
        writer_number(json, "score", finding->score);
        writer_text(json, "basis", finding->basis);
        writer_text(json, "confirmed", finding->confirmed);
        writer_text(json, "cause", finding->cause);
        writer_end(json);
    }
    writer_end(json);
}

static void put_figures(struct writer *json, const struct rma *rma)
{
    writer_list(json, "figures", WRITER_BLOCK);
    for (size_t i = 0; i < rma->figure_count; i++) {
        const struct rma_figure *figure = &rma->figures[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "metric", figure->value->metric);
        writer_text(json, "unit", figure->unit);
        writer_text(json, "status", measure_status_name(figure->value->status));
        writer_number(json, "value",
                      measure_status_valued(figure->value->status) ? figure->value->value : NAN);
        writer_number(json, "spread", figure->value->spread);
        writer_number(json, "peers", (double)figure->peers);
        writer_number(json, "median", measure_digits(figure->median, 6));
        writer_number(json, "scatter", measure_digits(figure->scatter, 3));
        writer_number(json, "deviation", measure_digits(figure->deviation, 3));
        writer_end(json);
    }
    writer_end(json);
}

void rma_put_json(const struct rma *rma, struct strbuf *out_text)
{
    const struct inventory_gpu *gpu = rma->gpu;
    struct writer json = {.out = out_text};
    struct strbuf version = {0};
    inventory_put_measured_by(rma->inventory, &version);
    writer_map(&json, NULL, WRITER_BLOCK);
    writer_text(&json, "uuid", gpu->uuid);
    writer_text(&json, "node", gpu->node);
    writer_text(&json, "pci", gpu->pci);
    writer_text(&json, "model", rma->model ? rma->model->name : NULL);
    writer_text(&json, "status", gpu_status_name(gpu->status));
    writer_text(&json, "kind", rma->outlier ? inventory_kind_name(rma->outlier->kind) : NULL);
    writer_text(&json, "reason", rma->failure ? rma->failure->reason : NULL);
    writer_text(&json, "generated", rma->inventory->generated);
    writer_text(&json, "version", version.data);
    writer_text(&json, "backend", rma->inventory->backend);
    writer_number(&json, "peers", (double)rma->peers);
    writer_bool(&json, "peers_have_same_board", rma->same_board);
    put_findings(&json, "findings", rma->outlier);
    put_findings(&json, "watch", rma->watched);
    put_figures(&json, rma);
    put_facts(&json, "board", &rma->facts[INVENTORY_BOARD]);
    put_facts(&json, "hardware", &rma->facts[INVENTORY_HARDWARE]);
    put_facts(&json, "config", &rma->facts[INVENTORY_CONFIG]);
    put_facts(&json, "health", &rma->facts[INVENTORY_HEALTH]);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
    out_text->failed |= version.failed;
    strbuf_fini(&version);
}
