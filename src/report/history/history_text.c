/* The history of GPUs, and since when the figures of one GPU are different, as text for people. */
#include <math.h>

#include "base/clock.h"
#include "markup/text.h"
#include "report/entries.h"
#include "report/history/history.h"
#include "report/history/history_changes.h"

/* Keeps the text short; the JSON has the rest. STATES_MAX: the last surveys, one letter each. */
enum { ENTRIES_MAX = 100, SURVEYS_MAX = 30, STATES_MAX = 40, NAME_CHARS = 40, TEXT_CHARS = 200 };

static void text_put_symbol(struct strbuf *out, const struct history *history, uint32_t symbol)
{
    text_put_clean(out, symbols_data(&history->symbols, symbol), 50);
}

static void text_put_place(struct strbuf *out, const struct history *history, uint32_t node,
                           uint32_t pci)
{
    text_put_symbol(out, history, node);
    strbuf_puts(out, " ");
    text_put_symbol(out, history, pci);
}

/* "GPU-... (serial 165...)" */
static void text_put_card(struct strbuf *out, const struct history *history, uint32_t uuid,
                          uint32_t serial)
{
    text_put_symbol(out, history, uuid);
    if (!serial)
        return;
    strbuf_puts(out, " (serial ");
    text_put_symbol(out, history, serial);
    strbuf_puts(out, ")");
}

static void text_put_more(struct strbuf *out, size_t count, size_t shown)
{
    if (count > shown)
        strbuf_printf(out, "  and %zu more\n", count - shown);
}

static void text_put_surveys(struct strbuf *out, const struct history *history)
{
    const size_t count = history->survey_count;
    const size_t from = count > SURVEYS_MAX ? count - SURVEYS_MAX : 0;
    strbuf_puts(out, "\nSurveys:\n");
    if (from)
        strbuf_printf(out, "  %zu earlier ones\n", from);
    for (size_t i = from; i < count; i++) {
        const struct history_survey *survey = &history->surveys[i];
        struct strbuf line = {0};
        strbuf_printf(&line, "%zu  %s  ", i + 1, survey->generated);
        report_put_count(&line, survey->gpus, "GPU", "GPUs");
        strbuf_printf(&line, ", %u measured, ", survey->measured);
        report_put_count(&line, survey->outliers, "outlier", "outliers");
        strbuf_puts(&line, "  ");
        text_put_clean(&line, survey->path, TEXT_CHARS);
        if (survey->stranger)
            strbuf_puts(&line, "; no GPU in common with the surveys before: another cluster?");
        strbuf_puts(out, "  ");
        report_end_line(out, NULL, &line, 2, 6);
    }
}

static void text_put_count_of(struct strbuf *line, uint32_t count, const char *what)
{
    if (count)
        strbuf_printf(line, "%s%s in %u", line->length ? ", " : "", what, count);
}

/* When it was last an outlier, or else the last failure to measure, or else the last watch. */
static void text_put_last_finding(struct strbuf *line, const struct history *history,
                                  const struct history_gpu *gpu)
{
    const struct history_sighting *last = NULL;
    for (size_t i = 0; i < gpu->count; i++) {
        const struct history_sighting *now = &gpu->sightings[i];
        if (now->state >= HISTORY_WATCHED && (!last || now->state >= last->state))
            last = now;
    }
    if (!last)
        return;
    strbuf_printf(line, "; %s: ", history->surveys[last->survey].generated);
    if (last->state == HISTORY_OUTLIER)
        strbuf_printf(line, "%s, ", verdict_name(last->verdict));
    if (last->metric) {
        text_put_symbol(line, history, last->metric);
        strbuf_puts(line, ", ");
    }
    text_put_clean(line, symbols_data(&history->symbols, last->cause), TEXT_CHARS);
}

