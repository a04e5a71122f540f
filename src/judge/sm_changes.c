/* SMs, and groups of SMs, that read L2 slower than in the baseline while the others do not. */
#include <errno.h>
#include <stdlib.h>

#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"
#include "judge/board_then.h"

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
static int compare(struct judge *judge, const struct board_then *fact)
{
    struct sm_rates before, now;
    if (fact->then->status == GPU_BUSY ||
        finding_of(judge, fact->gpu, "board." FINGERPRINT_FACT, BASIS_BASELINE) ||
        sm_rates_read(fact->was, &before) || sm_rates_read(fact->is, &now))
        return 0;
    struct sm_loss loss = sm_rates_slower(&before, &now);
    return loss.count ? report(judge, fact->gpu, &loss) : 0;
}

int judge_sm_rates(struct judge *judge)
{
    return board_then_compare(judge, SM_RATES_FACT, compare);
}
