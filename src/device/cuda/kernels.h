/* What the host and the kernels share: the layout of jobs and results in GPU memory. Plain C, which
 * nvcc reads too. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_KERNELS_H
#define GPUMEMTOPO_DEVICE_CUDA_KERNELS_H

#include <stdint.h>

#ifdef __CUDACC__
#define KERNEL_INLINE __host__ __device__ static inline
#else
#define KERNEL_INLINE static inline
#endif

enum {
    KERNEL_STEPS_MAX = 6,
    KERNEL_BIN_COUNT = 256 + 128 * 16,
    KERNEL_HISTOGRAMS = 2, /* kept in shared memory until the job ends */

    /* Job, histograms and kept latencies in shared memory. A job that times loads through L1 has a
     * small buffer: with KERNEL_STATIC_BYTES and the 1 KiB that the system reserves it is 8 KiB,
     * the smallest carve-out, so that L1 is as large as it can be. Its histograms end earlier:
     * latencies beyond are counted in the last bin, and there are at least KERNEL_SMALL_BINS of
     * them (4096 cycles). */
    KERNEL_BUFFER_BYTES = 24 * 1024,
    KERNEL_SMALL_BYTES = 7 * 1024 - 256,
    KERNEL_SMALL_BINS = 256 + 128 * 4,
    KERNEL_JOB_BYTES = 768,

    KERNEL_CONSTANT_BYTES = 64 * 1024,   /* the whole user bank, so that it begins at offset 0 */
    KERNEL_STREAM_CONSTANT_BYTES = 2048, /* that streams read */
    KERNEL_STATIC_BYTES = 256,           /* at least what the chase kernels declare in addition */
    KERNEL_WRITTEN_WORD = 0x5a5a5a5a,    /* what streams write: not 0xffffffff, see chase.cu */
    KERNEL_TURN_CLOSED = 1 << 16,
};

/* The same values as enum device_step_kind. launch.c asserts this and the following one. */
enum kernel_kind { KERNEL_WARM, KERNEL_CHASE, KERNEL_AVERAGE, KERNEL_FILL };

/* The same values as enum device_pattern. checks.c asserts this. */
enum kernel_pattern {
    KERNEL_PATTERN_ADDRESS,
    KERNEL_PATTERN_INVERSE,
    KERNEL_PATTERN_WALKING,
    KERNEL_PATTERN_RANDOM,
    KERNEL_PATTERN_COUNT
};

KERNEL_INLINE uint32_t kernel_mixed(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    return x * 0x846ca68b;
}

/* What a pattern has at an offset, a multiple of 8: a word of 8 bytes. */
KERNEL_INLINE uint64_t kernel_pattern_word(enum kernel_pattern pattern, uint64_t offset,
                                           uint64_t seed)
{
    uint64_t i = offset >> 3;
    if (pattern == KERNEL_PATTERN_ADDRESS)
        return offset;
    if (pattern == KERNEL_PATTERN_INVERSE)
        return ~offset;
    if (pattern == KERNEL_PATTERN_WALKING)
        return UINT64_C(1) << (i & 63);
    uint32_t low = kernel_mixed((uint32_t)i ^ (uint32_t)seed);
    return (uint64_t)(low ^ (uint32_t)(seed >> 32)) << 32 | kernel_mixed(low + (uint32_t)(i >> 32));
}

/* A region of the memory that is tested: `count` elements of 16 bytes. */
struct kernel_region {
    uint64_t base, offset; /* its address; its place in the memory */
    uint64_t count;
    uint64_t seed;
    uint64_t result; /* address of its kernel_region_result */
};

/* wrong_offset is UINT64_MAX if no word was wrong. */
struct kernel_region_result {
    uint64_t wrong_words, wrong_offset, wrong_bits, cycles[2]; /* by round of memory_chase */
};

/* A pass of the March test over `count` elements of 16 bytes. A word that is read has its
 * background, or, if `inverted` is all ones, the inverse of that; the inverse of what is expected
 * is written. */
