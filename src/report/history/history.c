/* Several inventories of the same GPUs over time: collects the sightings of each GPU, sorts them
 * and counts offences. */
#include "report/history/history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "inventory/fingerprint.h"

const struct history_survey *history_twin(const struct history *history, uint64_t hash)
{
    for (size_t i = 0; i < history->survey_count; i++)
        if (history->surveys[i].hash == hash)
            return &history->surveys[i];
    return NULL;
}

static enum history_state gpu_state(enum gpu_status status)
{
    switch (status) {
    case GPU_OK:
        return HISTORY_FINE;
    case GPU_OUTLIER:
        return HISTORY_OUTLIER;
    case GPU_BUSY:
        return HISTORY_BUSY;
    default:
        return HISTORY_UNMEASURED;
    }
}

static void history_add_visit(struct history *history, uint32_t node, uint32_t survey)
{
    const struct history_visit *last =
        history->visit_count ? &history->visits[history->visit_count - 1] : NULL;
    if (!node || (last && last->node == node && last->survey == survey))
        return;
    history->visits = mem_grow(history->visits, &history->visit_room, history->visit_count + 1,
                               sizeof *history->visits);
    history->visits[history->visit_count++] = (struct history_visit){node, survey};
}

/* 0: it has none. */
static uint32_t history_fingerprint(struct history *history, const struct facts *board)
{
    struct fingerprint fingerprint;
    struct strbuf bytes = {0};
    if (fingerprint_read(board, &fingerprint))
        return 0;
    fingerprint_pack(&fingerprint, &bytes);
    uint32_t symbol = symbols_add(&history->symbols, bytes.data, bytes.length);
    strbuf_fini(&bytes);
    return symbol;
}

static void history_add_gpu(struct history *history, uint32_t survey,
                            const struct inventory_gpu *gpu)
{
    struct history_sighting sighting = {.survey = survey,
                                        .index = gpu->index,
                                        .state = gpu_state(gpu->status),
                                        .value = history->value_count};
    /* One after the other: GPUs are sorted by the numbers of their names. */
    sighting.uuid = symbols_of(&history->symbols, gpu->uuid);
    sighting.serial = symbols_of(&history->symbols, facts_text(&gpu->board, "serial"));
    sighting.fingerprint = history_fingerprint(history, &gpu->board);
    sighting.node = symbols_of(&history->symbols, gpu->node);
    sighting.pci = symbols_of(&history->symbols, gpu->pci);
    sighting.model = symbols_of(&history->symbols, gpu->model);
    history->values = mem_grow(history->values, &history->value_room,
                               history->value_count + gpu->value_count, sizeof *history->values);
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        if (!inventory_value_is_good(value))
            continue;
        history->values[history->value_count++] =
            (struct history_value){symbols_of(&history->symbols, value->metric), value->value};
        sighting.value_count++;
    }
    history->sightings = mem_grow(history->sightings, &history->sighting_room,
                                  history->sighting_count + 1, sizeof *history->sightings);
    history->sightings[history->sighting_count++] = sighting;
    history_add_visit(history, sighting.node, survey);
}

/* Finds the sightings of one survey by UUID. */
struct sighting_finder {
    struct history *history;
    uint32_t *places; /* by symbol of the UUID: place in history->sightings, plus 1 */
    size_t count;
};

static struct history_sighting *sighting_find(const struct sighting_finder *finder,
                                              const char *uuid)
{
    uint32_t symbol = symbols_find(&finder->history->symbols, uuid);
    uint32_t place = uuid && symbol < finder->count ? finder->places[symbol] : 0;
    return place ? &finder->history->sightings[place - 1] : NULL;
}

/* The first finding of a list counts: it is the most severe one. */
static void sighting_mark(const struct sighting_finder *finder,
                          const struct inventory_outlier *entry, bool outlier)
{
    struct history_sighting *sighting = sighting_find(finder, entry->uuid);
    if (!sighting || sighting->cause || (!outlier && sighting->state != HISTORY_FINE))
        return;
    sighting->state = outlier ? HISTORY_OUTLIER : HISTORY_WATCHED;
    sighting->verdict = entry->verdict;
    if (entry->evidence_count) {
        sighting->metric = symbols_of(&finder->history->symbols, entry->evidence[0].metric);
        sighting->cause = symbols_of(&finder->history->symbols, entry->evidence[0].cause);
    }
}

static void sighting_mark_place(const struct sighting_finder *finder,
                                const struct inventory_node *place)
{
    for (size_t i = 0; place->action >= ACTION_ALERT && i < place->gpu_count; i++) {
        struct history_sighting *sighting = sighting_find(finder, place->gpus[i]);
        if (!sighting || sighting->cause)
            continue;
        sighting->state = HISTORY_OUTLIER;
        sighting->verdict = place->verdict;
        sighting->cause = symbols_of(&finder->history->symbols, place->finding);
    }
}

