/* The banks of a memory, from the distances at which two lanes conflict. */
#ifndef GPUMEMTOPO_PROBES_MEMORY_SHARED_MEMORY_H
#define GPUMEMTOPO_PROBES_MEMORY_SHARED_MEMORY_H

#include <stdint.h>

#include "base/err.h"

enum { BANK_PATTERN_WORDS = 256 };

/* Cycles of a load of two lanes by the words of 4 bytes from one to the other; [0] is not used. */
struct bank_pattern {
    double cycles[BANK_PATTERN_WORDS + 1];
};

/* A bank delivers a word of bank_bytes at a time. Pieces of interleave_bytes lie in successive
 * banks: less than bank_bytes on Kepler in its mode of 4 bytes. */
struct bank_layout {
    uint32_t banks, bank_bytes, interleave_bytes;
};

/* -ENODATA with text when there are no conflicts, when a load lies between a conflict and none, and
 * for a pattern that no such layout has (banks chosen by a hash). */
int bank_pattern_layout(const struct bank_pattern *pattern, struct bank_layout *out_layout,
                        struct err *err);

/* The words that the fullest bank delivers to so many lanes with a word of 4 bytes each. */
uint32_t bank_layout_passes(const struct bank_layout *layout, uint32_t lanes,
                            uint32_t stride_bytes);

#endif
