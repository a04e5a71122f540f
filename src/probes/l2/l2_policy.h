/* Which lines of L2 go when new ones come, as far as whole areas of it tell. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_POLICY_H
#define GPUMEMTOPO_PROBES_L2_L2_POLICY_H

#include "probes/method/replacement.h"

/* An area is filled, more is filled, then the area is timed. */
enum l2_policy_pattern {
    L2_POLICY_PLAIN, /* the area is loaded once */
    L2_POLICY_AGAIN, /* once more before the new lines come */
    L2_POLICY_OFTEN, /* several times, and so much comes that LRU keeps nothing of it */
    L2_POLICY_PATTERNS
};

struct l2_policy {
    enum replacement_policy policy;
    double kept[L2_POLICY_PATTERNS]; /* share of the area that is still there */
    uint32_t timed_loads;            /* of the last pattern; the others have about as many */
};

/* The study must have its line and its capacity. */
int l2_measure_policy(struct probe_context *context, const struct l2_study *l2,
                      struct l2_policy *out_policy, struct err *err);

/* The policy that explains what is kept. */
void l2_judge_policy(struct l2_policy *policy);

#endif
