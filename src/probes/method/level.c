/* Hit and miss latency of a cache and the threshold between them, from loads of both kinds. */
#include "probes/method/level.h"

#include <errno.h>
#include <math.h>

#include "base/quadrature.h"
#include "probes/method/contrast.h"

/* Largest sum of both shares: hits that look like misses, and misses that look like hits. */
static const double MISJUDGED_MAX = 0.15;

int32_t level_sm(const struct probe_context *context, size_t number, size_t count)
{
    return (int32_t)(number * device_limits(context->device)->sm_count / count);
}

size_t level_sm_count(const struct probe_context *context, size_t most)
{
    size_t sms = device_limits(context->device)->sm_count;
    return sms < most ? sms : most;
}

void level_settle(struct study *study, const struct pool *hits, const struct pool *misses)
{
    const struct pool_centre hit = pool_centre(hits);
    const struct pool_centre miss = pool_centre(misses);
    const struct contrast contrast = contrast_between(hits, misses);
    study->hit_cycles = pool_lower_mean(hits, 1 - hit.spike_share);
    study->miss_cycles = pool_lower_mean(misses, 1 - miss.spike_share);
    study->penalty_error = quadrature(hit.error, miss.error);
    study->level_n = (uint32_t)(hits->all + misses->all);
    study->sigma_cycles = hit.sigma;
    study->spike_share = hit.spike_share;
    study->threshold = contrast.threshold;
    study->stray_share = contrast.stray_share;
    study->slip_share = contrast.slip_share;
}

int level_check(const struct study *study, struct err *err)
{
    if (study->stray_share + study->slip_share <= MISJUDGED_MAX)
        return 0;
    return err_set(err, -ENODATA,
                   "hits of %.0f cycles are not told from misses of %.0f by single loads",
                   study->hit_cycles, study->miss_cycles);
}
