/* The majority of each model in each column of facts. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/fleet.h"

/* votes: one counter per symbol; all are 0 before and after the call. */
static struct usual count(const struct fleet *fleet, const struct group *group,
                          const struct fact_column *column, uint32_t *votes)
{
    struct usual usual = {0};
    for (size_t i = 0; i < group->count; i++) {
        uint32_t code = column->codes[group->members[i]];
        if (!fleet->gpus[group->members[i]].measured || !fleet_known(fleet, code))
            continue;
        votes[code]++;
        usual.known++;
    }
    for (size_t i = 0; i < group->count; i++) {
        uint32_t code = column->codes[group->members[i]];
        if (votes[code] > usual.votes) {
            usual.code = code;
            usual.votes = votes[code];
        }
    }
    for (size_t i = 0; i < group->count; i++)
        votes[column->codes[group->members[i]]] = 0;
    return usual;
}

static int find_usual(const struct fleet *fleet, struct group *group, uint32_t *votes)
{
    for (int set = 0; set < SET_COUNT; set++) {
        const struct fact_columns *columns = &fleet->facts[set];
        group->usual[set] = mem_array(columns->count, sizeof *group->usual[set]);
        if (!group->usual[set])
            return -ENOMEM;
        for (size_t i = 0; i < columns->count; i++)
            group->usual[set][i] = count(fleet, group, &columns->items[i], votes);
    }
    return 0;
}

int fleet_find_usual(struct fleet *fleet)
{
    uint32_t *votes = mem_array(fleet->symbols.count, sizeof *votes);
    int rc = votes ? 0 : -ENOMEM;
    for (size_t i = 0; i < fleet->group_count && !rc; i++)
        rc = find_usual(fleet, &fleet->groups[i], votes);
    for (size_t i = 0; i < fleet->population_count && !rc; i++)
        rc = find_usual(fleet, &fleet->populations[i], votes);
    free(votes);
    return rc;
}

const struct usual *fleet_usual(const struct fleet *fleet, const struct group *group,
                                enum fact_set set, const struct fact_column *column)
{
    return column ? &group->usual[set][column - fleet->facts[set].items] : NULL;
}

bool usual_holds(const struct usual *usual)
{
    return usual && 2 * (uint64_t)usual->votes > usual->known;
}

bool usual_is_clear(const struct usual *usual)
{
    return usual && usual->votes >= 3 && 3 * (uint64_t)usual->votes >= 2 * (uint64_t)usual->known;
}
