/* The history of GPUs as text for people. */
#include <math.h>

#include "base/clock.h"
#include "markup/text.h"
#include "report/entries.h"
#include "report/history/history.h"
#include "report/history/history_events.h"
#include "report/history/history_trends.h"

/* Keeps the text short; the JSON has the rest. STATES_MAX: the last surveys, one letter each. */
enum { ENTRIES_MAX = 100, SURVEYS_MAX = 30, STATES_MAX = 40, NAME_CHARS = 40, TEXT_CHARS = 200 };

static void put_name(struct strbuf *out, const struct history *history, uint32_t symbol)
{
    text_put_clean(out, symbols_data(&history->symbols, symbol), 50);
}

static void put_place(struct strbuf *out, const struct history *history, uint32_t node,
                      uint32_t pci)
{
    put_name(out, history, node);
    strbuf_puts(out, " ");
    put_name(out, history, pci);
}

/* "GPU-... (serial 165...)" */
static void put_card(struct strbuf *out, const struct history *history, uint32_t uuid,
                     uint32_t serial)
{
    put_name(out, history, uuid);
    if (!serial)
        return;
    strbuf_puts(out, " (serial ");
    put_name(out, history, serial);
    strbuf_puts(out, ")");
}

static void put_more(struct strbuf *out, size_t count, size_t shown)
{
    if (count > shown)
        strbuf_printf(out, "  and %zu more\n", count - shown);
}

static void put_surveys(struct strbuf *out, const struct history *history)
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

static void put_count_of(struct strbuf *line, uint32_t count, const char *what)
{
    if (count)
        strbuf_printf(line, "%s%s in %u", line->length ? ", " : "", what, count);
}

/* The last accusation, or else the last failure to measure, or else the last watch. */
static void put_last_finding(struct strbuf *line, const struct history *history,
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
        strbuf_printf(line, "%s, ", inventory_kind_name(last->kind));
    if (last->metric) {
        put_name(line, history, last->metric);
        strbuf_puts(line, ", ");
    }
    text_put_clean(line, symbols_data(&history->symbols, last->cause), TEXT_CHARS);
}

static void put_offender(struct strbuf *out, const struct history *history,
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
    put_place(&where, history, last->node, last->pci);
    strbuf_puts(&where, " ");
    put_card(&where, history, last->uuid, last->serial);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &where, (unsigned)(surveys > STATES_MAX ? STATES_MAX : surveys) + 4,
                    6);
    put_count_of(&what, gpu->states[HISTORY_OUTLIER], "outlier");
    put_count_of(&what, gpu->states[HISTORY_UNMEASURED], "not measured");
    put_count_of(&what, gpu->states[HISTORY_MISSING], "missing");
    put_count_of(&what, gpu->states[HISTORY_WATCHED], "watched");
    strbuf_puts(&what, " of ");
    report_put_count(&what, gpu->count + gpu->states[HISTORY_MISSING] - gpu->states[HISTORY_SAME],
                     "survey", "surveys");
    put_last_finding(&what, history, gpu);
    strbuf_puts(out, "      ");
    report_end_line(out, NULL, &what, 6, 8);
}

static void put_offenders(struct strbuf *out, const struct history *history)
{
    if (!history->offender_count)
        return;
    strbuf_puts(out, "\nAccused, not measured, missing or watched, most often first:\n");
    for (size_t i = 0; i < history->offender_count && i < ENTRIES_MAX; i++)
        put_offender(out, history, &history->gpus[i]);
    put_more(out, history->offender_count, ENTRIES_MAX);
    strbuf_puts(out, "  One letter per survey, the last one on the right: O outlier, w watched, "
                     "u not measured,\n  x missing on its node, b busy, . fine, = not measured "
                     "again, - node not surveyed\n");
}

static void put_trend(struct strbuf *out, const struct history *history,
                      const struct history_trend *trend)
{
    const struct symbols *symbols = &history->symbols;
    const char *unit = trend->metric < history->unit_room
                           ? symbols_data(symbols, history->units[trend->metric])
                           : NULL;
    struct strbuf line = {0};
    if (trend->gpu) {
        const struct history_sighting *last = &trend->gpu->sightings[trend->gpu->count - 1];
        put_place(&line, history, last->node, last->pci);
        strbuf_puts(&line, " ");
        put_card(&line, history, last->uuid, last->serial);
    } else {
        strbuf_puts(&line, "the usual GPU of ");
        put_name(&line, history, trend->model);
    }
    strbuf_puts(&line, ": ");
    put_name(&line, history, trend->metric);
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

static void put_trends(struct strbuf *out, const struct history *history)
{
    if (!history->trend_count)
        return;
    strbuf_puts(out, "\nGetting steadily worse, beyond the scatter of the surveys:\n");
    for (size_t i = 0; i < history->trend_count && i < ENTRIES_MAX; i++)
        put_trend(out, history, &history->trends[i]);
    put_more(out, history->trend_count, ENTRIES_MAX);
}

static void put_event(struct strbuf *out, const struct history *history,
                      const struct history_event *event)
{
    struct strbuf line = {0};
    strbuf_printf(&line, "%s  ", history->surveys[event->survey].generated);
    if (event->type == HISTORY_NODE) {
        put_name(&line, history, event->node);
        strbuf_puts(&line, ": surveyed for the first time");
    } else {
        put_place(&line, history, event->node, event->pci);
        strbuf_puts(&line, ": ");
        put_card(&line, history, event->uuid, event->serial);
    }
    switch (event->type) {
    case HISTORY_MOVED:
        strbuf_puts(&line, " moved here from ");
        put_place(&line, history, event->old_node, event->old_pci);
        break;
    case HISTORY_SWAPPED:
        strbuf_puts(&line, " is in the place of ");
        put_card(&line, history, event->old_uuid, event->old_serial);
        break;
    case HISTORY_NEW:
        strbuf_puts(&line, " is new");
        break;
    case HISTORY_GONE:
        strbuf_puts(&line, " is gone");
        break;
    case HISTORY_SERIAL:
        strbuf_puts(&line, " had the serial number ");
        put_name(&line, history, event->old_serial);
        break;
    case HISTORY_BOARD:
        strbuf_puts(&line, " has the serial number of ");
        put_name(&line, history, event->old_uuid);
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

static void put_events(struct strbuf *out, const struct history *history)
{
    const size_t count = history->event_count;
    const size_t from = count > ENTRIES_MAX ? count - ENTRIES_MAX : 0;
    strbuf_puts(out, count ? "\nMoved, swapped, new and gone:\n" : "");
    if (from)
        strbuf_printf(out, "  %zu earlier ones\n", from);
    for (size_t i = from; i < count; i++)
        put_event(out, history, &history->events[i]);
}

void history_put_text(const struct history *history, struct strbuf *out_text)
{
    report_put_count(out_text, history->survey_count, "survey", "surveys");
    strbuf_puts(out_text, ", ");
    report_put_count(out_text, history->gpu_count, "GPU", "GPUs");
    strbuf_puts(out_text, "\n");
    put_surveys(out_text, history);
    put_offenders(out_text, history);
    put_trends(out_text, history);
    put_events(out_text, history);
    if (history->survey_count < 2)
        strbuf_puts(out_text, "\nOne survey has no history: nothing can be compared yet.\n");
    else if (!history->offender_count && !history->trend_count && !history->event_count)
        strbuf_puts(out_text, "\nNo GPU was accused or watched, and no card moved.\n");
}
