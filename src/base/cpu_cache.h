/* The caches of the CPU. */
#ifndef GPUMEMTOPO_BASE_CPU_CACHE_H
#define GPUMEMTOPO_BASE_CPU_CACHE_H

#include <stddef.h>

/* Writes bytes back to memory and drops them from all caches of the CPU: the lines of the first
 * byte, of the one `stride` bytes further, and so on below `count`. Does nothing on CPUs for which
 * it is not known how. */
void cpu_cache_evict(const void *bytes, size_t count, size_t stride);

#endif
