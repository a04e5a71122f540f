/* Dies that are not those of the baseline: the fingerprint of a GPU against its own earlier one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"
#include "judge/board_then.h"

/* The group whose SMs moved, and no others; -1 if there is none. Another die has SMs of all groups
 * at other places. */
static int moved_group(const struct fleet *fleet, uint32_t gpu,
                       const struct fingerprint_score *score, size_t sms)
{
    const struct fact_column *column = fleet_facts(fleet, SET_BOARD, SM_RATES_FACT);
    const char *text = column ? fleet_fact_text(fleet, column, gpu) : NULL;
    uint16_t moved[FINGERPRINT_SMS_MAX];
    size_t count = 0;
    struct sm_rates rates;
    if (!text || sm_rates_read(text, &rates) || rates.sms != sms)
        return -1;
    for (size_t i = 0; i < sms; i++)
        if (score->moved_sms[i])
            moved[count++] = (uint16_t)i;
    return sm_rates_group(&rates, moved, count);
}

/* Watched, never accused: a swapped board works, and the change may be intended. */
static int report(struct judge *judge, uint32_t gpu, const struct fingerprint_score *score,
                  size_t sms)
{
    int group = moved_group(&judge->fleet, gpu, score, sms);
    struct finding *finding = findings_add(judge, gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE);
    const char *stamp = judge->basis.baseline->generated;
    if (!finding || symbols_text(&judge->fleet.symbols, "cycles", &finding->unit))
        return -ENOMEM;
    finding->kind = KIND_MISCONFIGURED;
    if (group >= 0)
        finding->cause = str_format("the %zu SMs of group %d are up to %.1f cycles %s L2 than they "
                                    "were, the others are not "
                                    "(baseline of %s)",
                                    score->moved, group, fabs(score->worst_cycles),
                                    score->worst_cycles > 0 ? "farther from" : "nearer to",
                                    stamp ? stamp : "unknown date");
    else if (score->match == FINGERPRINT_OTHER)
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

static int compare(struct judge *judge, const struct board_then *fact)
{
    struct fingerprint before, now;
    if (fingerprint_read(fact->was, &before) || fingerprint_read(fact->is, &now))
        return 0;
    struct fingerprint_score score = fingerprint_compare(&before, &now);
    if (score.match != FINGERPRINT_OTHER && score.match != FINGERPRINT_CHANGED)
        return 0;
    return report(judge, fact->gpu, &score, now.sms);
}

int judge_dies(struct judge *judge)
{
    return board_then_compare(judge, FINGERPRINT_FACT, compare);
}
