/* Merges what was measured several times in a run into one figure each. */
#ifndef GPUMEMTOPO_PROBES_ROUNDS_H
#define GPUMEMTOPO_PROBES_ROUNDS_H

#include "probes/probe.h"

/* A judged figure is measured this often: at the beginning, in the middle and at the end. */
enum { ROUNDS = 3 };

/* Values of one metric over the run. */
struct round_values;

/* Zero-initialised is empty. */
struct rounds {
    struct round_values *items;
    size_t count, capacity;
};

/* Runs a probe again. Its results, and missing ones, are kept for the merge. -EIO: the device is
 * unusable. */
int rounds_repeat(struct rounds *rounds, struct probe_context *context, const struct probe *probe,
                  struct err *err);

/* Merges into the measures of the first round: the median or the highest (not of rounds that only
 * confirm), a spread that covers all rounds, and the sum of their samples; noisy if they disagree.
 * 0 or -ENOMEM. */
int rounds_merge(const struct rounds *rounds, struct measures *measures);

void rounds_fini(struct rounds *rounds);

#endif
