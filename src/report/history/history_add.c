/* Several inventories of the same GPUs over time: collects the sightings of each GPU. */
#include "report/history/history.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "inventory/fingerprint.h"

const struct history_survey *history_twin(const struct history *history, uint64_t hash)
{
    for (size_t i = 0; i < history->survey_count; i++)
        if (history->surveys[i].hash == hash)
            return &history->surveys[i];
    return NULL;
}

static enum history_state state_of(enum gpu_status status)
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

static int add_values(struct history *history, const struct inventory_gpu *gpu,
                      struct history_sighting *sighting)
{
    struct history_value *grown = mem_grow(history->values, &history->value_room,
                                           history->value_count + gpu->value_count, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    history->values = grown;
    sighting->value = history->value_count;
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        struct history_value *slot = &grown[history->value_count];
        if (!inventory_value_is_good(value))
            continue;
        if (symbols_text(&history->symbols, value->metric, &slot->metric))
            return -ENOMEM;
        slot->value = value->value;
        history->value_count++;
        sighting->value_count++;
    }
    return 0;
}

static int add_visit(struct history *history, uint32_t node, uint32_t survey)
{
    const size_t count = history->visit_count;
    if (count && history->visits[count - 1].node == node &&
        history->visits[count - 1].survey == survey)
        return 0;
    struct history_visit *grown =
        mem_grow(history->visits, &history->visit_room, history->visit_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    history->visits = grown;
    grown[history->visit_count++] = (struct history_visit){node, survey};
    return 0;
}

static int add_gpu(struct history *history, uint32_t survey, const struct inventory_gpu *gpu)
{
    struct symbols *symbols = &history->symbols;
    struct history_sighting *grown = mem_grow(history->sightings, &history->sighting_room,
                                              history->sighting_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    history->sightings = grown;
    struct history_sighting *slot = &grown[history->sighting_count];
    *slot = (struct history_sighting){
        .survey = survey, .index = gpu->index, .state = state_of(gpu->status)};
    if (symbols_text(symbols, gpu->uuid, &slot->uuid) ||
        symbols_text(symbols, facts_text(&gpu->board, "serial"), &slot->serial) ||
        symbols_text(symbols, facts_text(&gpu->board, FINGERPRINT_FACT), &slot->fingerprint) ||
        symbols_text(symbols, gpu->node, &slot->node) ||
        symbols_text(symbols, gpu->pci, &slot->pci) ||
        symbols_text(symbols, gpu->model, &slot->model) || add_values(history, gpu, slot))
        return -ENOMEM;
    history->sighting_count++;
    return slot->node ? add_visit(history, slot->node, survey) : 0;
}

/* Finds the sightings of one survey by UUID. */
struct finder {
    struct history *history;
    uint32_t *places; /* by symbol of the UUID: place in history->sightings, plus 1 */
    size_t count;
};

static struct history_sighting *find(const struct finder *finder, const char *uuid)
{
    uint32_t symbol = symbols_find(&finder->history->symbols, uuid);
    uint32_t place = uuid && symbol < finder->count ? finder->places[symbol] : 0;
    return place ? &finder->history->sightings[place - 1] : NULL;
}

/* The first finding of a list counts: it is the most severe one. */
static int mark(const struct finder *finder, const struct inventory_outlier *entry, bool accused)
{
    struct symbols *symbols = &finder->history->symbols;
    struct history_sighting *sighting = find(finder, entry->uuid);
    const struct inventory_finding *finding = entry->finding_count ? &entry->findings[0] : NULL;
    if (!sighting || sighting->cause || (!accused && sighting->state != HISTORY_FINE))
        return 0;
    sighting->state = accused ? HISTORY_OUTLIER : HISTORY_WATCHED;
    sighting->kind = entry->kind;
    if (!finding)
        return 0;
    return symbols_text(symbols, finding->metric, &sighting->metric)
               ? -ENOMEM
               : symbols_text(symbols, finding->cause, &sighting->cause);
}

static int mark_place(const struct finder *finder, const struct inventory_node *place)
{
    for (size_t i = 0; place->accused && i < place->gpu_count; i++) {
        struct history_sighting *sighting = find(finder, place->gpus[i]);
        if (!sighting || sighting->cause)
            continue;
        sighting->state = HISTORY_OUTLIER;
        sighting->kind = place->kind;
        if (symbols_text(&finder->history->symbols, place->finding, &sighting->cause))
            return -ENOMEM;
    }
    return 0;
}

static int mark_unmeasured(const struct finder *finder, const struct inventory_unmeasured *entry)
{
    struct history_sighting *sighting = find(finder, entry->uuid);
    if (!sighting || sighting->cause || sighting->state != HISTORY_UNMEASURED)
        return 0;
    return symbols_text(&finder->history->symbols, entry->reason, &sighting->cause);
}

static int mark_all(struct history *history, size_t first, const struct inventory *inventory)
{
    struct finder finder = {history, NULL, history->symbols.count + 1};
    finder.places = mem_array(finder.count, sizeof *finder.places);
    int rc = finder.places ? 0 : -ENOMEM;
    for (size_t i = first; i < history->sighting_count && !rc; i++)
        finder.places[history->sightings[i].uuid] = (uint32_t)i + 1;
    for (size_t i = 0; i < inventory->outlier_count && !rc; i++)
        rc = mark(&finder, &inventory->outliers[i], true);
    for (size_t i = 0; i < inventory->node_finding_count && !rc; i++)
        rc = mark_place(&finder, &inventory->node_findings[i]);
    for (size_t i = 0; i < inventory->watch_count && !rc; i++)
        rc = mark(&finder, &inventory->watch[i], false);
    for (size_t i = 0; i < inventory->unmeasured_count && !rc; i++)
        rc = mark_unmeasured(&finder, &inventory->unmeasured[i]);
    free(finder.places);
    return rc;
}

static int add_units(struct history *history, const struct inventory *inventory)
{
    for (size_t m = 0; m < inventory->model_count; m++)
        for (size_t i = 0; i < inventory->models[m].memory.count; i++) {
            const struct measure *measure = &inventory->models[m].memory.items[i];
            uint32_t metric, unit;
            if (symbols_text(&history->symbols, measure->metric, &metric) ||
                symbols_text(&history->symbols, measure->unit, &unit))
                return -ENOMEM;
            uint32_t *grown =
                mem_grow(history->units, &history->unit_room, (size_t)metric + 1, sizeof *grown);
            if (!grown)
                return -ENOMEM;
            history->units = grown;
            grown[metric] = unit;
        }
    return 0;
}

/* Nodes on which a rank ran, but saw no GPU. */
static int add_bare_nodes(struct history *history, uint32_t survey,
                          const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        uint32_t node;
        if (!place->node || !str_equal(place->finding, inventory_bare_node))
            continue;
        if (symbols_text(&history->symbols, place->node, &node) || add_visit(history, node, survey))
            return -ENOMEM;
    }
    return 0;
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
    size_t first = history->sighting_count;
    if (clock_parse_stamp(inventory->generated, &survey.time_s))
        return err_set(err, -EINVAL, "%s: gpumemtopo.generated is not a time in UTC", path);
    struct history_survey *grown =
        mem_grow(history->surveys, &history->survey_room, history->survey_count + 1, sizeof *grown);
    if (!grown)
        return err_no_memory(err);
    history->surveys = grown;
    if (str_copy_to(&survey.generated, inventory->generated))
        return err_no_memory(err);
    grown[history->survey_count++] = survey;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (inventory->gpus[i].uuid && add_gpu(history, survey.number, &inventory->gpus[i]))
            return err_no_memory(err);
    if (mark_all(history, first, inventory) || add_units(history, inventory) ||
        add_bare_nodes(history, survey.number, inventory))
        return err_no_memory(err);
    return 0;
}
