/* Which node was seen in which survey of a history, and so the state of a GPU in each. */
#include "report/history/history_visits.h"

#include <stdlib.h>

static int by_visit(const void *left, const void *right)
{
    const struct history_visit *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->survey > b->survey) - (a->survey < b->survey);
}

void history_visits_sort(struct history *history)
{
    size_t kept = 0;
    if (history->visit_count)
        qsort(history->visits, history->visit_count, sizeof *history->visits, by_visit);
    for (size_t i = 0; i < history->visit_count; i++)
        if (!kept || by_visit(&history->visits[kept - 1], &history->visits[i]) != 0)
            history->visits[kept++] = history->visits[i];
    history->visit_count = kept;
}

uint32_t history_next_visit(const struct history *history, uint32_t node, int64_t after)
{
    size_t low = 0, high = history->visit_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct history_visit *visit = &history->visits[middle];
        if (visit->node < node || (visit->node == node && (int64_t)visit->survey <= after))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = node && low < history->visit_count && history->visits[low].node == node;
    return found ? history->visits[low].survey : HISTORY_NEVER;
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
