/* Since when the figures of one GPU are different, as JSON. */
#include <math.h>

#include "report/history/history_changes.h"
#include "report/json_text.h"

static const char *course_name(enum history_course course)
{
    static const char *const names[] = {"few", "steady", "steps", "gradual"};
    return names[course];
}

static void put_changes(struct json_text *json, const struct history_changes *changes,
                        const struct history_figure *figure, bool model)
{
    const struct history_change *list = model ? figure->model_changes : figure->changes;
    const size_t count = model ? figure->model_change_count : figure->change_count;
    json_open(json, model ? "model_changes" : "changes", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "before", changes->history->surveys[list[i].before].generated);
        json_text(json, "after", changes->history->surveys[list[i].after].generated);
        json_number(json, "change", list[i].change);
        json_number(json, "value_before", list[i].value_before);
        json_number(json, "value_after", list[i].value_after);
        json_number(json, "confidence", list[i].confidence);
        json_bool(json, "worse", history_change_is_worse(figure, &list[i]));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void put_values(struct json_text *json, const struct history_changes *changes,
                       const struct history_figure *figure)
{
    json_open(json, "values", '[');
    for (size_t i = 0; i < figure->count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "generated", changes->history->surveys[figure->points[i].survey].generated);
        json_number(json, "value", figure->values[i]);
        json_number(json, "if_as_model", figure->levels[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void history_changes_put_json(const struct history_changes *changes, struct strbuf *out_text)
{
    const struct symbols *symbols = &changes->history->symbols;
    const struct history_sighting *last = &changes->gpu->sightings[changes->gpu->count - 1];
    struct json_text json = {.out = out_text};
    json_open(&json, NULL, '{');
    json_text(&json, "uuid", symbols_data(symbols, last->uuid));
    json_text(&json, "serial", symbols_data(symbols, last->serial));
    json_text(&json, "node", symbols_data(symbols, last->node));
    json_text(&json, "pci", symbols_data(symbols, last->pci));
    json_number(&json, "index", last->index < 0 ? NAN : last->index);
    json_text(&json, "model", symbols_data(symbols, last->model));
    json_open(&json, "figures", '[');
    for (size_t i = 0; i < changes->figure_count; i++) {
        const struct history_figure *figure = &changes->figures[i];
        json_open(&json, NULL, '{');
        json_text(&json, "metric", figure->rule->metric);
        json_text(&json, "unit", figure->unit);
        json_text(&json, "course", course_name(figure->course));
        put_changes(&json, changes, figure, false);
        put_changes(&json, changes, figure, true);
        put_values(&json, changes, figure);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    strbuf_puts(out_text, "\n");
}
