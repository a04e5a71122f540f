/* What the parasite's kernels and its shim share. Plain C, which nvcc reads too. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_PARASITE_H
#define GPUMEMTOPO_TESTS_DEVICE_PARASITE_H

#include <stdint.h>

enum {
    PARASITE_THREADS = 128,      /* of a block: one warp on each quarter of an SM */
    PARASITE_PIECE_BYTES = 2048, /* what a warp loads at once: four loads of 16 B per lane */
    PARASITE_BURST = 64,         /* instructions that a warp issues at once */
    TRUTH_THREADS = 512,
    TRUTH_BLOCKS_PER_SM = 2, /* leaves half of the registers and threads of an SM */
    TRUTH_CHUNK_BYTES = 64 << 10,
    TRUTH_WORD = 0x5a5a5a5a,
    TRUTH_FMA_CHAINS = 4,
};

/* A warp takes its share of work every `interval_cycles`, until the word at `stop` is `epoch` or
 * `limit_cycles` are over. */
struct parasite_work {
    uint64_t base;   /* memory to load from */
    uint64_t pieces; /* there, a power of two */
    uint32_t interval_cycles, limit_cycles;
    uint32_t epoch;                /* number of this launch, from 1 on */
    uint32_t keep;                 /* whether the memory is to stay in L2 */
    uint64_t stop, arrived, taken; /* words in the memory of the GPU */
    uint64_t resident;             /* word of the host: the last launch whose blocks all run */
};

#endif