static void sighting_mark_unmeasured(const struct sighting_finder *finder,
                                     const struct inventory_unmeasured *entry)
{
    struct history_sighting *sighting = sighting_find(finder, entry->uuid);
    if (sighting && !sighting->cause && sighting->state == HISTORY_UNMEASURED)
        sighting->cause = symbols_of(&finder->history->symbols, entry->reason);
}

/* What the inventory says about the GPUs whose sightings begin at `first`. */
static void history_mark_sightings(struct history *history, size_t first,
                                   const struct inventory *inventory)
{
    struct sighting_finder finder = {history, NULL, history->symbols.count + 1};
    finder.places = mem_array(finder.count, sizeof *finder.places);
    for (size_t i = first; i < history->sighting_count; i++)
        finder.places[history->sightings[i].uuid] = (uint32_t)i + 1;
    for (size_t i = 0; i < inventory->outlier_count; i++)
        sighting_mark(&finder, &inventory->outliers[i], true);
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        sighting_mark_place(&finder, &inventory->node_findings[i]);
    for (size_t i = 0; i < inventory->watch_count; i++)
        sighting_mark(&finder, &inventory->watch[i], false);
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        sighting_mark_unmeasured(&finder, &inventory->unmeasured[i]);
    free(finder.places);
}

static void history_add_units(struct history *history, const struct inventory *inventory)
{
    for (size_t m = 0; m < inventory->model_count; m++)
        for (size_t i = 0; i < inventory->models[m].memory.count; i++) {
            const struct measure *measure = &inventory->models[m].memory.items[i];
            const uint32_t metric = symbols_of(&history->symbols, measure->metric);
            history->units = mem_grow(history->units, &history->unit_room, (size_t)metric + 1,
                                      sizeof *history->units);
            history->units[metric] = symbols_of(&history->symbols, measure->unit);
        }
}

int history_add(struct history *history, const char *path, uint64_t hash,
                const struct inventory *inventory, struct err *err)
{
    struct history_survey survey = {.path = path,
                                    .hash = hash,
                                    .number = (uint32_t)history->survey_count,
                                    .gpus = inventory->total_gpus,
                                    .measured = inventory->total_measured,
                                    .outliers = inventory->total_outliers,
                                    .unmeasured = inventory->total_unmeasured};
    const size_t first = history->sighting_count;
    if (clock_parse_stamp(inventory->generated, &survey.time_s))
        return err_set(err, -EINVAL, "%s: gpumemtopo.generated is not a time in UTC", path);
    survey.generated = str_copy(inventory->generated);
    history->surveys = mem_grow(history->surveys, &history->survey_room, history->survey_count + 1,
                                sizeof *history->surveys);
    history->surveys[history->survey_count++] = survey;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (inventory->gpus[i].uuid)
            history_add_gpu(history, survey.number, &inventory->gpus[i]);
    history_mark_sightings(history, first, inventory);
    history_add_units(history, inventory);
    /* Nodes on which a rank ran, but saw no GPU. */
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        if (place->node && str_equal(place->finding, inventory_bare_node))
            history_add_visit(history, symbols_of(&history->symbols, place->node), survey.number);
    }
    return 0;
}

static int visit_order(const void *left, const void *right)
{
    const struct history_visit *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->survey > b->survey) - (a->survey < b->survey);
}

/* For history_next_visit. */
static void history_sort_visits(struct history *history)
{
    size_t kept = 0;
    if (history->visit_count)
        sort_stable(history->visits, history->visit_count, sizeof *history->visits, visit_order);
    for (size_t i = 0; i < history->visit_count; i++)
        if (!kept || visit_order(&history->visits[kept - 1], &history->visits[i]) != 0)
            history->visits[kept++] = history->visits[i];
    history->visit_count = kept;
}

enum history_state history_state_at(const struct history *history, const struct history_gpu *gpu,
                                    uint32_t survey)
{
    size_t low = 0, high = gpu->count; /* the first sighting after the survey */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gpu->sightings[middle].survey <= survey)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return HISTORY_UNSEEN;
    const struct history_sighting *last = &gpu->sightings[low - 1];
    if (last->survey == survey)
        return last->state;
    bool visited = history_next_visit(history, last->node, (int64_t)survey - 1) == survey;
    return visited ? HISTORY_MISSING : HISTORY_UNSEEN;
}

char history_letter(enum history_state state)
{
    static const char letters[] = "-=.bwxuO";
    return letters[state];
}

static int survey_time_order(const void *left, const void *right)
{
    const struct history_survey *a = left, *b = right;
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s ? -1 : 1;
    return strcmp(a->path, b->path);
}

static int sighting_gpu_order(const void *left, const void *right)
{
    const struct history_sighting *a = left, *b = right;
    if (a->uuid != b->uuid)
        return a->uuid < b->uuid ? -1 : 1;
    return (a->survey > b->survey) - (a->survey < b->survey);
}

