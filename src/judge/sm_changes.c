/* SMs, and groups of SMs, that read L2 slower than in the baseline while the others do not. */
#include <errno.h>
#include <stdlib.h>

#include "inventory/fingerprint.h"
#include "inventory/results.h"
#include "inventory/sm_rates.h"
#include "judge/stages.h"

/* Watched, never accused: no GPU that became so was met. */
static int report(struct judge *judge, uint32_t gpu, const struct sm_loss *loss)
{
    struct finding *finding = findings_add(judge, gpu, "board." SM_RATES_FACT, BASIS_BASELINE);
    const char *stamp = judge->basis.baseline->generated;
    struct strbuf text = {0};
    sm_loss_put(&text, loss);
    strbuf_printf(&text, " than in the baseline of %s, the others do not",
                  stamp ? stamp : "unknown date");
    if (!finding || text.failed) {
        strbuf_fini(&text);
        return -ENOMEM;
    }
    finding->kind = KIND_DEGRADED;
    finding->cause = text.data;
    return 0;
}

/* Another die has SMs of its own. */
static int compare(struct judge *judge, const struct inventory_lookup *lookup,
                   const struct fact_column *column, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    const struct inventory_gpu *then =
        inventory_find_gpu(lookup, fleet_text(fleet, fleet->gpus[gpu].uuid));
    const char *was = then ? facts_text(&then->board, SM_RATES_FACT) : NULL;
    const char *is = fleet_fact_text(fleet, column, gpu);
    struct sm_rates before, now;
    if (!was || !is || then->status == GPU_BUSY || !fleet_judged(&fleet->gpus[gpu]) ||
        finding_of(judge, gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE) ||
        sm_rates_read(was, &before) || sm_rates_read(is, &now))
        return 0;
    struct sm_loss loss = sm_rates_slower(&before, &now);
    return loss.count ? report(judge, gpu, &loss) : 0;
}

int judge_sm_rates(struct judge *judge)
{
    struct inventory_lookup *lookup = NULL;
    const struct fact_column *column = fleet_facts(&judge->fleet, SET_BOARD, SM_RATES_FACT);
    if (!judge->basis.baseline || !column)
        return 0;
    int rc = inventory_lookup_create(judge->basis.baseline, &lookup);
    for (size_t i = 0; i < judge->fleet.count && !rc; i++)
        rc = compare(judge, lookup, column, judge->fleet.order[i]);
    inventory_lookup_destroy(lookup);
    return rc;
}
