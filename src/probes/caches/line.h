/* The line of a cache: the largest stride at which the capacity, counted as span, does not grow
 * yet; and the pure functions that find it from what stayed resident at several strides.
 *
 * Elements up to a line apart touch every line, and the resident ones span the whole capacity.
 * Elements further apart skip lines: as many as there are tags stay resident, and they span
 * more. */
#ifndef GPUMEMTOPO_PROBES_CACHES_LINE_H
#define GPUMEMTOPO_PROBES_CACHES_LINE_H

#include "probes/caches/resident.h"
#include "probes/probe.h"

/* Below this confidence the line is reported as noisy. */
extern const double LINE_SURE;

/* At stage STUDY_REGION: sets line_bytes, line_confidence, touch_bytes, the contrast that decides,
 * and a first value of resident_bytes. -ENODATA when nothing stays resident. */
int line_measure(struct probe_context *context, struct study *study, struct err *err);

/* At stage STUDY_REGION, cheaply: sets guess_bytes and touch_bytes to four, eight or two fetch
 * units if a check confirms it, else touch_bytes to one; and a first value of resident_bytes. */
int line_guess(struct probe_context *context, struct study *study, struct err *err);

/* Measures the deciding contrast once more: the line if that confirms it, else another one. */
int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 uint32_t *out_n, struct err *err);

enum {
    LINE_OBSERVATIONS_MAX = 64,
    LINE_UNITS_MAX = 64,   /* longest line, in fetch units */
    LINE_STRIDE_MAX = 255, /* longest stride */
};

/* A capacity in fetch units, and its standard error. */
struct line_span {
    double units, error;
};

/* What stayed resident of an oversized array; or, of a sweep of sizes, the largest array without a
 * miss. */
struct line_observation {
    uint64_t units; /* stride, in fetch units, up to LINE_STRIDE_MAX */
    struct resident_layout layout;
    struct resident_share share;
    struct line_span reach; /* instead of layout and share, and the step of the sweep; units 0:
                               not from a sweep */
    bool open;              /* no array of the sweep missed: it may reach further */
};

struct line_evidence {
    struct line_observation items[LINE_OBSERVATIONS_MAX];
    size_t count;
    double systematic; /* share by which any span may be wrong, however often it was measured */
    uint64_t multiple; /* lines are multiples of this many units; 0: of one */
};

/* A line of this many fetch units. What is loaded last stays resident under any policy; under LRU
 * everything resident was loaded last. */
struct line_hypothesis {
    double line;
    bool lru;
};

/* The span of the resident elements. */
struct line_span line_span_of(const struct line_observation *o, struct line_hypothesis h,
                              double systematic);

/* Capacity in fetch units from all strides up to the line; 0 if there are none. */
struct line_span line_capacity(const struct line_evidence *e, struct line_hypothesis h);

/* How badly a line of this many fetch units explains all observations, under the policy that
 * explains them better: a sum of squared standard errors. */
double line_misfit(const struct line_evidence *e, uint64_t units,
                   struct line_hypothesis *out_better);

struct line_verdict {
    struct line_hypothesis best, second;
    double clear; /* misfit of the second less that of the best */
};

struct line_verdict line_judge(const struct line_evidence *e);

/* 0..1 */
double line_confidence(const struct line_verdict *verdict);

#endif