/* Numbers the surveys by time, in the sightings too. */
static void history_sort_surveys(struct history *history)
{
    uint32_t *numbers = mem_array(history->survey_count, sizeof *numbers);
    if (history->survey_count)
        sort_stable(history->surveys, history->survey_count, sizeof *history->surveys,
                    survey_time_order);
    for (size_t i = 0; i < history->survey_count; i++)
        numbers[history->surveys[i].number] = (uint32_t)i;
    for (size_t i = 0; i < history->survey_count; i++)
        history->surveys[i].number = (uint32_t)i;
    for (size_t i = 0; i < history->sighting_count; i++)
        history->sightings[i].survey = numbers[history->sightings[i].survey];
    for (size_t i = 0; i < history->visit_count; i++)
        history->visits[i].survey = numbers[history->visits[i].survey];
    free(numbers);
}

/* A rolling survey keeps the last result of nodes that were not idle: such a result counts once.
 * Two measurements do not agree in all digits of several figures; sizes and counts may agree. */
static bool sighting_is_same_result(const struct history *history, const struct history_sighting *a,
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
static void history_sort_sightings(struct history *history)
{
    struct history_sighting *all = history->sightings;
    size_t kept = 0;
    if (history->sighting_count)
        sort_stable(all, history->sighting_count, sizeof *all, sighting_gpu_order);
    for (size_t i = 0; i < history->sighting_count; i++)
        if (!kept || sighting_gpu_order(&all[kept - 1], &all[i]) != 0)
            all[kept++] = all[i];
    history->sighting_count = kept;
    for (size_t i = kept; i-- > 1;)
        if (sighting_is_same_result(history, &all[i - 1], &all[i]))
            all[i].state = HISTORY_SAME;
}

static void history_group_gpus(struct history *history)
{
    const struct history_sighting *all = history->sightings;
    history->gpus = mem_array(history->sighting_count, sizeof *history->gpus);
    for (size_t i = 0, end; i < history->sighting_count; i = end) {
        for (end = i + 1; end < history->sighting_count && all[end].uuid == all[i].uuid;)
            end++;
        history->gpus[history->gpu_count++] =
            (struct history_gpu){.sightings = &all[i], .count = end - i};
    }
}

/* A survey is a stranger if all its GPUs are seen in it for the first time. */
static void history_mark_strangers(struct history *history)
{
    for (size_t i = 1; i < history->survey_count; i++)
        history->surveys[i].stranger = true;
    for (size_t g = 0; g < history->gpu_count; g++)
        for (size_t i = 1; i < history->gpus[g].count; i++)
            history->surveys[history->gpus[g].sightings[i].survey].stranger = false;
}

/* Counts the states from the first to the last sighting. What is gone for good is an event. */
static void gpu_count_states(const struct history *history, struct history_gpu *gpu)
{
    const uint32_t last = gpu->sightings[gpu->count - 1].survey;
    gpu->verdict = VERDICT_UNKNOWN;
    for (size_t i = 0; i < gpu->count; i++)
        if (gpu->sightings[i].state == HISTORY_OUTLIER && gpu->sightings[i].verdict < gpu->verdict)
            gpu->verdict = gpu->sightings[i].verdict;
    for (uint32_t survey = gpu->sightings[0].survey; survey <= last; survey++)
        gpu->states[history_state_at(history, gpu, survey)]++;
}

static bool gpu_is_offender(const struct history_gpu *gpu)
{
    return gpu->states[HISTORY_OUTLIER] || gpu->states[HISTORY_UNMEASURED] ||
           gpu->states[HISTORY_MISSING] || gpu->states[HISTORY_WATCHED];
}

/* Repeat offenders first: how often an outlier, not measured, missing, watched. */
static int gpu_offence_order(const void *left, const void *right, void *user)
{
    const struct history_gpu *a = left, *b = right;
    const struct symbols *symbols = user;
    for (int state = HISTORY_OUTLIER; state >= HISTORY_WATCHED; state--)
        if (a->states[state] != b->states[state])
            return a->states[state] > b->states[state] ? -1 : 1;
    if (a->verdict != b->verdict)
        return a->verdict < b->verdict ? -1 : 1;
    return str_order(symbols_data(symbols, a->sightings[0].uuid),
                     symbols_data(symbols, b->sightings[0].uuid));
}

static void history_rank_gpus(struct history *history)
{
    for (size_t i = 0; i < history->gpu_count; i++) {
        gpu_count_states(history, &history->gpus[i]);
        history->offender_count += gpu_is_offender(&history->gpus[i]);
    }
    if (history->gpu_count)
        sort_stable_with(history->gpus, history->gpu_count, sizeof *history->gpus,
                         gpu_offence_order, &history->symbols);
}

void history_finish(struct history *history, const struct judge_config *config)
{
    history_sort_surveys(history);
    history_sort_sightings(history);
    history_group_gpus(history);
    history_sort_visits(history);
    history_mark_strangers(history);
    history_rank_gpus(history);
    history_trends_find(history, config);
    history_events_find(history);
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