struct kernel_march {
    uint64_t base, count;
    uint64_t seed, stripes; /* the background: drawn by offset and seed, or these bits */
    uint64_t inverted;
    uint64_t log; /* address of a kernel_march_log; 0: what is wrong does not count */
    uint32_t drawn, read;
};

KERNEL_INLINE uint64_t kernel_march_word(const struct kernel_march *march, uint64_t offset)
{
    uint64_t word = march->drawn ? kernel_pattern_word(KERNEL_PATTERN_RANDOM, offset, march->seed)
                                 : march->stripes;
    return word ^ march->inverted;
}

enum { KERNEL_WRONG_WORDS = 1024 };
struct kernel_march_log {
    uint64_t wrong; /* of these the first KERNEL_WRONG_WORDS are kept */
    uint64_t first; /* place of the lowest one; UINT64_MAX: none */
    struct kernel_wrong_word {
        uint64_t offset, expected, found, read;
    } words[KERNEL_WRONG_WORDS];
};

/* What a check does (check.cu). One block per SM. */
struct kernel_check {
    uint64_t results; /* address of one kernel_check_result per block */
    uint64_t words;   /* check_atomics: address of CHECK_ATOMIC_WORDS words per block */
    uint32_t seed, periods;
    uint32_t section_words; /* check_shared: of each warp, a multiple of 32 */
    uint32_t warp_mask;
};

enum { KERNEL_CHECK_WARPS = 32 };
struct kernel_check_result {
    uint64_t hashes[KERNEL_CHECK_WARPS], cycles[KERNEL_CHECK_WARPS]; /* by warp */
    uint32_t sm_id, reserved;
};

/* What a screen does (screen.cu). One block per SM; results as those of a check. */
enum kernel_screen_force { KERNEL_SCREEN_TOGGLES, KERNEL_SCREEN_SETS, KERNEL_SCREEN_CLEARS };
struct kernel_screen_flip {
    uint32_t sm, thread;  /* the id of the hardware; of its block */
    uint32_t word, every; /* words whose number gives this remainder, divided by `every` */
    uint32_t bits;        /* that are wrong; 0: none */
    uint32_t force;       /* enum kernel_screen_force */
    uint32_t chance;      /* of each visit, in 2^-32; not of operands */
};
struct kernel_screen {
    uint64_t results;  /* address of one kernel_check_result per block */
    uint64_t data;     /* address of chunks, for the paths that read memory; then of one per warp */
    uint64_t texture;  /* of the data */
    uint64_t trace;    /* where one warp stores each word it takes, for all its lanes; 0: nowhere */
    uint32_t trace_sm; /* of that warp, by the hardware's id */
    uint32_t trace_warp; /* its number in the block */
    uint32_t periods, launch;
    uint32_t set;          /* of operands */
    uint32_t period_words; /* numbers of words in a period */
    uint32_t chunks, l1_chunks;
    uint32_t inverted;              /* 0 or 0xffffffff: the bits of the data */
    struct kernel_screen_flip flip; /* the armed build only */
};

/* Maps of the SMs (sm_map.cu). Every SM is full of blocks, which wait for each other at the gate.
 */
enum {
    KERNEL_SM_MAP_THREADS = 1024,
    KERNEL_SM_MAP_UNROLL = 4,
    KERNEL_SM_MAP_CHUNK_BYTES = 32 * 16 * KERNEL_SM_MAP_UNROLL, /* that a warp reads at once */
    KERNEL_SM_MAP_PERIOD = 1 << 16, /* cycles in which a warp reads the same chunks */
    KERNEL_SM_MAP_SLOT_BYTES = 512, /* of lines that one SM loads; beyond the reach of a fetch */
    KERNEL_SM_MAP_PAGE_BYTES = 2 << 20,
    KERNEL_SM_MAP_SLOTS = 16384, /* of a region: four pages */
};

/* By the hardware's id of an SM; sm: its index, UINT32_MAX if it has none. */
struct kernel_sm_place {
    uint32_t sm, turn;
};

/* Zeroed before the first launch. */
struct kernel_sm_gate {
    uint32_t came;   /* blocks of all launches so far */
    uint32_t closed; /* 1: some did not come in time, so nothing is measured */
};

