/* Statistics of single loads: means without spikes, levels, thresholds. No device is needed. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_VALUES_H
#define GPUMEMTOPO_PROBES_L2_L2_VALUES_H

#include <stddef.h>

#include "base/err.h"

/* A growing list of latencies or differences, in cycles. Zero-initialised is empty. */
struct l2_values {
    double *at;
    size_t count, room;
};

int l2_values_add(struct l2_values *values, double value, struct err *err);
void l2_values_fini(struct l2_values *values);
void l2_values_sort(struct l2_values *values);

/* Of sorted values; NaN for none. */
double l2_values_quantile(const struct l2_values *sorted, double q);

/* Values beyond these are disturbances: three quartile distances, and as many steps of the timer,
 * from the middle half. Sorts. */
struct l2_fence {
    double low, high;
};
struct l2_fence l2_values_fence(struct l2_values *values);

/* Mean of the values inside the fence: means, since the median of two peaks jumps and that of a
 * coarse timer's readings is one of its steps. Sorts. NaN for none. */
double l2_values_mean(struct l2_values *values);

/* Mean of the values up to a cap. */
double l2_values_mean_below(const struct l2_values *values, double cap);

double l2_values_share_above(const struct l2_values *sorted, double cycles);

/* Where in [from, to] to part two sorted sets so that the share of the lower above it and that of
 * the higher below it are least together; the middle of all such places. */
double l2_values_parting(const struct l2_values *lower, const struct l2_values *higher, double from,
                         double to);

/* Parts sorted values into levels: at least `gap` apart, a tenth of the values in the smallest, and
 * next to none between two. Gives their means, at most `most`. 0 or -ENOMEM. */
int l2_values_levels(const struct l2_values *sorted, double gap, size_t most, double *out_levels,
                     size_t *out_count, struct err *err);

#endif
