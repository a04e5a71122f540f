/* Mean latency of each SM to L2, independent of which lines were drawn: lines on both sides of the
 * die count equally. No device is needed. */
#ifndef GPUMEMTOPO_PROBES_METHOD_DIE_SIDES_H
#define GPUMEMTOPO_PROBES_METHOD_DIE_SIDES_H

#include <stddef.h>

#include "base/err.h"

/* cycles: by SM, then by line. out_means: per SM. out_error: standard error of one of them, as far
 * as two halves of the lines show it. 0 or -ENOMEM. */
int die_sides_means(const double *cycles, size_t sms, size_t lines, double *out_means,
                    double *out_error, struct err *err);

#endif
