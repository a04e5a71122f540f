/* The number of parts that L2 has. There are two methods: for an L2 with copies of far lines in the
 * near part (l2_copies.c), and for one without (l2_homes.c). */
#ifndef GPUMEMTOPO_PROBES_L2_L2_PARTS_H
#define GPUMEMTOPO_PROBES_L2_L2_PARTS_H

#include "probes/l2/l2_values.h"
#include "probes/probe.h"

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
    uint8_t *home_of_element;
};
void l2_parts_fini(struct l2_parts *parts);

/* Chooses SMs to measure: spread over the GPU and random within that; SM 0 is the first. Returns
 * their number, at most L2_SAMPLE_MAX. */
size_t l2_sample_sms(struct probe_context *context, int32_t *out_sms);

/* Sorts the far loads and sets their mean, spread and levels. near_width: levels closer than this,
 * the scatter of near hits, are slices of one level. */
int l2_parts_set_far(struct l2_parts *parts, double near_width, struct err *err);

#endif