struct kernel_sm_read {
    uint64_t base;          /* of the memory that is read */
    uint64_t places, gate;  /* addresses */
    uint64_t results;       /* address of a kernel_sm_result per SM */
    uint64_t readers;       /* address of a word: blocks that have read in all launches */
    uint32_t expected;      /* blocks of all launches with this one */
    uint32_t turn;          /* the SMs that read in this launch; UINT32_MAX: all, uncounted */
    uint32_t earlier;       /* blocks that have read in launches before */
    uint32_t shares, span;  /* of the memory; chunks of a share */
    uint32_t skip_cycles;   /* at the beginning, not counted */
    uint32_t window_cycles; /* counted */
    uint32_t seed;
};
struct kernel_sm_result {
    uint64_t bytes, ns;
};

struct kernel_sm_memory {
    uint64_t base, region_bytes;
    uint64_t places, gate;
    uint64_t claims;  /* address of a word per SM, zeroed */
    uint64_t results; /* address of the cycles: by SM, then by region */
    uint32_t expected;
    uint32_t sms, regions, loads;
};

/* Atomics that add 0 to lines of a footprint. */
struct kernel_sm_atomics {
    uint64_t base;
    uint64_t places, gate, claims, results; /* as above; by line */
    uint32_t expected;
    uint32_t sms, lines, atomics;
    uint32_t slot_mask; /* slots of the footprint, a power of two, less 1 */
    uint32_t zero;      /* 0, which the compiler does not know */
};

/* Latency under load. */
enum {
    KERNEL_LOADED_SLOTS = 1 << 17, /* of KERNEL_SM_MAP_SLOT_BYTES: for cold lines */
    KERNEL_LOADED_LINES = 512,     /* slots that one SM times again and again in L2 */
    KERNEL_LOADED_LOADS_MAX = 2048,
    KERNEL_LOADED_WARPS = 16, /* of a block that read: together they have 32 KiB in flight */
};
struct kernel_loaded {
    uint64_t base, slots;  /* addresses: of what is read; of the slots */
    uint64_t places, gate; /* turn 1: times loads */
    uint64_t claims;       /* a word per SM, zeroed */
    uint64_t result;       /* kernel_loaded_result */
    uint64_t first_chunk;  /* cold: where reading begins */
    uint32_t expected;
    uint32_t cold, quiet;
    uint32_t chunks, first_slot;
    uint32_t skip_cycles, window_cycles, gap_cycles;
};
/* Zeroed. Times of those that read are of the last that began and the first that ended; of those
 * that time loads of the first and the last. The first of two or more is kept as its complement,
 * the largest of which is the smallest. */
struct kernel_loaded_result {
    uint64_t chunks, all_chunks; /* in the window, altogether */
    uint64_t loads, cycles, squares;
    uint64_t window_ns; /* sum over those that time loads */
    uint64_t read_begin_ns, read_not_end_ns, chase_not_begin_ns, chase_end_ns;
};

/* The way between the parts of L2: which lines are at home where, and work on those of one home. */
enum {
    KERNEL_WAY_LINE_BYTES = 128,
    KERNEL_WAY_CHUNK_LINES = KERNEL_SM_MAP_THREADS * 16 / KERNEL_WAY_LINE_BYTES,
    KERNEL_WAY_AHEAD = 2, /* tickets that a block takes before it works */
    KERNEL_WAY_IDLE = 2,  /* in the turn of an SM, beside its part: it does not work */
    KERNEL_WAY_TRIES = 2,
    KERNEL_WAY_ROUNDS_MAX = 32,
};
struct kernel_way {
    uint64_t base;         /* of the lines */
    uint64_t places, gate; /* turn: the part, and KERNEL_WAY_IDLE */
    uint64_t claims;       /* a word per SM, zeroed */
    uint64_t lists;        /* of the lines of home 0, then of home 1: uint32_t, `lines` each */
    uint64_t found;        /* how many each has: two uint32_t, zeroed */
    uint64_t result;       /* kernel_way_result of this launch */
    uint32_t expected;
    uint32_t lines, sms;
    uint32_t split_cycles; /* sm_map_homes */
    uint32_t far, parts;
    uint32_t passes;    /* over the lines of a home */
    uint32_t blocks[2]; /* of each part that work */
    uint32_t zero;      /* 0, which the compiler does not know */
};
/* By part; zeroed. When the tickets were taken between which the rate counts (kernel_way_mark). */
struct kernel_way_result {
    uint64_t begin_ns[2], end_ns[2];
    uint32_t counter[2]; /* of tickets */
};

