/* Internal to the judge: error counters beside those of other GPUs. */
#ifndef GPUMEMTOPO_JUDGE_COUNTERS_H
#define GPUMEMTOPO_JUDGE_COUNTERS_H

#include "judge/stages.h"

/* A counter is far from those of the model if it is at least this many times their upper quartile.
 * Most GPUs have none, and drivers are loaded for hours or for a year. */
enum { COUNTER_FAR = 100 };

/* What the other GPUs of a model have. */
struct counter_peers {
    size_t n;     /* GPUs whose counter is known */
    double upper; /* upper quartile; NaN if n is 0 */
};
struct counter_peers counter_peers_of(double *values, size_t n); /* reorders the values */

/* Whether there are enough GPUs to compare with. */
bool counter_can_compare(const struct counter_peers *peers);

/* False if there are not. */
bool counter_is_far(const struct counter_peers *peers, double value);

#endif
