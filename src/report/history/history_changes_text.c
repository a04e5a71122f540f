/* Since when the figures of one GPU are different, as text for people. */
#include <math.h>

#include "markup/text.h"
#include "report/entries.h"
#include "report/history/history_changes.h"
#include "report/history/history_events.h"

enum { STATES_MAX = 80, NAME_CHARS = 60, TEXT_CHARS = 200 };

static void put_name(struct strbuf *out, const struct history *history, uint32_t symbol)
{
    text_put_clean(out, symbols_data(&history->symbols, symbol), NAME_CHARS);
}

static void put_head(struct strbuf *out, const struct history_changes *changes)
{
    const struct history *history = changes->history;
    const struct history_sighting *last = &changes->gpu->sightings[changes->gpu->count - 1];
    struct strbuf line = {0};
    put_name(&line, history, last->uuid);
    if (last->serial) {
        strbuf_puts(&line, " (serial ");
        put_name(&line, history, last->serial);
        strbuf_puts(&line, ")");
    }
    strbuf_puts(&line, ", ");
    put_name(&line, history, last->model);
    strbuf_puts(&line, ", last seen on ");
    put_name(&line, history, last->node);
    if (last->index >= 0)
        strbuf_printf(&line, ":%d", (int)last->index);
    strbuf_puts(&line, " ");
    put_name(&line, history, last->pci);
    report_end_line(out, NULL, &line, 0, 2);
}

/* Since when the GPU is an outlier without a break, if it is one. */
static void put_accused(struct strbuf *out, const struct history_changes *changes)
{
    const struct history_gpu *gpu = changes->gpu;
    size_t first = gpu->count, seen = 0;
    for (size_t i = gpu->count; i-- > 0;) {
        if (gpu->sightings[i].state == HISTORY_OUTLIER) {
            first = i;
            seen++;
        } else if (gpu->sightings[i].state != HISTORY_SAME)
            break;
    }
    if (!seen)
        return;
    const struct history_sighting *now = &gpu->sightings[first];
    struct strbuf line = {0};
    strbuf_printf(&line, "An outlier since %s, in ",
                  changes->history->surveys[now->survey].generated);
    report_put_count(&line, seen, "survey", "surveys");
    strbuf_printf(&line, ": %s, ", inventory_kind_name(now->kind));
    text_put_clean(&line, symbols_data(&changes->history->symbols, now->cause), TEXT_CHARS);
    report_end_line(out, NULL, &line, 0, 2);
}

static void put_states(struct strbuf *out, const struct history_changes *changes)
{
    const struct history *history = changes->history;
    const size_t count = history->survey_count;
    const size_t from = count > STATES_MAX ? count - STATES_MAX : 0;
    strbuf_printf(out, "%zu survey%s", count, count == 1 ? "" : "s");
    if (count)
        strbuf_printf(out, " from %s to %s", history->surveys[0].generated,
                      history->surveys[count - 1].generated);
    strbuf_puts(out, "\n  ");
    for (size_t i = from; i < count; i++) {
        char letter = history_letter(history_state_at(history, changes->gpu, (uint32_t)i));
        strbuf_append(out, &letter, 1);
    }
    strbuf_puts(out, "\n");
}

/* A GPU that moved has another slot, host and cooling since then. */
static void put_moves(struct strbuf *out, const struct history_changes *changes)
{
    const struct history *history = changes->history;
    for (size_t i = 0; i < history->event_count; i++) {
        const struct history_event *event = &history->events[i];
        struct strbuf line = {0};
        if (event->uuid != changes->gpu->sightings[0].uuid || event->type == HISTORY_GONE)
            continue;
        strbuf_printf(&line, "%s: %s, ", history->surveys[event->survey].generated,
                      history_event_name(event->type));
        put_name(&line, history, event->node);
        strbuf_puts(&line, " ");
        put_name(&line, history, event->pci);
        if (event->type == HISTORY_MOVED) {
            strbuf_puts(&line, " from ");
            put_name(&line, history, event->old_node);
            strbuf_puts(&line, " ");
            put_name(&line, history, event->old_pci);
        }
        report_end_line(out, NULL, &line, 0, 2);
    }
}

static void put_change(struct strbuf *out, const struct history_changes *changes,
                       const struct history_figure *figure, const struct history_change *change)
{
    const struct history *history = changes->history;
    const bool gradual = figure->course == HISTORY_GRADUAL && isfinite(change->value_before);
    const bool model = !isfinite(change->value_before);
    struct strbuf line = {0};
    strbuf_printf(&line, "%s %+.1f %%%s between %s and %s", figure->rule->metric,
                  100 * change->change, gradual ? ", slowly," : "",
                  history->surveys[change->before].generated,
                  history->surveys[change->after].generated);
    if (!model) {
        strbuf_puts(&line, ": from ");
        text_put_quantity(&line, change->value_before, figure->unit);
        strbuf_puts(&line, " to ");
        text_put_quantity(&line, change->value_after, figure->unit);
    }
    strbuf_printf(&line, "; confidence %s%.3f", change->confidence > 0.999 ? "over " : "",
                  fmin(change->confidence, 0.999));
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 6);
}

enum what { WORSE, BETTER, MODEL };

static void put_changes(struct strbuf *out, const struct history_changes *changes, enum what what)
{
    static const char *const titles[] = {
        [WORSE] = "Worse, at equal level of its model:",
        [BETTER] = "Better:",
        [MODEL] = "The usual GPU of its model changed, and this one with it:"};
    bool begun = false;
    for (size_t i = 0; i < changes->figure_count; i++) {
        const struct history_figure *figure = &changes->figures[i];
        const struct history_change *list = what == MODEL ? figure->model_changes : figure->changes;
        const size_t count = what == MODEL ? figure->model_change_count : figure->change_count;
        for (size_t k = 0; k < count; k++) {
            if (what != MODEL && history_change_is_worse(figure, &list[k]) != (what == WORSE))
                continue;
            if (!begun)
                strbuf_printf(out, "\n%s\n", titles[what]);
            begun = true;
            put_change(out, changes, figure, &list[k]);
        }
    }
}

static void put_rest(struct strbuf *out, const struct history_changes *changes,
                     enum history_course course, const char *title)
{
    struct strbuf line = {0};
    for (size_t i = 0; i < changes->figure_count; i++)
        if (changes->figures[i].course == course)
            strbuf_printf(&line, "%s%s (%zu value%s)", line.length ? ", " : "",
                          changes->figures[i].rule->metric, changes->figures[i].count,
                          changes->figures[i].count == 1 ? "" : "s");
    if (!line.length) {
        out->failed |= line.failed;
        return;
    }
    strbuf_printf(out, "\n%s\n  ", title);
    report_end_line(out, NULL, &line, 2, 2);
}

void history_changes_put_text(const struct history_changes *changes, struct strbuf *out_text)
{
    put_head(out_text, changes);
    put_states(out_text, changes);
    put_moves(out_text, changes);
    put_accused(out_text, changes);
    for (int what = WORSE; what <= MODEL; what++)
        put_changes(out_text, changes, (enum what)what);
    put_rest(out_text, changes, HISTORY_STEADY, "No change beyond the floor of the metric:");
    put_rest(out_text, changes, HISTORY_FEW, "Too few surveys to tell; 10 values are needed:");
    if (!changes->figure_count)
        strbuf_puts(out_text, "\nNo figure of this GPU was measured.\n");
}
