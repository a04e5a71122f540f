/* Several inventories of the same GPUs over time: sorts the sightings and counts offences. */
#include "report/history/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/history/history_events.h"
#include "report/history/history_trends.h"
#include "report/history/history_visits.h"

static int by_time(const void *left, const void *right)
{
    const struct history_survey *a = left, *b = right;
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int by_gpu(const void *left, const void *right)
{
    const struct history_sighting *a = left, *b = right;
    if (a->uuid != b->uuid)
        return a->uuid < b->uuid ? -1 : 1;
    return (a->survey > b->survey) - (a->survey < b->survey);
}

/* Numbers the surveys by time, in the sightings too. */
static int sort_surveys(struct history *history)
{
    uint32_t *numbers = mem_array(history->survey_count, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    if (history->survey_count)
        qsort(history->surveys, history->survey_count, sizeof *history->surveys, by_time);
    for (size_t i = 0; i < history->survey_count; i++)
        numbers[history->surveys[i].number] = (uint32_t)i;
    for (size_t i = 0; i < history->survey_count; i++)
        history->surveys[i].number = (uint32_t)i;
    for (size_t i = 0; i < history->sighting_count; i++)
        history->sightings[i].survey = numbers[history->sightings[i].survey];
    for (size_t i = 0; i < history->visit_count; i++)
        history->visits[i].survey = numbers[history->visits[i].survey];
    free(numbers);
    return 0;
}

/* A rolling survey keeps the last result of nodes that were not idle: such a result counts once.
 * Two measurements do not agree in all digits of several figures; sizes and counts may agree. */
static bool is_same_result(const struct history *history, const struct history_sighting *a,
                           const struct history_sighting *b)
{
    enum { FRACTIONS_MIN = 3 };
    size_t fractions = 0;
    if (a->value_count != b->value_count || a->uuid != b->uuid)
        return false;
    for (size_t i = 0; i < a->value_count; i++) {
        const struct history_value *x = &history->values[a->value + i];
        const struct history_value *y = &history->values[b->value + i];
        if (x->metric != y->metric || x->value != y->value)
            return false;
        fractions += x->value != floor(x->value);
    }
    return fractions >= FRACTIONS_MIN;
}

/* Sorts by GPU, and leaves out a GPU that one inventory lists twice. */
static void sort_sightings(struct history *history)
{
    struct history_sighting *all = history->sightings;
    size_t kept = 0;
    if (history->sighting_count)
        qsort(all, history->sighting_count, sizeof *all, by_gpu);
    for (size_t i = 0; i < history->sighting_count; i++)
        if (!kept || by_gpu(&all[kept - 1], &all[i]) != 0)
            all[kept++] = all[i];
    history->sighting_count = kept;
    for (size_t i = kept; i-- > 1;)
        if (is_same_result(history, &all[i - 1], &all[i]))
            all[i].state = HISTORY_SAME;
}

static int group_gpus(struct history *history)
{
    const struct history_sighting *all = history->sightings;
    history->gpus = mem_array(history->sighting_count, sizeof *history->gpus);
    if (!history->gpus)
        return -ENOMEM;
    for (size_t i = 0, end; i < history->sighting_count; i = end) {
        for (end = i + 1; end < history->sighting_count && all[end].uuid == all[i].uuid;)
            end++;
        history->gpus[history->gpu_count++] =
            (struct history_gpu){.sightings = &all[i], .count = end - i};
    }
    return 0;
}

/* A survey is a stranger if all its GPUs are seen in it for the first time. */
static void mark_strangers(struct history *history)
{
    for (size_t i = 1; i < history->survey_count; i++)
        history->surveys[i].stranger = true;
    for (size_t g = 0; g < history->gpu_count; g++)
        for (size_t i = 1; i < history->gpus[g].count; i++)
            history->surveys[history->gpus[g].sightings[i].survey].stranger = false;
}

/* Counts the states from the first to the last sighting. What is gone for good is an event. */
static void count_states(const struct history *history, struct history_gpu *gpu)
{
    const uint32_t last = gpu->sightings[gpu->count - 1].survey;
    gpu->kind = KIND_MISMATCHED;
    for (size_t i = 0; i < gpu->count; i++)
        if (gpu->sightings[i].state == HISTORY_OUTLIER && gpu->sightings[i].kind < gpu->kind)
            gpu->kind = gpu->sightings[i].kind;
    for (uint32_t survey = gpu->sightings[0].survey; survey <= last; survey++)
        gpu->states[history_state_at(history, gpu, survey)]++;
}

static bool is_offender(const struct history_gpu *gpu)
{
    return gpu->states[HISTORY_OUTLIER] || gpu->states[HISTORY_UNMEASURED] ||
           gpu->states[HISTORY_MISSING] || gpu->states[HISTORY_WATCHED];
}

/* Repeat offenders first: how often accused, not measured, missing, watched. */
static int by_offence(const void *left, const void *right, void *user)
{
    const struct history_gpu *a = left, *b = right;
    const struct symbols *symbols = user;
    for (int state = HISTORY_OUTLIER; state >= HISTORY_WATCHED; state--)
        if (a->states[state] != b->states[state])
            return a->states[state] > b->states[state] ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return str_order(symbols_data(symbols, a->sightings[0].uuid),
                     symbols_data(symbols, b->sightings[0].uuid));
}

static void rank_gpus(struct history *history)
{
    for (size_t i = 0; i < history->gpu_count; i++) {
        count_states(history, &history->gpus[i]);
        history->offender_count += is_offender(&history->gpus[i]);
    }
    if (history->gpu_count)
        qsort_r(history->gpus, history->gpu_count, sizeof *history->gpus, by_offence,
                &history->symbols);
}

int history_finish(struct history *history, const struct judge_config *config, struct err *err)
{
    if (sort_surveys(history))
        return err_no_memory(err);
    sort_sightings(history);
    if (group_gpus(history))
        return err_no_memory(err);
    history_visits_sort(history);
    mark_strangers(history);
    rank_gpus(history);
    if (history_trends_find(history, config) || history_events_find(history))
        return err_no_memory(err);
    return 0;
}

void history_fini(struct history *history)
{
    for (size_t i = 0; i < history->survey_count; i++)
        free(history->surveys[i].generated);
    symbols_fini(&history->symbols);
    free(history->surveys);
    free(history->sightings);
    free(history->values);
    free(history->visits);
    free(history->units);
    free(history->gpus);
    free(history->events);
    free(history->trends);
    *history = (struct history){0};
}