/* All blocks take some tickets at once. Those that follow are taken as work is done: the first of
 * them after `quarters` quarters of these. So beginning and end, when not all blocks work, are left
 * out. */
KERNEL_INLINE uint32_t kernel_way_mark(uint32_t tickets, uint32_t blocks, uint32_t quarters)
{
    const uint32_t at_once = KERNEL_WAY_AHEAD * blocks;
    return tickets < at_once ? tickets : at_once + (tickets - at_once) / 4 * quarters;
}

/* Clusters and bulk copies (cluster.cu). Of shared memory, a block uses a part that other blocks
 * read or that bulk copies fill, one that bulk copies to other blocks are made from (those of
 * global memory fill it too), and the barriers of the copies. */
enum {
    KERNEL_CLUSTER_MAX = 16,
    KERNEL_CLUSTER_LOADS_STEP = 32,
    KERNEL_CLUSTER_READ_THREADS = 1024,
    KERNEL_CLUSTER_READ_UNROLL = 4,
    KERNEL_CLUSTER_PART_BYTES = 64 << 10,
    KERNEL_CLUSTER_FLIGHTS_MAX = 32,
    KERNEL_CLUSTER_SHARED_BYTES = 2 * KERNEL_CLUSTER_PART_BYTES + 1024,
};
struct kernel_cluster {
    uint64_t gate, results;         /* addresses; one kernel_cluster_result per block */
    uint64_t base, footprint_bytes; /* bulk_copy: memory that is copied from */
    uint32_t expected;              /* blocks */
    uint32_t count, bytes, in_flight;
    uint32_t stride_bytes; /* bulk_copy: from one copy's memory to the next one's */
    uint32_t warm;         /* bulk_copy: 1: all copies once untimed before */
};
struct kernel_cluster_result {
    uint64_t cycles[KERNEL_CLUSTER_MAX]; /* cluster_loads: by block; else the first one */
    uint64_t begin_ns, end_ns;
    uint32_t sm_id, at_once; /* 1: all blocks of the launch ran at once */
};

/* Sustained load. A block has as many threads that compute as threads that read memory. Each of the
 * latter reads KERNEL_LOAD_UNROLL elements of 16 bytes at once: together, a chunk. */
enum {
    KERNEL_LOAD_THREADS = 512,
    KERNEL_LOAD_READERS = 256,
    KERNEL_LOAD_UNROLL = 8,
    KERNEL_LOAD_CHUNK_BYTES = KERNEL_LOAD_READERS * KERNEL_LOAD_UNROLL * 16,
};

/* The same values as enum device_load_unit. load.c asserts this. */
enum kernel_load_unit { KERNEL_LOAD_FP32, KERNEL_LOAD_MMA, KERNEL_LOAD_WGMMA };

/* What the threads of a launch do: all of it, except in tests. */
enum { KERNEL_LOAD_COMPUTES = 1, KERNEL_LOAD_READS = 2 };

struct kernel_load {
    uint64_t base, chunks; /* the memory that is read, in chunks of KERNEL_LOAD_CHUNK_BYTES */
    uint64_t first_chunk;
    uint64_t result; /* address of the kernel_load_result */
    uint32_t rounds; /* of computing, which decide how long the launch takes */
    uint32_t what;   /* KERNEL_LOAD_COMPUTES, KERNEL_LOAD_READS */
};

/* Added up over all launches. */
struct kernel_load_result {
    uint64_t operations, bytes;
    uint64_t cycles, elapsed_ns; /* of block 0 */
    uint32_t unit;               /* enum kernel_load_unit */
    uint32_t sink;               /* keeps the compiler from leaving work out */
};

