/* The history of GPUs, and since when the figures of one GPU are different, as JSON. */
#include <math.h>

#include "report/history/history.h"
#include "report/history/history_changes.h"
#include "schema/writer.h"

static void json_put_symbol(struct writer *json, const struct history *history, const char *key,
                            uint32_t symbol)
{
    writer_text(json, key, symbols_data(&history->symbols, symbol));
}

static void json_put_surveys(struct writer *json, const struct history *history)
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
static void json_put_findings(struct writer *json, const struct history *history,
                              const struct history_gpu *gpu)
{
    writer_list(json, "findings", WRITER_BLOCK);
    for (size_t i = 0; i < gpu->count; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (now->state < HISTORY_WATCHED)
            continue;
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "generated", history->surveys[now->survey].generated);
        writer_text(json, "verdict",
                    now->state == HISTORY_OUTLIER   ? verdict_name(now->verdict)
                    : now->state == HISTORY_WATCHED ? "watch"
                                                    : "unmeasured");
        json_put_symbol(json, history, "metric", now->metric);
        json_put_symbol(json, history, "cause", now->cause);
        writer_end(json);
    }
    writer_end(json);
}

static void json_put_states(struct writer *json, const struct history *history,
                            const struct history_gpu *gpu)
{
    struct strbuf states = {0};
    for (size_t i = 0; i < history->survey_count; i++) {
        char letter = history_letter(history_state_at(history, gpu, (uint32_t)i));
        strbuf_append(&states, &letter, 1);
    }
    writer_text(json, "states", states.data);
    strbuf_fini(&states);
}

static void json_put_gpus(struct writer *json, const struct history *history)
{
    writer_list(json, "gpus", WRITER_BLOCK);
    for (size_t i = 0; i < history->offender_count; i++) {
        const struct history_gpu *gpu = &history->gpus[i];
        const struct history_sighting *last = &gpu->sightings[gpu->count - 1];
        writer_map(json, NULL, WRITER_BLOCK);
        json_put_symbol(json, history, "uuid", last->uuid);
        json_put_symbol(json, history, "serial", last->serial);
        json_put_symbol(json, history, "node", last->node);
        json_put_symbol(json, history, "pci", last->pci);
        json_put_symbol(json, history, "model", last->model);
        writer_number(json, "seen", (double)gpu->count);
        writer_number(json, "outlier", gpu->states[HISTORY_OUTLIER]);
        writer_number(json, "watched", gpu->states[HISTORY_WATCHED]);
        writer_number(json, "unmeasured", gpu->states[HISTORY_UNMEASURED]);
        writer_number(json, "missing", gpu->states[HISTORY_MISSING]);
        json_put_states(json, history, gpu);
        json_put_findings(json, history, gpu);
        writer_end(json);
    }
    writer_end(json);
}

static void json_put_trends(struct writer *json, const struct history *history)
{
    writer_list(json, "trends", WRITER_BLOCK);
    for (size_t i = 0; i < history->trend_count; i++) {
        const struct history_trend *trend = &history->trends[i];
        writer_map(json, NULL, WRITER_BLOCK);
        json_put_symbol(json, history, "uuid", trend->gpu ? trend->gpu->sightings[0].uuid : 0);
        json_put_symbol(json, history, "model", trend->model);
        json_put_symbol(json, history, "metric", trend->metric);
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

static void json_put_events(struct writer *json, const struct history *history)
{
    writer_list(json, "events", WRITER_BLOCK);
    for (size_t i = 0; i < history->event_count; i++) {
        const struct history_event *event = &history->events[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "event", history_event_name(event->type));
        writer_text(json, "generated", history->surveys[event->survey].generated);
        json_put_symbol(json, history, "uuid", event->uuid);
        json_put_symbol(json, history, "serial", event->serial);
        json_put_symbol(json, history, "node", event->node);
        json_put_symbol(json, history, "pci", event->pci);
        json_put_symbol(json, history, "old_uuid", event->old_uuid);
        json_put_symbol(json, history, "old_serial", event->old_serial);
        json_put_symbol(json, history, "old_node", event->old_node);
        json_put_symbol(json, history, "old_pci", event->old_pci);
        writer_end(json);
    }
    writer_end(json);
}

void history_put_json(const struct history *history, struct strbuf *out_text)
{
    struct writer json = {.out = out_text};
    writer_map(&json, NULL, WRITER_BLOCK);
    writer_number(&json, "gpus_seen", (double)history->gpu_count);
    json_put_surveys(&json, history);
    json_put_gpus(&json, history);
    json_put_trends(&json, history);
    json_put_events(&json, history);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
}

static void json_put_changes(struct writer *json, const struct history_changes *changes,
                             const struct history_figure *figure, bool model)
{
    const struct history_change *list = model ? figure->model_changes : figure->changes;
    const size_t count = model ? figure->model_change_count : figure->change_count;
    writer_list(json, model ? "model_changes" : "changes", WRITER_BLOCK);
    for (size_t i = 0; i < count; i++) {
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "before", changes->history->surveys[list[i].before].generated);
        writer_text(json, "after", changes->history->surveys[list[i].after].generated);
        writer_number(json, "change", list[i].change);
        writer_number(json, "value_before", list[i].value_before);
        writer_number(json, "value_after", list[i].value_after);
        writer_number(json, "confidence", list[i].confidence);
        writer_bool(json, "worse", history_change_is_worse(figure, &list[i]));
        writer_end(json);
    }
    writer_end(json);
}

static void json_put_values(struct writer *json, const struct history_changes *changes,
                            const struct history_figure *figure)
{
    writer_list(json, "values", WRITER_BLOCK);
    for (size_t i = 0; i < figure->count; i++) {
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "generated",
                    changes->history->surveys[figure->points[i].survey].generated);
        writer_number(json, "value", figure->values[i]);
        writer_number(json, "if_as_model", figure->levels[i]);
        writer_end(json);
    }
    writer_end(json);
}

void history_changes_put_json(const struct history_changes *changes, struct strbuf *out_text)
{
    const struct symbols *symbols = &changes->history->symbols;
    const struct history_sighting *last = &changes->gpu->sightings[changes->gpu->count - 1];
    struct writer json = {.out = out_text};
    writer_map(&json, NULL, WRITER_BLOCK);
    writer_text(&json, "uuid", symbols_data(symbols, last->uuid));
    writer_text(&json, "serial", symbols_data(symbols, last->serial));
    writer_text(&json, "node", symbols_data(symbols, last->node));
    writer_text(&json, "pci", symbols_data(symbols, last->pci));
    writer_number(&json, "index", last->index < 0 ? NAN : last->index);
    writer_text(&json, "model", symbols_data(symbols, last->model));
    writer_list(&json, "figures", WRITER_BLOCK);
    for (size_t i = 0; i < changes->figure_count; i++) {
        const struct history_figure *figure = &changes->figures[i];
        writer_map(&json, NULL, WRITER_BLOCK);
        writer_text(&json, "metric", figure->rule->metric);
        writer_text(&json, "unit", figure->unit);
        static const char *const names[] = {"few", "steady", "steps", "gradual"};
        writer_text(&json, "course", names[figure->course]);
        json_put_changes(&json, changes, figure, false);
        json_put_changes(&json, changes, figure, true);
        json_put_values(&json, changes, figure);
        writer_end(&json);
    }
    writer_end(&json);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
}
