/* Dies that are not those of the baseline: the fingerprint of a GPU against its own earlier one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/results.h"
#include "judge/stages.h"

/* Watched, never accused: a swapped board works, and the change may be intended. */
static int report(struct judge *judge, uint32_t gpu, const struct fingerprint_score *score,
                  size_t sms)
{
    struct finding *finding = findings_add(judge, gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE);
    const char *stamp = judge->basis.baseline->generated;
    if (!finding || symbols_text(&judge->fleet.symbols, "cycles", &finding->unit))
        return -ENOMEM;
    finding->kind = KIND_MISCONFIGURED;
    if (score->match == FINGERPRINT_OTHER)
        finding->cause = str_format(
            "this UUID is not the die it was: %zu of %zu SMs are at another distance from L2, "
            "%.1f cycles root mean square where the same die gives %.1f (baseline of %s)",
            score->moved, sms, score->distance_cycles, score->noise_cycles,
            stamp ? stamp : "unknown date");
    else
        finding->cause = str_format("SM %zu is %.1f cycles %s L2 than it was (baseline of %s)",
                                    score->worst_sm, fabs(score->worst_cycles),
                                    score->worst_cycles > 0 ? "farther from" : "nearer to",
                                    stamp ? stamp : "unknown date");
    return finding->cause ? 0 : -ENOMEM;
}

static int compare(struct judge *judge, const struct inventory_lookup *lookup,
                   const struct fact_column *column, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct inventory_gpu *then =
        inventory_find_gpu(lookup, fleet_text(fleet, fleet->gpus[gpu].uuid));
    const char *was = then ? facts_text(&then->board, FINGERPRINT_FACT) : NULL;
    const char *is = fleet_fact_text(fleet, column, gpu);
    struct fingerprint before, now;
    if (!was || !is || !fleet_judged(&fleet->gpus[gpu]) || fingerprint_read(was, &before) ||
        fingerprint_read(is, &now))
        return 0;
    struct fingerprint_score score = fingerprint_compare(&before, &now);
    if (score.match != FINGERPRINT_OTHER && score.match != FINGERPRINT_CHANGED)
        return 0;
    return report(judge, gpu, &score, now.sms);
}

int judge_dies(struct judge *judge)
{
    struct inventory_lookup *lookup = NULL;
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_BOARD, FINGERPRINT_FACT);
    if (!judge->basis.baseline || !column)
        return 0;
    int rc = inventory_lookup_create(judge->basis.baseline, &lookup);
    for (size_t i = 0; i < judge->fleet.count && !rc; i++)
        rc = compare(judge, lookup, column, judge->fleet.order[i]);
    inventory_lookup_destroy(lookup);
    return rc;
}
