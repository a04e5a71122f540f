/* The history of GPUs as JSON. */
#include "report/history/history.h"
#include "report/history/history_events.h"
#include "report/history/history_trends.h"
#include "report/json_text.h"

static void put_name(struct json_text *json, const struct history *history, const char *key,
                     uint32_t symbol)
{
    json_text(json, key, symbols_data(&history->symbols, symbol));
}

static void put_surveys(struct json_text *json, const struct history *history)
{
    json_open(json, "surveys", '[');
    for (size_t i = 0; i < history->survey_count; i++) {
        const struct history_survey *survey = &history->surveys[i];
        json_open(json, NULL, '{');
        json_text(json, "file", survey->path);
        json_text(json, "generated", survey->generated);
        json_number(json, "gpus", survey->gpus);
        json_number(json, "measured", survey->measured);
        json_number(json, "unmeasured", survey->unmeasured);
        json_number(json, "outliers", survey->outliers);
        json_bool(json, "stranger", survey->stranger);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Each survey in which something was said about the GPU. */
static void put_findings(struct json_text *json, const struct history *history,
                         const struct history_gpu *gpu)
{
    json_open(json, "findings", '[');
    for (size_t i = 0; i < gpu->count; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (now->state < HISTORY_WATCHED)
            continue;
        json_open(json, NULL, '{');
        json_text(json, "generated", history->surveys[now->survey].generated);
        json_text(json, "kind",
                  now->state == HISTORY_OUTLIER   ? inventory_kind_name(now->kind)
                  : now->state == HISTORY_WATCHED ? "watch"
                                                  : "unmeasured");
        put_name(json, history, "metric", now->metric);
        put_name(json, history, "cause", now->cause);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_states(struct json_text *json, const struct history *history,
                       const struct history_gpu *gpu)
{
    struct strbuf states = {0};
    for (size_t i = 0; i < history->survey_count; i++) {
        char letter = history_letter(history_state_at(history, gpu, (uint32_t)i));
        strbuf_append(&states, &letter, 1);
    }
    json_text(json, "states", states.data);
    json->out->failed |= states.failed;
    strbuf_fini(&states);
}

static void put_gpus(struct json_text *json, const struct history *history)
{
    json_open(json, "gpus", '[');
    for (size_t i = 0; i < history->offender_count; i++) {
        const struct history_gpu *gpu = &history->gpus[i];
        const struct history_sighting *last = &gpu->sightings[gpu->count - 1];
        json_open(json, NULL, '{');
        put_name(json, history, "uuid", last->uuid);
        put_name(json, history, "serial", last->serial);
        put_name(json, history, "node", last->node);
        put_name(json, history, "pci", last->pci);
        put_name(json, history, "model", last->model);
        json_number(json, "seen", (double)gpu->count);
        json_number(json, "outlier", gpu->states[HISTORY_OUTLIER]);
        json_number(json, "watched", gpu->states[HISTORY_WATCHED]);
        json_number(json, "unmeasured", gpu->states[HISTORY_UNMEASURED]);
        json_number(json, "missing", gpu->states[HISTORY_MISSING]);
        put_states(json, history, gpu);
        put_findings(json, history, gpu);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_trends(struct json_text *json, const struct history *history)
{
    json_open(json, "trends", '[');
    for (size_t i = 0; i < history->trend_count; i++) {
        const struct history_trend *trend = &history->trends[i];
        json_open(json, NULL, '{');
        put_name(json, history, "uuid", trend->gpu ? trend->gpu->sightings[0].uuid : 0);
        put_name(json, history, "model", trend->model);
        put_name(json, history, "metric", trend->metric);
        json_number(json, "change", trend->change);
        json_number(json, "error", trend->error);
        json_number(json, "scatter", trend->scatter);
        json_number(json, "first", trend->first);
        json_number(json, "last", trend->last);
        json_number(json, "days", trend->days);
        json_number(json, "surveys", (double)trend->surveys);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_events(struct json_text *json, const struct history *history)
{
    json_open(json, "events", '[');
    for (size_t i = 0; i < history->event_count; i++) {
        const struct history_event *event = &history->events[i];
        json_open(json, NULL, '{');
        json_text(json, "event", history_event_name(event->type));
        json_text(json, "generated", history->surveys[event->survey].generated);
        put_name(json, history, "uuid", event->uuid);
        put_name(json, history, "serial", event->serial);
        put_name(json, history, "node", event->node);
        put_name(json, history, "pci", event->pci);
        put_name(json, history, "old_uuid", event->old_uuid);
        put_name(json, history, "old_serial", event->old_serial);
        put_name(json, history, "old_node", event->old_node);
        put_name(json, history, "old_pci", event->old_pci);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void history_put_json(const struct history *history, struct strbuf *out_text)
{
    struct json_text json = {.out = out_text};
    json_open(&json, NULL, '{');
    json_number(&json, "gpus_seen", (double)history->gpu_count);
    put_surveys(&json, history);
    put_gpus(&json, history);
    put_trends(&json, history);
    put_events(&json, history);
    json_close(&json, '}');
    strbuf_puts(out_text, "\n");
}
