/* The banks of a simulated SM's shared memory. */
#ifndef GPUMEMTOPO_DEVICE_SIM_SHARED_MEMORY_H
#define GPUMEMTOPO_DEVICE_SIM_SHARED_MEMORY_H

#include <stdint.h>

enum { SIM_BANKS_MAX = 256 };

/* A bank delivers one of its words, bank_bytes wide, in a pass. Successive pieces of
 * interleave_bytes of the memory lie in successive banks: whole words, or (Kepler in its mode of 4
 * bytes) a half of a word, whose other half follows when all banks have had one. */
struct sim_banks {
    uint32_t count, bank_bytes, interleave_bytes;
    double conflict_cycles; /* that each further pass adds to the latency of a load */
    double pass_cycles;     /* that each pass keeps the memory busy */
    double load_cycles;     /* that a load keeps it busy at least */
};

/* The lanes of a warp that load at once. */
struct sim_lanes {
    uint64_t address; /* of the first lane */
    uint32_t count, stride_bytes, width_bytes;
};

/* How many passes a load takes: in each one, a bank delivers one word to all lanes that want it. As
 * many lanes go together as all banks have words. */
uint32_t shared_banks_passes(const struct sim_banks *banks, const struct sim_lanes *lanes);

#endif
