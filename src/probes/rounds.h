/* What was measured several times over the run, merged into one figure each. */
#ifndef GPUMEMTOPO_PROBES_ROUNDS_H
#define GPUMEMTOPO_PROBES_ROUNDS_H

#include "probes/probe.h"

/* A judged figure is measured so often: at the beginning, in the middle and at the end. */
enum { ROUNDS = 3 };

/* Values of one metric over the run. */
struct round_values;

/* Zero-initialised is empty. */
struct rounds {
    struct round_values *items;
    size_t count, capacity;
};

/* Runs a probe that ran before once more. What it gives is kept for the merge, and that it gave
 * nothing too. -EIO: the device is beyond use. */
int rounds_repeat(struct rounds *rounds, struct probe_context *context, const struct probe *probe,
                  struct err *err);

/* Into the measures of the first round: the median or the highest (not of rounds that only
 * confirm), a spread that covers all rounds, their samples together; noisy where they do not agree.
 * 0 or -ENOMEM. */
int rounds_merge(const struct rounds *rounds, struct measures *measures);

void rounds_fini(struct rounds *rounds);

#endif