/* The same values as enum device_path. */
enum kernel_path {
    KERNEL_GLOBAL_CA,
    KERNEL_GLOBAL_CG,
    KERNEL_READ_ONLY,
    KERNEL_TEXTURE,
    KERNEL_CONSTANT,
    KERNEL_SHARED,
    KERNEL_HOST,
    KERNEL_PATH_COUNT
};

/* How a step finds the next element: by adding the stride, by the value that it loaded, or by a
 * permutation. */
enum kernel_order { KERNEL_ASCENDING, KERNEL_CHAINED, KERNEL_PERMUTED };

/* Addresses are in the unit of the path: bytes of the GPU's address space on the global paths and
 * for host memory, bytes from the beginning of the constant bank or of the shared image, elements
 * of 4 bytes in the texture. */
struct kernel_step {
    uint64_t first;       /* address of the first load */
    uint64_t base;        /* address of element 0 */
    uint64_t stride;      /* between elements */
    uint64_t span;        /* subtracted after the last element of a pass */
    uint64_t lane_stride; /* between the lanes of the warp */
    uint64_t output;      /* KERNEL_CHASE only: where histogram and kept latencies go */
    uint32_t kind;
    uint32_t path;     /* enum kernel_path */
    uint32_t order;    /* enum kernel_order */
    uint32_t key;      /* of the permutation */
    uint32_t position; /* of the first element in it */
    uint32_t warp;
    uint32_t lanes;
    uint32_t loads;
    uint32_t left;        /* loads to the end of the first pass */
    uint32_t pass;        /* loads of a whole pass */
    uint32_t keep;        /* latencies kept */
    uint32_t keep_at;     /* where, in words of the buffer */
    uint32_t bins_at;     /* where the histogram is, in words of the buffer */
    uint32_t bins;        /* of it */
    uint32_t split;       /* not 0: of kept latencies only whether they are above, a byte each */
    uint32_t copied_late; /* no other step uses this buffer: it is copied out when the job ends */
    uint32_t index;       /* of the step in its job */
};

/* The steps that one block executes: all steps of a job, or those on its SM if the job runs on two
 * SMs. */
struct kernel_job {
    struct kernel_step steps[KERNEL_STEPS_MAX];
    uint64_t image;  /* initial content of the shared arrays; 0: zeros */
    uint64_t result; /* device address of a struct kernel_result */
    uint64_t turn;   /* device address of the struct kernel_turn of both blocks; 0: one block */
    uint32_t image_bytes;
    uint32_t step_count;
    uint32_t threads; /* of the block */
    uint32_t reserved;
};

/* How the two blocks of a job take turns; zeroed before a launch. Each has its own lines in L2, so
 * that a waiting block does not slow down the timed loads of another. */
struct kernel_turn {
    uint32_t came; /* blocks that have come; KERNEL_TURN_CLOSED: the first one stopped waiting */
    uint32_t step; /* the step that may begin */
    uint32_t apart[254];
};

struct kernel_result {
    uint64_t cycles[KERNEL_STEPS_MAX];
    uint64_t elapsed_ns[KERNEL_STEPS_MAX];
    uint32_t sm_id;
    uint32_t done; /* number of steps that ran */
};

/* A chain to be written: each element points to the next in the order. */
struct kernel_link {
    uint64_t base;   /* address of element 0 */
    uint64_t stride; /* bytes */
    uint64_t origin; /* subtracted from what is stored: 0 for pointers */
    uint32_t count;
    uint32_t permuted; /* else ascending */
    uint32_t key;
    uint32_t shift; /* of stored values, to the right: 0 for pointers, 2 for texture elements */
    uint32_t wide;  /* true: 8 bytes are stored, else 4 */
};

/* A permutation of 0 .. count - 1 that host and GPU can compute without a table: a Feistel network
 * over the next power of two, repeated until the value is below count. */
enum { KERNEL_FEISTEL_ROUNDS = 4 };

KERNEL_INLINE uint32_t kernel_feistel_bits(uint32_t count)
{
    uint32_t bits = 2;
    while (bits < 32 && count > (uint32_t)1 << bits)
        bits++;
    return bits;
}

