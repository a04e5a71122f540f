/* Statistics of single loads: means without spikes, levels, thresholds. No device is needed. */
#ifndef GPUMEMTOPO_PROBES_CACHES_L2_PARTS_H
#define GPUMEMTOPO_PROBES_CACHES_L2_PARTS_H

#include <stddef.h>

#include "base/err.h"
#include "probes/probe.h"

/* A growing list of latencies or differences, in cycles. Zero-initialised is empty. */
struct l2_values {
    double *at;
    size_t count, room;
};

void l2_values_add(struct l2_values *values, double value);

void l2_values_fini(struct l2_values *values);

void l2_values_sort(struct l2_values *values);

/* Of sorted values; NaN for none. */
double l2_values_quantile(const struct l2_values *sorted, double q);

/* Values beyond these are disturbances: three quartile distances, and as many steps of the timer,
 * from the middle half. Sorts. */
struct l2_fence {
    double low, high;
};

/* The step of the timer: the greatest number that divides all differences; 0 for means of readings.
 * If loads do not scatter at all it is the distance of two levels. */
double l2_timer_step(const struct l2_values *values);

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
 * next to none between two. Gives their means, at most `most`. */
void l2_values_levels(const struct l2_values *sorted, double gap, size_t most, double *out_levels,
                      size_t *out_count);

enum {
    L2_PASSES = 4,
    L2_ELEMENTS_MAX = 256,
    L2_SAMPLE_MAX = 16,
    L2_GROUPS = 3, /* of cold jobs and far loads: their means give the spread */
};

/* The latencies that every SM sees in one array after it has loaded it. */
struct l2_hits {
    size_t sms, elements;
    uint32_t *cycles;       /* L2_PASSES rows of `elements` for SM 0, then for SM 1, ... */
    double average, per_ns; /* of long chases: cycles per load, cycles per ns */
};

static inline uint32_t l2_hit(const struct l2_hits *hits, size_t sm, size_t pass, size_t element)
{
    return hits->cycles[(sm * L2_PASSES + pass) * hits->elements + element];
}

/* The parts that were found. Zero-initialised is none. */
struct l2_parts {
    uint32_t count;              /* 0: this method found none */
    int32_t sms[L2_PARTS_MAX];   /* one near each part; the first is SM 0 */
    struct l2_latency far;       /* mean of all far loads */
    double levels[L2_PARTS_MAX]; /* of far loads */
    size_t level_count;
    struct l2_values far_loads; /* single ones; sorted */
    struct l2_values far_lines; /* means over repeats, if noise needs them; sorted */
    double confidence;
    char doubt[L2_DOUBT_MAX]; /* why this is uncertain; empty: it is certain */
    uint8_t *part_of_sm;      /* without copies, else NULL */
    uint8_t *seen_part;       /* by SM: its part + 1, 0 if it was not looked at; NULL: none was */
    uint8_t *home_of_element;
};

void l2_parts_fini(struct l2_parts *parts);

/* Chooses SMs to measure: spread over the GPU and random within that; SM 0 is the first. Returns
 * their number, at most L2_SAMPLE_MAX. */
size_t l2_sample_sms(struct probe_context *context, int32_t *out_sms);

/* Sorts the far loads and sets their mean, spread and levels. near_width: levels closer than this,
 * the scatter of near hits, are slices of one level. */
void l2_parts_set_far(struct l2_parts *parts, double near_width);

/* gap: another part is further away by so many cycles. out_parts must be empty. */
void l2_look_for_homes(const struct l2_hits *hits, double gap, struct l2_parts *out_parts);

#endif
