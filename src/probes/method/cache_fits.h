/* The longest array that never misses in a cache, to the line. */
#ifndef GPUMEMTOPO_PROBES_METHOD_CACHE_FITS_H
#define GPUMEMTOPO_PROBES_METHOD_CACHE_FITS_H

#include "probes/method/cache_sets.h"

/* Sets stray, fits (0 and a doubt if it is not clear) and early. */
int cache_fits_find(struct probe_context *context, const struct study *study,
                    struct cache_sets *sets, struct err *err);

#endif
