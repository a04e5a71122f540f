/* How much of an oversized array stays resident: the capacity, whatever the replacement policy. */
#ifndef GPUMEMTOPO_PROBES_CACHES_RESIDENT_H
#define GPUMEMTOPO_PROBES_CACHES_RESIDENT_H

#include "probes/probe.h"

/* What to time: elements a stride apart, a few of which are picked after all were loaded. */
struct resident_layout {
    uint64_t elements, stride;
    uint64_t few; /* picks per round */
    size_t jobs;
};

struct resident_share {
    double hits;  /* 0..1, corrected for misjudged latencies */
    double error; /* standard error if the picks were independent: an upper bound */
    uint32_t n;
};

/* The usual array size over what is presumed to fit. */
extern const double RESIDENT_OVERSIZE;

/* A layout of this many elements, with about per_tag of them in a line, and `oversize` times as
 * many as presumably stay resident; with as many jobs as the wanted precision (standard error, as a
 * share) needs. */
struct resident_layout resident_plan(const struct study *study, double elements, uint64_t stride,
                                     double per_tag, double oversize, double precision);

/* The share of the layout's elements that are still cached after loading all of them. */
int resident_measure_share(struct probe_context *context, const struct study *study,
                           const struct resident_layout *layout, struct resident_share *out_share,
                           struct err *err);

/* The same for an array that is doubled while nearly all of it stays resident. */
int resident_overflow(struct probe_context *context, const struct study *study, double elements,
                      uint64_t stride, double per_tag, double precision,
                      struct resident_layout *out_layout, struct resident_share *out_share,
                      struct err *err);

/* A number of elements `units` fetch units apart, rounded up so that the array does not end inside
 * a line of any usual length. */
double resident_whole(double elements, uint64_t units);

/* The elements that were resident before the sampling began. Each miss of the sampling evicts a
 * line, and with it `per_tag` elements that a later pick may time. */
double resident_elements(const struct resident_layout *layout, const struct resident_share *share,
                         double per_tag);

#endif
