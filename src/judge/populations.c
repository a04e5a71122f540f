/* Models divided into populations. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fleet.h"

struct division {
    struct fleet *fleet;
    const struct fact_column *parts; /* NULL: no GPU knows its board part */
    uint32_t *numbers;               /* by code of a part: population + 1; 0: none in this model */
    size_t capacity;
};

static uint32_t part_of(const struct division *division, uint32_t gpu)
{
    uint32_t code = division->parts ? division->parts->codes[gpu] : 0;
    return fleet_known(division->fleet, code) ? code : 0;
}

static int add_population(struct division *division, const struct group *model, uint32_t part)
{
    struct fleet *fleet = division->fleet;
    struct group *grown = mem_grow(fleet->populations, &division->capacity,
                                   fleet->population_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    fleet->populations = grown;
    grown[fleet->population_count++] =
        (struct group){.name = model->name, .key = model->key, .part = part};
    division->numbers[part] = (uint32_t)fleet->population_count;
    return 0;
}

static int name_population(const struct division *division, const struct group *model,
                           struct group *population)
{
    if (model->populations == 1)
        return str_copy_to(&population->id, model->id);
    const struct fact part = fleet_fact(division->fleet, division->parts, population->part);
    population->id = population->part && part.kind == FACT_TEXT
                         ? str_format("%s, board part %s", model->id, part.text)
                         : str_format("%s, unknown board part", model->id);
    return population->id ? 0 : -ENOMEM;
}

static int fill_populations(const struct division *division, const struct group *model)
{
    struct fleet *fleet = division->fleet;
    for (size_t i = 0; i < model->populations; i++) {
        struct group *population = &fleet->populations[model->populations_at + i];
        population->members = mem_array(population->count, sizeof *population->members);
        population->count = 0;
        if (!population->members || name_population(division, model, population))
            return -ENOMEM;
    }
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        struct group *population = &fleet->populations[fleet->gpus[gpu].population];
        population->members[population->count++] = gpu;
    }
    return 0;
}

/* In this order: who comes later joins what is there. */
enum pass { MEASURED, MEASURED_UNKNOWN_PART, UNMEASURED, PASSES };

static enum pass pass_of(const struct division *division, uint32_t gpu)
{
    if (!division->fleet->gpus[gpu].measured)
        return UNMEASURED;
    return part_of(division, gpu) ? MEASURED : MEASURED_UNKNOWN_PART;
}

/* A measured GPU opens the population of its part. If its part is unknown, it joins the only
 * population of the model; with several, it opens one of its own kind. A GPU that was not measured
 * joins the population of its part, or the first one: often nothing is known of it. */
static int assign(struct division *division, const struct group *model, enum pass pass)
{
    struct fleet *fleet = division->fleet;
    size_t before = fleet->population_count - model->populations_at;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i], part = part_of(division, gpu);
        bool opens = pass == MEASURED || fleet->population_count == model->populations_at ||
                     (pass == MEASURED_UNKNOWN_PART && before > 1);
        if (pass_of(division, gpu) != pass)
            continue;
        if (!division->numbers[part] && opens && add_population(division, model, part))
            return -ENOMEM;
        uint32_t number = division->numbers[part];
        fleet->gpus[gpu].population = number ? number - 1 : (uint32_t)model->populations_at;
        fleet->populations[fleet->gpus[gpu].population].count++;
    }
    return 0;
}

static int divide(struct division *division, struct group *model)
{
    struct fleet *fleet = division->fleet;
    model->populations_at = fleet->population_count;
    for (int pass = 0; pass < PASSES; pass++)
        if (assign(division, model, (enum pass)pass))
            return -ENOMEM;
    model->populations = fleet->population_count - model->populations_at;
    for (size_t i = 0; i < model->populations; i++)
        division->numbers[fleet->populations[model->populations_at + i].part] = 0;
    return fill_populations(division, model);
}

int fleet_populate(struct fleet *fleet)
{
    struct division division = {
        .fleet = fleet,
        .parts = fleet_facts(fleet, SET_BOARD, "part"),
        .numbers = mem_array(fleet->symbols.count, sizeof *division.numbers),
    };
    int rc = division.numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++)
        fleet->gpus[i].population = GROUP_NONE;
    for (size_t i = 0; i < fleet->group_count && !rc; i++)
        rc = divide(&division, &fleet->groups[i]);
    free(division.numbers);
    return rc;
}