static void text_put_offender(struct strbuf *out, const struct history *history,
                              const struct history_gpu *gpu)
{
    const size_t surveys = history->survey_count;
    const struct history_sighting *last = &gpu->sightings[gpu->count - 1];
    struct strbuf where = {0}, what = {0};
    strbuf_puts(out, "  ");
    for (size_t i = surveys > STATES_MAX ? surveys - STATES_MAX : 0; i < surveys; i++) {
        char letter = history_letter(history_state_at(history, gpu, (uint32_t)i));
        strbuf_append(out, &letter, 1);
    }
    text_put_place(&where, history, last->node, last->pci);
    strbuf_puts(&where, " ");
    text_put_card(&where, history, last->uuid, last->serial);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &where, (unsigned)(surveys > STATES_MAX ? STATES_MAX : surveys) + 4,
                    6);
    text_put_count_of(&what, gpu->states[HISTORY_OUTLIER], "outlier");
    text_put_count_of(&what, gpu->states[HISTORY_UNMEASURED], "not measured");
    text_put_count_of(&what, gpu->states[HISTORY_MISSING], "missing");
    text_put_count_of(&what, gpu->states[HISTORY_WATCHED], "watched");
    strbuf_puts(&what, " of ");
    report_put_count(&what, gpu->count + gpu->states[HISTORY_MISSING] - gpu->states[HISTORY_SAME],
                     "survey", "surveys");
    text_put_last_finding(&what, history, gpu);
    strbuf_puts(out, "      ");
    report_end_line(out, NULL, &what, 6, 8);
}

static void text_put_offenders(struct strbuf *out, const struct history *history)
{
    if (!history->offender_count)
        return;
    strbuf_puts(out, "\nFlagged, not measured, missing or watched, most often first:\n");
    for (size_t i = 0; i < history->offender_count && i < ENTRIES_MAX; i++)
        text_put_offender(out, history, &history->gpus[i]);
    text_put_more(out, history->offender_count, ENTRIES_MAX);
    strbuf_puts(out, "  One letter per survey, the last one on the right: O outlier, w watched, "
                     "u not measured,\n  x missing on its node, b busy, . fine, = not measured "
                     "again, - node not surveyed\n");
}

static void text_put_trend(struct strbuf *out, const struct history *history,
                           const struct history_trend *trend)
{
    const struct symbols *symbols = &history->symbols;
    const char *unit = trend->metric < history->unit_room
                           ? symbols_data(symbols, history->units[trend->metric])
                           : NULL;
    struct strbuf line = {0};
    if (trend->gpu) {
        const struct history_sighting *last = &trend->gpu->sightings[trend->gpu->count - 1];
        text_put_place(&line, history, last->node, last->pci);
        strbuf_puts(&line, " ");
        text_put_card(&line, history, last->uuid, last->serial);
    } else {
        strbuf_puts(&line, "the usual GPU of ");
        text_put_symbol(&line, history, trend->model);
    }
    strbuf_puts(&line, ": ");
    text_put_symbol(&line, history, trend->metric);
    strbuf_printf(&line,
                  " %+.1f %% in %.1f days (standard error %.1f %%, scatter of a survey %.2f %%)",
                  100 * trend->change, trend->days, 100 * trend->error, 100 * trend->scatter);
    if (isfinite(trend->first)) {
        strbuf_puts(&line, ", from ");
        text_put_quantity(&line, trend->first, unit);
        strbuf_puts(&line, " to ");
        text_put_quantity(&line, trend->last, unit);
    }
    strbuf_printf(&line, " in %zu surveys", trend->surveys);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 4);
}

static void text_put_trends(struct strbuf *out, const struct history *history)
{
    if (!history->trend_count)
        return;
    strbuf_puts(out, "\nGetting steadily worse, beyond the scatter of the surveys:\n");
    for (size_t i = 0; i < history->trend_count && i < ENTRIES_MAX; i++)
        text_put_trend(out, history, &history->trends[i]);
    text_put_more(out, history->trend_count, ENTRIES_MAX);
}

