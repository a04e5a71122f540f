/* The parts of L2: what both methods of finding them share. */
#include "probes/l2/l2_parts.h"

#include <math.h>
#include <stdlib.h>

/* Levels closer than this many cycles are one level. */
static const double LEVEL_GAP = 4;

size_t l2_sample_sms(struct probe_context *context, int32_t *out_sms)
{
    size_t sms = device_limits(context->device)->sm_count;
    size_t count = sms < L2_SAMPLE_MAX ? sms : L2_SAMPLE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t first = i * sms / count, next = (i + 1) * sms / count;
        out_sms[i] = i ? (int32_t)(first + probe_seed(context) % (next - first)) : 0;
    }
    return count;
}

void l2_parts_fini(struct l2_parts *parts)
{
    l2_values_fini(&parts->far_loads);
    l2_values_fini(&parts->far_lines);
    free(parts->part_of_sm);
    free(parts->home_of_element);
    *parts = (struct l2_parts){0};
}

/* Half the range of three means, each of every third value up to the cap. */
static double far_spread(const struct l2_values *loads, double cap)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t g = 0; g < L2_GROUPS; g++) {
        double sum = 0, count = 0;
        for (size_t i = g; i < loads->count; i += L2_GROUPS)
            if (loads->at[i] <= cap) {
                sum += loads->at[i];
                count++;
            }
        low = fmin(low, sum / count);
        high = fmax(high, sum / count);
    }
    return (high - low) / 2;
}

/* Nothing is cut off below: the lowest of three far levels may have only a third of the loads. */
int l2_parts_set_far(struct l2_parts *parts, double near_width, struct err *err)
{
    const struct l2_fence lines = l2_values_fence(&parts->far_lines);
    struct l2_values ordered = {0}, inside = parts->far_lines;
    int rc = 0;
    for (size_t i = 0; i < parts->far_loads.count && !rc; i++)
        rc = l2_values_add(&ordered, parts->far_loads.at[i], err);
    double cap = rc ? 0 : l2_values_fence(&parts->far_loads).high;
    parts->far =
        (struct l2_latency){l2_values_mean_below(&ordered, cap), far_spread(&ordered, cap)};
    l2_values_fini(&ordered);
    while (inside.count && inside.at[inside.count - 1] > lines.high)
        inside.count--;
    return rc ? rc
              : l2_values_levels(&inside, fmax(near_width, LEVEL_GAP), L2_PARTS_MAX - 1,
                                 parts->levels, &parts->level_count, err);
}
