/* Whether GPUs that lose in one figure have the same fault. */
#include "judge/same_fault.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/robust.h"

static double loss_of(const struct judge *judge, uint32_t gpu, size_t metric)
{
    return judge->worse ? judge->worse[gpu * judge->basis.config->metric_count + metric] : NAN;
}

/* A GPU shares the loss if it loses half as much as the accused ones usually do; one that was not
 * compared says nothing. losses: room for `count` numbers. */
static void compare(const struct judge *judge, size_t metric, const uint32_t *gpus, size_t count,
                    double *losses, bool *out_other)
{
    size_t accused = 0, sharing = 0, compared = 0;
    for (size_t i = 0; i < count; i++)
        if (findings_accuse(judge, gpus[i], metric) && !isnan(loss_of(judge, gpus[i], metric)))
            losses[accused++] = loss_of(judge, gpus[i], metric);
    if (!accused)
        return;
    double half = robust_median(losses, accused) / 2;
    for (size_t i = 0; i < count; i++) {
        compared += !isnan(loss_of(judge, gpus[i], metric));
        sharing += loss_of(judge, gpus[i], metric) >= half;
    }
    for (size_t i = 0; i < count && 3 * sharing < 2 * compared; i++)
        out_other[i] |= loss_of(judge, gpus[i], metric) >= half;
}

int same_fault_find_others(const struct judge *judge, size_t metric, const uint32_t *gpus,
                           size_t count, bool *out_other)
{
    const struct judge_config *config = judge->basis.config;
    double *losses = mem_array(count, sizeof *losses);
    if (!losses)
        return -ENOMEM;
    for (size_t m = 0; m < config->metric_count; m++)
        if (m != metric &&
            measure_same_memory(config->metrics[m].metric, config->metrics[metric].metric))
            compare(judge, m, gpus, count, losses, out_other);
    free(losses);
    return 0;
}

int same_fault_cause(struct symbols *symbols, const char *cause, uint32_t *out_symbol)
{
    struct strbuf words = {0};
    for (; cause && *cause; cause++)
        if (!strchr("0123456789.", *cause))
            strbuf_append(&words, cause, 1);
    int rc =
        words.failed ? -ENOMEM : symbols_text(symbols, words.data ? words.data : "", out_symbol);
    strbuf_fini(&words);
    return rc;
}
