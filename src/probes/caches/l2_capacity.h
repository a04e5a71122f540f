/* Fills L2 with an array and times a sample of it; and what stays resident in L2: its capacity and
 * line. */
#ifndef GPUMEMTOPO_PROBES_CACHES_L2_CAPACITY_H
#define GPUMEMTOPO_PROBES_CACHES_L2_CAPACITY_H

#include "probes/probe.h"

/* All warps of an SM fill L2 with an array, then one thread times a sample of it; for up to three
 * sizes in one job, where the array grows from one to the next. The sample is spread evenly over
 * the first `window` share of the smallest size: what was filled first is evicted first. */
enum { L2_LOOK_SIZES = 3 };

struct l2_look {
    uint64_t sizes[L2_LOOK_SIZES]; /* bytes, rising */
    size_t count;
    uint64_t stride_bytes;
    int32_t sm;     /* the SM that fills and times */
    double window;  /* 0..1 */
    uint32_t part;  /* one job times at most 1 / part of the elements, since misses evict */
    uint32_t loads; /* in the sample, about */
};

struct l2_shares {
    double beyond_near; /* share of loads served by the far part or by main memory */
    double missed;      /* share served by main memory */
    double far_missed; /* share served by main memory behind the far part; without copies: missed */
    double resident;   /* share held by what is searched first: the near part, or all of L2 */
    double error;      /* the standard error of resident */
    uint32_t n;
};

/* Shares corrected for misjudged latencies, 0..1; out_shares: one per size. */
int l2_look(struct probe_context *context, const struct l2_study *l2, const struct l2_look *look,
            struct l2_shares *out_shares, struct err *err);

/* The shares of samples of any job: number `size` of each answer. */
struct l2_shares l2_shares_of(const struct l2_study *l2, const struct device_answer *answers,
                              size_t jobs, size_t size);

/* Stages L2_CAPACITY and L2_LINE. */
int l2_measure_capacity(struct probe_context *context, struct l2_study *l2, struct err *err);

int l2_measure_line(struct probe_context *context, struct l2_study *l2, struct err *err);

/* Counts the tags, or what stays resident, once more; out: the line, or the size, that follows. */
int l2_confirm_line(struct probe_context *context, const struct l2_study *l2,
                    uint64_t *out_line_bytes, struct err *err);

int l2_confirm_capacity(struct probe_context *context, const struct l2_study *l2, double *out_bytes,
                        struct err *err);

#endif
