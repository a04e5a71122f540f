/* The history of GPUs as JSON. */
#include "report/history/history.h"
#include "report/history/history_events.h"
#include "report/history/history_trends.h"
#include "schema/writer.h"

static void put_name(struct writer *json, const struct history *history, const char *key,
                     uint32_t symbol)
{
    writer_text(json, key, symbols_data(&history->symbols, symbol));
}

static void put_surveys(struct writer *json, const struct history *history)
{
    writer_list(json, "surveys", WRITER_BLOCK);
    for (size_t i = 0; i < history->survey_count; i++) {
        const struct history_survey *survey = &history->surveys[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "file", survey->path);
        writer_text(json, "generated", survey->generated);
        writer_number(json, "gpus", survey->gpus);
        writer_number(json, "measured", survey->measured);
        writer_number(json, "unmeasured", survey->unmeasured);
        writer_number(json, "outliers", survey->outliers);
        writer_bool(json, "stranger", survey->stranger);
        writer_end(json);
    }
    writer_end(json);
}

/* Each survey in which something was said about the GPU. */
static void put_findings(struct writer *json, const struct history *history,
                         const struct history_gpu *gpu)
{
    writer_list(json, "findings", WRITER_BLOCK);
    for (size_t i = 0; i < gpu->count; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (now->state < HISTORY_WATCHED)
            continue;
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "generated", history->surveys[now->survey].generated);
        writer_text(json, "kind",
                    now->state == HISTORY_OUTLIER   ? inventory_kind_name(now->kind)
                    : now->state == HISTORY_WATCHED ? "watch"
                                                    : "unmeasured");
        put_name(json, history, "metric", now->metric);
        put_name(json, history, "cause", now->cause);
        writer_end(json);
    }
    writer_end(json);
}

static void put_states(struct writer *json, const struct history *history,
                       const struct history_gpu *gpu)
{
    struct strbuf states = {0};
    for (size_t i = 0; i < history->survey_count; i++) {
        char letter = history_letter(history_state_at(history, gpu, (uint32_t)i));
        strbuf_append(&states, &letter, 1);
    }
    writer_text(json, "states", states.data);
    json->out->failed |= states.failed;
    strbuf_fini(&states);
}

static void put_gpus(struct writer *json, const struct history *history)
{
    writer_list(json, "gpus", WRITER_BLOCK);
    for (size_t i = 0; i < history->offender_count; i++) {
        const struct history_gpu *gpu = &history->gpus[i];
        const struct history_sighting *last = &gpu->sightings[gpu->count - 1];
        writer_map(json, NULL, WRITER_BLOCK);
        put_name(json, history, "uuid", last->uuid);
        put_name(json, history, "serial", last->serial);
        put_name(json, history, "node", last->node);
        put_name(json, history, "pci", last->pci);
        put_name(json, history, "model", last->model);
        writer_number(json, "seen", (double)gpu->count);
        writer_number(json, "outlier", gpu->states[HISTORY_OUTLIER]);
        writer_number(json, "watched", gpu->states[HISTORY_WATCHED]);
        writer_number(json, "unmeasured", gpu->states[HISTORY_UNMEASURED]);
        writer_number(json, "missing", gpu->states[HISTORY_MISSING]);
        put_states(json, history, gpu);
        put_findings(json, history, gpu);
        writer_end(json);
    }
    writer_end(json);
}

static void put_trends(struct writer *json, const struct history *history)
{
    writer_list(json, "trends", WRITER_BLOCK);
    for (size_t i = 0; i < history->trend_count; i++) {
        const struct history_trend *trend = &history->trends[i];
        writer_map(json, NULL, WRITER_BLOCK);
        put_name(json, history, "uuid", trend->gpu ? trend->gpu->sightings[0].uuid : 0);
        put_name(json, history, "model", trend->model);
        put_name(json, history, "metric", trend->metric);
        writer_number(json, "change", trend->change);
        writer_number(json, "error", trend->error);
        writer_number(json, "scatter", trend->scatter);
        writer_number(json, "first", trend->first);
        writer_number(json, "last", trend->last);
        writer_number(json, "days", trend->days);
        writer_number(json, "surveys", (double)trend->surveys);
        writer_end(json);
    }
    writer_end(json);
}

static void put_events(struct writer *json, const struct history *history)
{
    writer_list(json, "events", WRITER_BLOCK);
    for (size_t i = 0; i < history->event_count; i++) {
        const struct history_event *event = &history->events[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "event", history_event_name(event->type));
        writer_text(json, "generated", history->surveys[event->survey].generated);
        put_name(json, history, "uuid", event->uuid);
        put_name(json, history, "serial", event->serial);
        put_name(json, history, "node", event->node);
        put_name(json, history, "pci", event->pci);
        put_name(json, history, "old_uuid", event->old_uuid);
        put_name(json, history, "old_serial", event->old_serial);
        put_name(json, history, "old_node", event->old_node);
        put_name(json, history, "old_pci", event->old_pci);
        writer_end(json);
    }
    writer_end(json);
}

void history_put_json(const struct history *history, struct strbuf *out_text)
{
    struct writer json = {.out = out_text};
    writer_map(&json, NULL, WRITER_BLOCK);
    writer_number(&json, "gpus_seen", (double)history->gpu_count);
    put_surveys(&json, history);
    put_gpus(&json, history);
    put_trends(&json, history);
    put_events(&json, history);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
}
