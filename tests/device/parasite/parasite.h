/* What the parasite's kernels and its shim share. Plain C, which nvcc reads too. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_PARASITE_H
#define GPUMEMTOPO_TESTS_DEVICE_PARASITE_H

#include <stdint.h>

enum {
    PARASITE_THREADS = 128,         /* of a block: one warp on each quarter of an SM */
    PARASITE_PIECE_BYTES = 2048,    /* what a warp loads at once: four loads of 16 B per lane */
    PARASITE_LOOK_CYCLES = 1 << 17, /* how often a warp looks at its orders: 66 us. More often, the
                                       slice of L2 that has them would be slower than others */
    TRUTH_THREADS = 512,
    TRUTH_BLOCKS_PER_SM = 2, /* leaves half of the registers and threads of an SM */
    TRUTH_CHUNK_BYTES = 64 << 10,
    TRUTH_WORD = 0x5a5a5a5a,
};

/* What a parasite does at a time: the same as the stream beside it. Reads beside writes, or writes
 * beside reads, would cost main memory much more than their share. */
enum parasite_mode { PARASITE_READS, PARASITE_WRITES, PARASITE_MODES };

/* Words in the memory of the GPU that the host sets. */
struct parasite_orders {
    uint32_t stop; /* the launch that is to end */
    uint32_t mode;
};

/* A warp takes its share of work every `interval_cycles`, until it is told to stop or
 * `limit_cycles` are over. */
struct parasite_work {
    uint64_t base;                            /* memory to take from */
    uint64_t pieces;                          /* there, a power of two */
    uint32_t interval_cycles[PARASITE_MODES]; /* 0: takes nothing */
    uint32_t limit_cycles;
    uint32_t epoch;    /* number of this launch, from 1 on */
    uint32_t keep;     /* whether the memory is to stay in L2 */
    uint64_t orders;   /* struct parasite_orders */
    uint64_t arrived;  /* word: blocks that have begun, of all launches */
    uint64_t resident; /* word of the host: the last launch whose blocks all run */
};

#endif
