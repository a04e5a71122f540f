/* All results of a fleet as columns: memory and look-ups. */
#include "judge/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int fleet_init(struct fleet *fleet, size_t capacity)
{
    *fleet = (struct fleet){.capacity = capacity};
    fleet->gpus = mem_array(capacity, sizeof *fleet->gpus);
    return fleet->gpus ? 0 : -ENOMEM;
}

static void groups_fini(struct group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(groups[i].id);
        free(groups[i].members);
        for (int set = 0; set < SET_COUNT; set++)
            free(groups[i].usual[set]);
    }
    free(groups);
}

void fleet_fini(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->metric_count; i++) {
        struct metric_column *column = &fleet->metrics[i];
        for (size_t k = 0; k < column->note_count; k++)
            free(column->notes[k].notes);
        free(column->notes);
        free(column->cells);
    }
    for (int set = 0; set < SET_COUNT; set++) {
        for (size_t i = 0; i < fleet->facts[set].count; i++)
            free(fleet->facts[set].items[i].codes);
        free(fleet->facts[set].items);
    }
    groups_fini(fleet->groups, fleet->group_count);
    groups_fini(fleet->populations, fleet->population_count);
    free(fleet->metrics);
    free(fleet->order);
    free(fleet->gpus);
    symbols_fini(&fleet->symbols);
    memset(fleet, 0, sizeof *fleet);
}

const char *fleet_text(const struct fleet *fleet, uint32_t symbol)
{
    return symbols_data(&fleet->symbols, symbol);
}

const struct metric_column *fleet_metric(const struct fleet *fleet, const char *name)
{
    uint32_t symbol = symbols_find(&fleet->symbols, name);
    for (size_t i = 0; i < fleet->metric_count && symbol; i++)
        if (fleet->metrics[i].head.name == symbol)
            return &fleet->metrics[i];
    return NULL;
}

const struct cell *fleet_number(const struct metric_column *column, uint32_t gpu, bool noisy)
{
    const struct cell *cell = column ? &column->cells[gpu] : NULL;
    bool usable = cell && cell->present && cell->kind == MEASURE_NUMBER &&
                  (cell->status == MEASURE_OK || (noisy && cell->status == MEASURE_NOISY)) &&
                  cell->bound == MEASURE_EXACT && isfinite(cell->value);
    return usable ? cell : NULL;
}