KERNEL_INLINE uint32_t kernel_mix(uint32_t value, uint32_t key, uint32_t round)
{
    value = (value ^ key) * 0x9e3779b1u + round * 0x85ebca77u;
    value ^= value >> 15;
    value *= 0x2c1b3c6du;
    return value ^ value >> 13;
}

/* The two halves are mixed in turn; with an odd number of bits they differ in size. */
KERNEL_INLINE uint32_t kernel_permute(uint32_t index, uint32_t count, uint32_t key)
{
    const uint32_t bits = kernel_feistel_bits(count), low_bits = bits / 2;
    const uint32_t low_mask = ((uint32_t)1 << low_bits) - 1;
    const uint32_t high_mask = ((uint32_t)1 << (bits - low_bits)) - 1;
    do {
        uint32_t low = index & low_mask, high = index >> low_bits;
        for (uint32_t round = 0; round < KERNEL_FEISTEL_ROUNDS; round += 2) {
            low ^= kernel_mix(high, key, round) & low_mask;
            high ^= kernel_mix(low, key, round + 1) & high_mask;
        }
        index = high << low_bits | low;
    } while (index >= count);
    return index;
}

KERNEL_INLINE uint32_t kernel_unpermute(uint32_t index, uint32_t count, uint32_t key)
{
    const uint32_t bits = kernel_feistel_bits(count), low_bits = bits / 2;
    const uint32_t low_mask = ((uint32_t)1 << low_bits) - 1;
    const uint32_t high_mask = ((uint32_t)1 << (bits - low_bits)) - 1;
    do {
        uint32_t low = index & low_mask, high = index >> low_bits;
        for (uint32_t round = KERNEL_FEISTEL_ROUNDS; round > 0; round -= 2) {
            high ^= kernel_mix(low, key, round - 1) & high_mask;
            low ^= kernel_mix(high, key, round - 2) & low_mask;
        }
        index = high << low_bits | low;
    } while (index >= count);
    return index;
}

/* device_bin_of, for the GPU. */
KERNEL_INLINE uint32_t kernel_bin_of(uint32_t cycles)
{
    if (cycles < 256)
        return cycles;
#ifdef __CUDA_ARCH__
    uint32_t octave = 31 - (uint32_t)__clz((int)cycles);
#else
    uint32_t octave = 31 - (uint32_t)__builtin_clz(cycles);
#endif
    uint32_t bin = 256 + (octave - 8) * 128 + ((cycles >> (octave - 7)) & 127);
    return bin < KERNEL_BIN_COUNT ? bin : KERNEL_BIN_COUNT - 1;
}

/* Loads of shared memory by all warps of a block at once. */
enum {
    KERNEL_SHARED_WARPS = 32,
    KERNEL_SHARED_UNROLL = 16,
    KERNEL_SHARED_PLACES = 8,
    KERNEL_SHARED_PLACE_BYTES = 1024,
};
struct kernel_shared_load {
    uint64_t result; /* struct kernel_shared_result */
    uint32_t lanes, lane_stride_bytes;
    uint32_t bytes;   /* of shared memory that is loaded */
    uint32_t repeats; /* of KERNEL_SHARED_UNROLL loads */
};
struct kernel_shared_result {
    uint64_t begin[KERNEL_SHARED_WARPS], end[KERNEL_SHARED_WARPS]; /* by the clock of the SM */
};

/* A stream by ticket: some passes over all chunks with equal work per block, then tickets, each for
 * a chunk. A copy goes from these chunks to as many behind them. */
struct kernel_tickets {
    uint64_t base;    /* of the chunks */
    uint64_t counter; /* of tickets: uint32_t, 0 at the start */
    uint64_t times;   /* struct kernel_block_times, one per block */
    uint64_t sink;
    uint32_t chunks, chunk_bytes;
    uint32_t equal_passes;
    uint32_t tickets; /* altogether: whole passes over all chunks */
};
struct kernel_block_times {
    uint64_t begin_ns, end_ns;
    uint32_t sm_id, unused;
};

#endif
