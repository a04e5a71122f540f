/* What a vendor needs to know about one GPU, as JSON. */
#include <math.h>

#include "report/json_text.h"
#include "report/rma.h"

static void put_fact(struct json_text *json, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_BOOL:
        json_bool(json, fact->key, fact->flag);
        break;
    case FACT_INT:
        json_number(json, fact->key, (double)fact->integer);
        break;
    case FACT_REAL:
        json_number(json, fact->key, fact->real);
        break;
    case FACT_TEXT:
        json_text(json, fact->key, fact->text);
        break;
    default:
        json_text(json, fact->key, NULL);
    }
}

static void put_facts(struct json_text *json, const char *key, const struct facts *facts)
{
    json_open(json, key, '{');
    for (size_t i = 0; i < facts->count; i++)
        put_fact(json, &facts->items[i]);
    json_close(json, '}');
}

static void put_findings(struct json_text *json, const char *key,
                         const struct inventory_outlier *entry)
{
    json_open(json, key, '[');
    for (size_t i = 0; entry && i < entry->finding_count; i++) {
        const struct inventory_finding *finding = &entry->findings[i];
        json_open(json, NULL, '{');
        json_text(json, "metric", finding->metric);
        json_number(json, "value", finding->value);
        json_number(json, "expected", finding->expected);
        json_text(json, "unit", finding->unit);
        json_number(json, "deviation", finding->deviation);
        json_number(json, "score", finding->score);
        json_text(json, "basis", finding->basis);
        json_text(json, "confirmed", finding->confirmed);
        json_text(json, "cause", finding->cause);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_figures(struct json_text *json, const struct rma *rma)
{
    json_open(json, "figures", '[');
    for (size_t i = 0; i < rma->figure_count; i++) {
        const struct rma_figure *figure = &rma->figures[i];
        json_open(json, NULL, '{');
        json_text(json, "metric", figure->value->metric);
        json_text(json, "unit", figure->unit);
        json_text(json, "status", measure_status_name(figure->value->status));
        json_number(json, "value",
                    measure_status_valued(figure->value->status) ? figure->value->value : NAN);
        json_number(json, "spread", figure->value->spread);
        json_number(json, "peers", (double)figure->peers);
        json_number(json, "median", measure_digits(figure->median, 6));
        json_number(json, "scatter", measure_digits(figure->scatter, 3));
        json_number(json, "deviation", measure_digits(figure->deviation, 3));
        json_close(json, '}');
    }
    json_close(json, ']');
}

void rma_put_json(const struct rma *rma, struct strbuf *out_text)
{
    const struct inventory_gpu *gpu = rma->gpu;
    struct json_text json = {.out = out_text};
    struct strbuf version = {0};
    inventory_put_measured_by(rma->inventory, &version);
    json_open(&json, NULL, '{');
    json_text(&json, "uuid", gpu->uuid);
    json_text(&json, "node", gpu->node);
    json_text(&json, "pci", gpu->pci);
    json_text(&json, "model", rma->model ? rma->model->name : NULL);
    json_text(&json, "status", gpu_status_name(gpu->status));
    json_text(&json, "kind", rma->outlier ? inventory_kind_name(rma->outlier->kind) : NULL);
    json_text(&json, "reason", rma->failure ? rma->failure->reason : NULL);
    json_text(&json, "generated", rma->inventory->generated);
    json_text(&json, "version", version.data);
    json_text(&json, "backend", rma->inventory->backend);
    json_number(&json, "peers", (double)rma->peers);
    json_bool(&json, "peers_have_same_board", rma->same_board);
    put_findings(&json, "findings", rma->outlier);
    put_findings(&json, "watch", rma->watched);
    put_figures(&json, rma);
    put_facts(&json, "board", &rma->facts[INVENTORY_BOARD]);
    put_facts(&json, "hardware", &rma->facts[INVENTORY_HARDWARE]);
    put_facts(&json, "config", &rma->facts[INVENTORY_CONFIG]);
    put_facts(&json, "health", &rma->facts[INVENTORY_HEALTH]);
    json_close(&json, '}');
    strbuf_puts(out_text, "\n");
    out_text->failed |= version.failed;
    strbuf_fini(&version);
}
