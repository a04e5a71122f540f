/* Since when the figures of one GPU are different, as JSON. */
#include <math.h>

#include "report/history/history_changes.h"
#include "schema/writer.h"

static const char *course_name(enum history_course course)
{
    static const char *const names[] = {"few", "steady", "steps", "gradual"};
    return names[course];
}

static void put_changes(struct writer *json, const struct history_changes *changes,
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

static void put_values(struct writer *json, const struct history_changes *changes,
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
        writer_text(&json, "course", course_name(figure->course));
        put_changes(&json, changes, figure, false);
        put_changes(&json, changes, figure, true);
        put_values(&json, changes, figure);
        writer_end(&json);
    }
    writer_end(&json);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
}