static void text_put_event(struct strbuf *out, const struct history *history,
                           const struct history_event *event)
{
    struct strbuf line = {0};
    strbuf_printf(&line, "%s  ", history->surveys[event->survey].generated);
    if (event->type == HISTORY_NODE) {
        text_put_symbol(&line, history, event->node);
        strbuf_puts(&line, ": surveyed for the first time");
    } else {
        text_put_place(&line, history, event->node, event->pci);
        strbuf_puts(&line, ": ");
        text_put_card(&line, history, event->uuid, event->serial);
    }
    switch (event->type) {
    case HISTORY_MOVED:
        strbuf_puts(&line, " moved here from ");
        text_put_place(&line, history, event->old_node, event->old_pci);
        break;
    case HISTORY_SWAPPED:
        strbuf_puts(&line, " is in the place of ");
        text_put_card(&line, history, event->old_uuid, event->old_serial);
        break;
    case HISTORY_NEW:
        strbuf_puts(&line, " is new");
        break;
    case HISTORY_GONE:
        strbuf_puts(&line, " is gone");
        break;
    case HISTORY_SERIAL:
        strbuf_puts(&line, " had the serial number ");
        text_put_symbol(&line, history, event->old_serial);
        break;
    case HISTORY_BOARD:
        strbuf_puts(&line, " has the serial number of ");
        text_put_symbol(&line, history, event->old_uuid);
        break;
    case HISTORY_DIE:
        strbuf_puts(&line, " is not the die it was");
        break;
    default:
        break;
    }
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 4);
}

static void text_put_events(struct strbuf *out, const struct history *history)
{
    const size_t count = history->event_count;
    const size_t from = count > ENTRIES_MAX ? count - ENTRIES_MAX : 0;
    strbuf_puts(out, count ? "\nMoved, swapped, new and gone:\n" : "");
    if (from)
        strbuf_printf(out, "  %zu earlier ones\n", from);
    for (size_t i = from; i < count; i++)
        text_put_event(out, history, &history->events[i]);
}

void history_put_text(const struct history *history, struct strbuf *out_text)
{
    report_put_count(out_text, history->survey_count, "survey", "surveys");
    strbuf_puts(out_text, ", ");
    report_put_count(out_text, history->gpu_count, "GPU", "GPUs");
    strbuf_puts(out_text, "\n");
    text_put_surveys(out_text, history);
    text_put_offenders(out_text, history);
    text_put_trends(out_text, history);
    text_put_events(out_text, history);
    if (history->survey_count < 2)
        strbuf_puts(out_text, "\nOne survey has no history: nothing can be compared yet.\n");
    else if (!history->offender_count && !history->trend_count && !history->event_count)
        strbuf_puts(out_text, "\nNo GPU was flagged or watched, and no card moved.\n");
}

enum { CHANGES_STATES_MAX = 80, CHANGES_NAME_CHARS = 60 };

static void changes_text_put_symbol(struct strbuf *out, const struct history *history,
                                    uint32_t symbol)
{
    text_put_clean(out, symbols_data(&history->symbols, symbol), CHANGES_NAME_CHARS);
}

static void changes_text_put_head(struct strbuf *out, const struct history_changes *changes)
{
    const struct history *history = changes->history;
    const struct history_sighting *last = &changes->gpu->sightings[changes->gpu->count - 1];
    struct strbuf line = {0};
    changes_text_put_symbol(&line, history, last->uuid);
    if (last->serial) {
        strbuf_puts(&line, " (serial ");
        changes_text_put_symbol(&line, history, last->serial);
        strbuf_puts(&line, ")");
    }
    strbuf_puts(&line, ", ");
    changes_text_put_symbol(&line, history, last->model);
    strbuf_puts(&line, ", last seen on ");
    changes_text_put_symbol(&line, history, last->node);
    if (last->index >= 0)
        strbuf_printf(&line, ":%d", (int)last->index);
    strbuf_puts(&line, " ");
    changes_text_put_symbol(&line, history, last->pci);
    report_end_line(out, NULL, &line, 0, 2);
}

/* Since when the GPU is an outlier without a break, if it is one. */
static void changes_text_put_outlier(struct strbuf *out, const struct history_changes *changes)
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
    strbuf_printf(&line, ": %s, ", verdict_name(now->verdict));
    text_put_clean(&line, symbols_data(&changes->history->symbols, now->cause), TEXT_CHARS);
    report_end_line(out, NULL, &line, 0, 2);
}

