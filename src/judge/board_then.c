/* Finds each GPU in the baseline. */
#include "judge/board_then.h"

#include "inventory/results.h"

int board_then_compare(struct judge *judge, const char *fact,
                       int (*compare)(struct judge *judge, const struct board_then *fact))
{
    const struct fleet *fleet = &judge->fleet;
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, fact);
    struct inventory_lookup *lookup = NULL;
    if (!judge->basis.baseline || !column)
        return 0;
    int rc = inventory_lookup_create(judge->basis.baseline, &lookup);
    for (size_t i = 0; i < fleet->count && !rc; i++) {
        struct board_then found = {.gpu = fleet->order[i]};
        found.then = inventory_find_gpu(lookup, fleet_text(fleet, fleet->gpus[found.gpu].uuid));
        found.was = found.then ? facts_text(&found.then->board, fact) : NULL;
        found.is = fleet_fact_text(fleet, column, found.gpu);
        if (found.was && found.is && fleet_judged(&fleet->gpus[found.gpu]))
            rc = compare(judge, &found);
    }
    inventory_lookup_destroy(lookup);
    return rc;
}
