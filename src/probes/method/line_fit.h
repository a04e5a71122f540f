/* Finds the line that explains what stayed resident at several strides: pure functions.
 *
 * Elements up to a line apart touch every line, and the resident ones span the whole capacity.
 * Elements further apart skip lines: as many as there are tags stay resident, and they span
 * more. */
#ifndef GPUMEMTOPO_PROBES_METHOD_LINE_FIT_H
#define GPUMEMTOPO_PROBES_METHOD_LINE_FIT_H

#include "probes/method/resident.h"

enum {
    LINE_OBSERVATIONS_MAX = 64,
    LINE_UNITS_MAX = 64,   /* longest line, in fetch units */
    LINE_STRIDE_MAX = 255, /* longest stride */
};

struct line_observation {
    uint64_t units; /* stride, in fetch units, up to LINE_STRIDE_MAX */
    struct resident_layout layout;
    struct resident_share share;
};

struct line_evidence {
    struct line_observation items[LINE_OBSERVATIONS_MAX];
    size_t count;
    double systematic; /* share by which any span may be wrong, however often it was measured */
};

/* A capacity in fetch units, and its standard error. */
struct line_span {
    double units, error;
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

#endif