/* A GPU that moved has another slot, host and cooling since then. */
static void changes_text_put_moves(struct strbuf *out, const struct history_changes *changes)
{
    const struct history *history = changes->history;
    for (size_t i = 0; i < history->event_count; i++) {
        const struct history_event *event = &history->events[i];
        struct strbuf line = {0};
        if (event->uuid != changes->gpu->sightings[0].uuid || event->type == HISTORY_GONE)
            continue;
        strbuf_printf(&line, "%s: %s, ", history->surveys[event->survey].generated,
                      history_event_name(event->type));
        changes_text_put_symbol(&line, history, event->node);
        strbuf_puts(&line, " ");
        changes_text_put_symbol(&line, history, event->pci);
        if (event->type == HISTORY_MOVED) {
            strbuf_puts(&line, " from ");
            changes_text_put_symbol(&line, history, event->old_node);
            strbuf_puts(&line, " ");
            changes_text_put_symbol(&line, history, event->old_pci);
        }
        report_end_line(out, NULL, &line, 0, 2);
    }
}

static void changes_text_put_change(struct strbuf *out, const struct history_changes *changes,
                                    const struct history_figure *figure,
                                    const struct history_change *change)
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

enum change_list { CHANGES_WORSE, CHANGES_BETTER, CHANGES_MODEL };

static void changes_text_put_changes(struct strbuf *out, const struct history_changes *changes,
                                     enum change_list what)
{
    static const char *const titles[] = {
        [CHANGES_WORSE] = "Worse, at equal level of its model:",
        [CHANGES_BETTER] = "Better:",
        [CHANGES_MODEL] = "The usual GPU of its model changed, and this one with it:"};
    bool begun = false;
    for (size_t i = 0; i < changes->figure_count; i++) {
        const struct history_figure *figure = &changes->figures[i];
        const struct history_change *list =
            what == CHANGES_MODEL ? figure->model_changes : figure->changes;
        const size_t count =
            what == CHANGES_MODEL ? figure->model_change_count : figure->change_count;
        for (size_t k = 0; k < count; k++) {
            if (what != CHANGES_MODEL &&
                history_change_is_worse(figure, &list[k]) != (what == CHANGES_WORSE))
                continue;
            if (!begun)
                strbuf_printf(out, "\n%s\n", titles[what]);
            begun = true;
            changes_text_put_change(out, changes, figure, &list[k]);
        }
    }
}

static void changes_text_put_rest(struct strbuf *out, const struct history_changes *changes,
                                  enum history_course course, const char *title)
{
    struct strbuf line = {0};
    for (size_t i = 0; i < changes->figure_count; i++)
        if (changes->figures[i].course == course)
            strbuf_printf(&line, "%s%s (%zu value%s)", line.length ? ", " : "",
                          changes->figures[i].rule->metric, changes->figures[i].count,
                          changes->figures[i].count == 1 ? "" : "s");
    if (!line.length)
        return;
    strbuf_printf(out, "\n%s\n  ", title);
    report_end_line(out, NULL, &line, 2, 2);
}

void history_changes_put_text(const struct history_changes *changes, struct strbuf *out_text)
{
    changes_text_put_head(out_text, changes);
    const struct history *history = changes->history;
    const size_t count = history->survey_count;
    const size_t from = count > CHANGES_STATES_MAX ? count - CHANGES_STATES_MAX : 0;
    strbuf_printf(out_text, "%zu survey%s", count, count == 1 ? "" : "s");
    if (count)
        strbuf_printf(out_text, " from %s to %s", history->surveys[0].generated,
                      history->surveys[count - 1].generated);
    strbuf_puts(out_text, "\n  ");
    for (size_t i = from; i < count; i++) {
        char letter = history_letter(history_state_at(history, changes->gpu, (uint32_t)i));
        strbuf_append(out_text, &letter, 1);
    }
    strbuf_puts(out_text, "\n");
    changes_text_put_moves(out_text, changes);
    changes_text_put_outlier(out_text, changes);
    for (int what = CHANGES_WORSE; what <= CHANGES_MODEL; what++)
        changes_text_put_changes(out_text, changes, (enum change_list)what);
    changes_text_put_rest(out_text, changes, HISTORY_STEADY,
                          "No change beyond the floor of the metric:");
    changes_text_put_rest(out_text, changes, HISTORY_FEW,
                          "Too few surveys to tell; 10 values are needed:");
    if (!changes->figure_count)
        strbuf_puts(out_text, "\nNo figure of this GPU was measured.\n");
}
