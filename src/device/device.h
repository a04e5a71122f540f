/* How a probe reaches a GPU: jobs in, raw samples out. Backends: sim, cuda, replay.
 *
 * A probe asks for work, not for a kernel. The usual unit of work is a *job* (job.h). */
#ifndef GPUMEMTOPO_DEVICE_DEVICE_H
#define GPUMEMTOPO_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "catalogue/screens.h"
#include "device/job.h"
#include "schema/facts.h"

struct device;
struct device_shared_load; /* shared_load.h */
struct device_shared_load_answer;
struct device_straight; /* straight.h */
struct device_straight_answer;
struct device_walk;
struct device_walk_answer;

/* Bandwidth: every thread streams. */
enum device_stream_kind {
    DEVICE_STREAM_READ,
    DEVICE_STREAM_WRITE,
    DEVICE_STREAM_COPY, /* bytes count twice: read and written */
    DEVICE_STREAM_H2D,
    DEVICE_STREAM_D2H,
    DEVICE_STREAM_BIDIR, /* H2D and D2H at once, bytes of both */
    /* As STREAM does, on numbers of 8 bytes; bytes of all arrays count. Accesses of 16 bytes. */
    DEVICE_STREAM_MUL,   /* b = 3 a */
    DEVICE_STREAM_ADD,   /* c = a + b */
    DEVICE_STREAM_TRIAD, /* c = a + 3 b */
    DEVICE_STREAM_KIND_COUNT
};

static inline bool device_stream_uses_host(enum device_stream_kind kind)
{
    return kind >= DEVICE_STREAM_H2D && kind <= DEVICE_STREAM_BIDIR;
}

/* How many arrays of equal size the footprint of a kernel consists of; the last one is written. */
static inline uint32_t device_stream_arrays(enum device_stream_kind kind)
{
    return kind >= DEVICE_STREAM_ADD                                 ? 3
           : kind == DEVICE_STREAM_COPY || kind == DEVICE_STREAM_MUL ? 2
                                                                     : 1;
}
struct device_stream {
    enum device_stream_kind kind;
    enum device_path path; /* read: any but HOST; write: GLOBAL_CA, GLOBAL_CG or SHARED */
    /* Of all blocks together (GLOBAL_CG), or per block (all others: memories and caches of an SM).
     * GLOBAL_CA: all blocks read the same memory, and each writes its own. CONSTANT: every thread
     * loads all of it, the same words as the others at the same time. */
    uint64_t footprint_bytes;
    uint64_t total_bytes; /* moved in total: the footprint is passed over repeatedly. Less than
                             the footprint (GLOBAL_CG only): so many bytes of it, once, right
                             after all of it was read */
    uint32_t width_bytes; /* of one access: 1, 2, 4, 8 or 16 */
    uint32_t threads;     /* per block */
    uint32_t blocks;      /* 0: chosen by the backend */
    uint32_t unroll;      /* independent accesses in flight per thread; 0: chosen by the backend */
};
struct device_stream_answer {
    uint64_t bytes;
    uint64_t elapsed_ns;
};

/* A stream of global memory whose work is handed out in chunks, as blocks ask for it: no SM waits
 * for another one. Accesses of 16 bytes, past L1. */
struct device_tickets {
    enum device_stream_kind kind; /* READ, WRITE or COPY */
    uint64_t footprint_bytes;     /* rounded down to whole chunks */
    uint64_t total_bytes; /* rounded down to whole passes over the footprint, at least one */
    uint32_t threads;     /* per block, whole warps */
    uint32_t blocks_per_sm;
    uint32_t unroll; /* independent accesses in flight per thread: 1, 2, 4 or 8 */
    uint32_t chunk_bytes;
    uint32_t equal_percent; /* of the passes are made before, with equal work for each block */
    bool ends;              /* when each SM ended is wanted */
};
struct device_tickets_answer {
    uint64_t bytes, elapsed_ns;
    /* By SM: from the beginning of the first block to the end of its last block. */
    uint64_t *end_ns;
    size_t end_count; /* 0: not wanted */
};

/* The test of the whole memory: all that can be had is written with a pattern, read back and
 * compared, region by region, with each pattern in turn. */
enum device_pattern {
    DEVICE_PATTERN_ADDRESS, /* each word of 8 bytes is its offset in the memory */
    DEVICE_PATTERN_INVERSE, /* the same, every bit inverted */
    DEVICE_PATTERN_WALKING, /* one bit is set: the next one in the next word */
    DEVICE_PATTERN_RANDOM,  /* drawn by offset and seed */
    DEVICE_PATTERN_COUNT
};
enum { DEVICE_REGION_MIN = 2 << 20 }; /* bytes */
enum { DEVICE_CHASES = 2 };           /* rounds of loads: other places, another SM */
struct device_memory_test {
    uint32_t patterns;     /* how many of them, in the order of enum device_pattern */
    uint64_t region_bytes; /* a power of two, DEVICE_REGION_MIN or more */
    uint32_t loads; /* dependent loads at random places of each region, timed together; 0: none */
    uint64_t seed;
};
struct device_region {
    uint64_t bytes; /* region_bytes, or less: the last one */
    uint64_t write_ns[DEVICE_PATTERN_COUNT], read_ns[DEVICE_PATTERN_COUNT];
    uint64_t wrong_words;           /* of 8 bytes; counted in every pattern anew */
    uint64_t wrong_offset;          /* of the lowest one, from the beginning of the region */
    uint64_t wrong_bits;            /* set where a bit was wrong in any word */
    uint64_t cycles[DEVICE_CHASES]; /* of all `loads`, by the clock of an SM; of full regions only;
                                     * 0: not measured */
};
/* Error counters of the memory since the driver was loaded. */
struct device_ecc {
    uint64_t corrected, uncorrected;
};
struct device_memory_map {
    uint64_t free_bytes; /* before the test */
    struct device_region *regions;
    size_t region_count;
    bool ecc_known; /* the GPU counts errors */
    struct device_ecc ecc_before, ecc_after;
};

/* The March test C- of the whole memory. With each background in turn, where 0 is the background
 * and 1 its inverse: write 0; upwards: read 0, write 1; upwards: read 1, write 0; downwards: read
 * 0, write 1; downwards: read 1, write 0; downwards: read 0. Each element is a pass over all of the
 * memory, larger than L2, so that what is read was written to the memory. */
enum {
    DEVICE_MARCH_BACKGROUNDS = 8, /* drawn by offset and seed; 0; and every 1, 2, 4 ... 32 bits */
    DEVICE_MARCH_READS = 5,       /* elements that read */
    DEVICE_WRONG_WORDS_MAX = 1024,
};

/* The words of a background that is not drawn. */
static inline uint64_t device_march_stripes(uint32_t background)
{
    return background < 2 ? 0 : UINT64_MAX / ((UINT64_C(1) << (1u << (background - 2))) + 1);
}

struct device_march {
    uint32_t backgrounds; /* how many of them, in this order */
    uint64_t seed;
};
struct device_wrong_word {
    uint64_t offset, expected, found;
    uint32_t read; /* in which one: DEVICE_MARCH_READS per background */
};
struct device_march_answer {
    uint64_t free_bytes, bytes;      /* before the test; tested */
    uint64_t wrong;                  /* words of 8 bytes, counted in every read anew */
    uint64_t first;                  /* place of the lowest one; 0: none */
    struct device_wrong_word *words; /* the first ones, in any order */
    size_t word_count;
    uint64_t elapsed_ns;
    bool ecc_known; /* the GPU counts errors */
    struct device_ecc ecc_before, ecc_after;
};

/* The check of the SMs: every warp of every SM executes the same program on the same data, so that
 * all end with the same hash (check_program.h). */
enum device_unit {
    DEVICE_UNIT_INT,
    DEVICE_UNIT_FP32,
    DEVICE_UNIT_FP64,
    DEVICE_UNIT_MMA_F16, /* tensor units, by the instruction mma */
    DEVICE_UNIT_MMA_BF16,
    DEVICE_UNIT_MMA_FP8,
    DEVICE_UNIT_WGMMA_F16, /* tensor units, by the instruction wgmma */
    DEVICE_UNIT_WGMMA_BF16,
    DEVICE_UNIT_WGMMA_FP8,
    DEVICE_UNIT_SHARED,
    DEVICE_UNIT_REGISTERS,
    DEVICE_UNIT_ATOMICS,
    DEVICE_UNIT_COUNT
};
extern const char *const device_unit_names[DEVICE_UNIT_COUNT]; /* "int", "mma_f16" */
const char *device_unit_name(enum device_unit unit);

enum { DEVICE_SUB_CORES = 4 }; /* of an SM: warp w runs on sub-core w mod 4 */
struct device_check {
    enum device_unit unit;
    uint32_t target_ms; /* how long about */
    uint32_t seed;
};

/* The warps of one sub-core, in all launches of a check or of a screen. */
struct device_check_place {
    uint32_t count, wrong; /* all hashes; those that are not the expected one */
    uint64_t wrong_hash;   /* the last one */
    uint32_t wrong_warp;   /* of its block */
    uint64_t cycles;       /* of its slowest warp, in the fastest timed launch; 0: not known */
    uint32_t wrong_set;    /* of operands */
};
struct device_check_answer {
    struct device_check_place *places; /* by SM, then by sub-core */
    size_t place_count;
    uint64_t operations, cycles; /* of an SM in all launches; the cycles of the median SM */
    uint64_t elapsed_ns;         /* of all launches */
};

/* The screen for wrong results: every warp of every SM executes the same program on the same
 * operands of any bits (screen_program.h). */
enum device_screen_path {
#define DEVICE_SCREEN_NUMBER(id, name, words, ...) DEVICE_SCREEN_##id,
    SCREENS(DEVICE_SCREEN_NUMBER)
#undef DEVICE_SCREEN_NUMBER
        DEVICE_SCREEN_COUNT
};
extern const char *const device_screen_names[DEVICE_SCREEN_COUNT]; /* "int", "mma_f16" */

/* The rest of a path's row in catalogue/screens.h. */
struct device_screen_row {
    bool by_host; /* the host knows the answer */
    uint32_t warps, steps, taken, operands;
    int oldest, newest;
};
extern const struct device_screen_row device_screen_rows[DEVICE_SCREEN_COUNT];

/* Whether GPUs of a compute capability such as 90 have a path. */
bool device_screen_exists(enum device_screen_path path, int capability);

struct device_screen {
    enum device_screen_path path;
    uint32_t target_ms; /* how long about */
};
/* A wrong result of a lane; number: of the results of a period. */
struct device_wrong_result {
    uint32_t period, number, lane, expected, found;
};
/* Each pair of launches has a set of operands of its own. Wrong is a hash that is not that of most
 * warps in the first launch of the pair. If some but not most places are wrong, the worst of them
 * is looked at again: it is launched again, and each result of one of its warps is compared with
 * what it must be. */
enum { DEVICE_WRONG_RESULTS = 16 };
struct device_second_look {
    uint32_t launches, wrong; /* again, and how many of these were wrong again; 0: none */
    uint32_t place;           /* of the warp */
    uint64_t results, differ; /* of the first launch in which this warp was wrong again */
    double sm_mhz, power_w, temperature_c; /* right after it; NAN: the driver does not say */
    uint32_t set;                          /* of operands */
};
struct device_screen_answer {
    struct device_check_place *places; /* by SM, then by sub-core */
    size_t place_count;
    struct device_second_look again;
    struct device_wrong_result *results; /* the first of those that differ */
    size_t result_count;
    uint64_t digest;  /* the hash of most warps in the first launch */
    bool not_as_host; /* the host knows the hash, and it is another one */
    uint64_t code;    /* names the machine code: digests of other code are not compared; 0: the
                         driver compiled it, so it has no name */
    uint32_t launches, wrong_launches; /* in which any hash was wrong */
    uint64_t elapsed_ns;               /* of all launches */
};

/* The screen in pulses of current: so many times a second all SMs work on a path for half of the
 * time, and for the other half none has anything to do. */
enum { DEVICE_PULSE_HZ_MAX = 10000 };
struct device_pulse {
    enum device_screen_path path;
    uint32_t hz; /* 0: no pauses */
    uint32_t target_ms;
};
struct device_pulse_answer {
    struct device_check_place *places; /* by SM, then by sub-core */
    size_t place_count;
    uint32_t launches, wrong_launches; /* in which any hash was wrong */
    uint64_t busy_ns, idle_ns;         /* by the clock of the GPU */
    /* What the driver read: a tenth of the readings were lower, a tenth higher. */
    bool power_known;
    double power_low_w, power_high_w;
};

/* What each SM gets of L2 and of main memory. All blocks run at once, so that every SM has its
 * share of them; the SMs that have no turn wait. */
enum device_sm_map_kind {
    DEVICE_SM_MAP_READ,   /* bytes read from L2: turn by turn */
    DEVICE_SM_MAP_MEMORY, /* latency of lines of main memory that no SM has loaded: region by region
                           */
    DEVICE_SM_MAP_ATOMICS, /* latency of atomics, which L2 executes where a line has its home: line
                              by line, the same lines for all SMs */
    DEVICE_SM_MAP_KIND_COUNT
};
struct device_sm_map {
    enum device_sm_map_kind kind;
    /* Memory that all SMs use, at random places; not DEVICE_SM_MAP_MEMORY. DEVICE_REGION_MIN or
     * more; for DEVICE_SM_MAP_ATOMICS a power of two. */
    uint64_t footprint_bytes;
    /* DEVICE_SM_MAP_READ */
    uint32_t window_cycles; /* counted in each turn */
    const uint16_t *turns;  /* per SM: those with the same number read at once; from 0 on */
    uint64_t turns_hash;    /* of a recorded request, in place of the turns */
    /* DEVICE_SM_MAP_MEMORY: regions are spread evenly over all memory that can be had.
     * DEVICE_SM_MAP_ATOMICS: lines, and atomics. */
    uint32_t regions, loads; /* dependent loads of each SM in each region, timed together */
};
enum {
    DEVICE_SM_MAP_REGIONS_MAX = 256,
    DEVICE_SM_MAP_LOADS_MAX = 64,
    DEVICE_SM_MAP_WARP_BYTES = 2048, /* each warp that reads has so much of its own, if there is */
};
struct device_sm_map_answer {
    uint64_t *values; /* read: by SM bytes and ns; others: by SM, then by region: cycles */
    size_t value_count;
    uint64_t region_bytes; /* from the beginning of one region to that of the next */
};

/* Latency under load: one thread on each of some SMs times single loads, while all other SMs read
 * other lines of the same memory. */
struct device_loaded_chase {
    bool cold;                /* main memory: no SM has loaded the timed lines; else L2 has them */
    bool quiet;               /* nothing else reads */
    uint64_t footprint_bytes; /* that the others read */
    uint32_t chasers;         /* SMs that time loads; fewer than there are */
    uint32_t window_cycles;   /* how long they do */
    uint64_t limit_bytes; /* that the others read meanwhile at most, evenly spread; 0: no limit */
};
enum { DEVICE_LOADED_READ_BYTES = 2048, DEVICE_LOADED_CHASERS_MAX = 16 };
struct device_loaded_chase_answer {
    uint64_t bytes, elapsed_ns;      /* read by all others in the window; the window */
    uint64_t loads, cycles, squares; /* timed loads, the sum of their cycles and of the squares */
};

/* The way between two parts of L2: SMs use lines whose home is in their own part or in the other.
 */
enum device_way_work {
    DEVICE_WAY_READ,  /* each line once, right after SMs near its home wrote it */
    DEVICE_WAY_WRITE, /* repeatedly */
    DEVICE_WAY_WORK_COUNT
};
struct device_way {
    enum device_way_work work;
    bool far;                 /* the lines are at home in the other part */
    uint32_t parts;           /* whose SMs work: bit 0, bit 1 */
    uint32_t every;           /* of these only the first of so many; 1: all */
    uint64_t footprint_bytes; /* of the lines of both homes */
    uint64_t total_bytes;     /* repeated work of each part, at least once over its lines */
    uint32_t split_cycles;    /* an atomic that takes longer is at a far home */
    const uint8_t *part_of_sm;
    uint64_t part_hash; /* of a recorded request, in place of the parts */
};
struct device_way_answer {
    uint64_t bytes[2], elapsed_ns[2]; /* by part: the middle half of its work, and its time */
    uint64_t lines[2];                /* of each home */
};

/* Sustained load: every SM multiplies matrices and reads main memory at once, until the time is
 * over. */
struct device_load {
    uint32_t duration_ms;
    uint32_t sample_ms; /* about this long between two samples */
    uint32_t limit_ms;  /* it ends after this time if that is shorter: what is left to this GPU */
    uint32_t waited_ms; /* before this request, for other nodes and for its turn */
    bool alone;         /* no other GPU of the node is under load meanwhile */
};
enum device_load_unit {
    DEVICE_LOAD_FP32,  /* multiply-add of the ordinary cores: the GPU has no bf16 tensor cores */
    DEVICE_LOAD_MMA,   /* bf16 tensor cores by mma.sync */
    DEVICE_LOAD_WGMMA, /* bf16 tensor cores by wgmma, which reaches their whole rate on Hopper */
    DEVICE_LOAD_UNIT_COUNT
};
enum device_load_end {
    DEVICE_LOAD_DONE,
    DEVICE_LOAD_TIME,     /* limit_ms is over */
    DEVICE_LOAD_SLOWDOWN, /* the hardware slows itself down */
    DEVICE_LOAD_OTHERS,   /* another process came */
    DEVICE_LOAD_END_COUNT
};
struct device_load_sample {
    uint64_t at_ns; /* since the load began; counts are of the work until then */
    uint64_t operations, bytes;
    uint64_t cycles, cycles_ns; /* of one SM while it worked, by its clock and by real time */
    /* What the driver reports; NAN if it does not. */
    double sm_mhz, memory_mhz, power_w, energy_j, temperature_c, temperature_memory_c;
    uint64_t throttle_reasons; /* NVML's bits */
    bool throttle_known;
};
struct device_load_answer {
    enum device_load_unit unit;
    enum device_load_end end;
    struct device_load_sample *samples; /* rising in time; the first one is of the beginning */
    size_t sample_count;
    /* waited_ms and alone of the request, or of the recorded one; not known in records that were
     * converted from a version that did not keep them. */
    bool start_known;
    uint32_t waited_ms;
    bool alone;
};

/* The links from this GPU to another one of its node that the process sees: copies by a copy
 * engine, and stores and loads of all SMs in the memory of the other GPU. The peer is named by its
 * place in the list of device_list_peers. */
enum { DEVICE_PEERS_MAX = 32 }; /* GPUs of a node that are looked at */
struct device_peer_test {
    uint32_t peer;
    uint64_t bytes;    /* of each transfer */
    uint32_t loads;    /* dependent loads of the peer's memory, timed together */
    uint32_t wait_ms;  /* for other processes of the survey that use one of both GPUs */
    uint32_t limit_ms; /* of the test itself: afterwards it is given up, and this GPU with it */
};

/* Times in ns. Read: from the peer to this GPU. */
struct device_peer_answer {
    uint64_t copy_read_ns, copy_write_ns; /* by a copy engine, one way */
    uint64_t copy_both_ns;                /* both ways at once, `bytes` each way */
    bool mapped;                /* SMs can reach the peer's memory; otherwise the following are 0 */
    uint64_t read_ns, write_ns; /* by the SMs */
    uint64_t both_ns;           /* both ways at once, half of `bytes` each way; 0: not known */
    uint64_t cycles, chase_ns;  /* of all `loads`: by the clock of an SM; 0: ns are not known */
    uint64_t wrong_words;       /* of 8 bytes that read back wrong, by copies and SMs together */
};

/* Copies between host and GPU, while all other GPUs of the node that the process sees copy the same
 * way: GPUs that share a way to the host show it. */
struct device_host_share {
    enum device_stream_kind kind; /* H2D, D2H or BIDIR */
    uint64_t bytes;               /* of one copy */
    uint32_t window_ms;           /* how long is measured */
    uint32_t limit_ms;            /* for all of it, with the time until the others come */
};
struct device_host_share_answer {
    uint32_t gpus; /* that copied at the same time, this one among them */
    uint64_t bytes, elapsed_ns;
};

/* Code: one block on every SM, all at once, executes a loop of one instruction (instruction.h). The
 * instructions of a chain each need the result of the one before; chains take turns. */
struct device_code {
    uint32_t instruction; /* row of instruction_table */
    uint32_t chains;
    uint32_t warps;   /* of each block */
    uint32_t length;  /* instructions of the loop, all chains together */
    uint32_t repeats; /* of the loop */
};
struct device_code_answer {
    uint64_t cycles;  /* from the first warp's start to the last one's end; mean of the SMs */
    uint64_t machine; /* machine instructions of the whole program; 0: not known */
    uint64_t most;    /* of these: the most frequent operation; 0: not known */
};

enum { DEVICE_CARVEOUTS_MAX = 16 };

/* Clusters, whose blocks reach each other's shared memory, and bulk copies by the copy unit of an
 * SM. A request launches as many blocks as run at once, one per SM. */
enum device_cluster_work {
    DEVICE_CLUSTER_PLACES, /* nothing: only where the blocks of each cluster run */
    /* One thread of a cluster at a time: dependent loads of the shared memory of every block of the
     * cluster in turn, its own too. */
    DEVICE_CLUSTER_LOADS,
    /* All threads of all blocks load the shared memory of the other blocks of their cluster in
     * turn; of their own block in a cluster of one. */
    DEVICE_CLUSTER_READ,
    /* Each block copies its shared memory into that of the next block of the cluster by bulk
     * copies; into its own in a cluster of one. */
    DEVICE_CLUSTER_COPY,
    DEVICE_CLUSTER_WORK_COUNT
};
struct device_cluster {
    enum device_cluster_work work;
    uint32_t size;  /* blocks */
    uint32_t count; /* loads of each pair; rounds of each thread; copies of each block */
    uint32_t bytes; /* of a bulk copy, a multiple of 16 */
    /* Bulk copies of a block. 0: one copy in the whole cluster, which each block passes on when it
     * has come; then `count` is how often it goes round. */
    uint32_t in_flight;
};
enum {
    DEVICE_CLUSTER_MAX = 16,
    DEVICE_CLUSTER_LOADS_STEP = 32,       /* a multiple of this many loads */
    DEVICE_CLUSTER_ROUND_BYTES = 64,      /* that a thread loads in a round: 4 times 16 */
    DEVICE_CLUSTER_THREADS = 1024,        /* of a block that reads */
    DEVICE_CLUSTER_ROOM_BYTES = 64 << 10, /* for all copies in flight between blocks */
    DEVICE_BULK_ROOM_BYTES = 128 << 10,   /* and for those from global memory */
    DEVICE_BULK_FLIGHTS_MAX = 32,
};
struct device_cluster_answer {
    uint32_t clusters;  /* that ran at once: as many as the GPU holds */
    uint16_t *sms;      /* by cluster, then by block */
    size_t block_count; /* of these; set by device_run_cluster */
    /* By cluster and block; loads: then by the block whose memory is loaded; places: none. */
    uint64_t *cycles;
    size_t cycle_count;
};

/* Bulk copies from global memory into shared memory. */
enum device_bulk_source {
    DEVICE_BULK_L2,     /* memory that L2 holds */
    DEVICE_BULK_MEMORY, /* memory that L2 does not hold */
    DEVICE_BULK_SOURCE_COUNT
};
struct device_bulk {
    enum device_bulk_source source;
    bool alone;         /* one SM; otherwise all at once */
    uint32_t bytes;     /* of a copy, a multiple of 16 */
    uint32_t in_flight; /* of an SM */
    uint32_t copies;    /* of an SM */
};
struct device_bulk_answer {
    uint64_t cycles;     /* of an SM, mean of all */
    uint64_t elapsed_ns; /* from the first start to the last end */
    uint32_t sms;
};

/* What does not change while the device is open. 0 means not known. */
struct device_limits {
    uint32_t sm_count;
    uint32_t warp_count;   /* warps of the largest block */
    uint64_t global_bytes; /* usable for arrays on the global paths */
    /* Jobs may reach further, up to here, if they only warm, chase and use the paths CA and CG. All
     * memory that can be had is then reserved for them, which fails with -EBUSY if another process
     * uses the GPU. 0: not further. */
    uint64_t wide_bytes;
    uint64_t constant_bytes;
    uint64_t shared_bytes_max;   /* per block, in total: the largest wish */
    uint64_t shared_array_bytes; /* for arrays: kernels may need some themselves */
    uint64_t host_bytes;
    uint64_t l2_reported_bytes;   /* as the driver reports it */
    double timer_overhead_cycles; /* of some records, which have one value for all paths */
    uint64_t l1_nominal_bytes;    /* L1 as documented, for the carve-out below; 0: not documented */
    uint64_t l1_carveout_bytes;   /* shared memory in the carve-out of jobs without a wish */

    /* The documented carve-outs: rising, 0 after the last; none if they are not documented. A job
     * gets the smallest one that holds its wish and what the system reserves per block. */
    uint64_t carveout_steps[DEVICE_CARVEOUTS_MAX];
    uint64_t carveout_reserve_bytes;

    /* How many loads one figure may take on a device that executes each one by itself (the
     * simulation). It limits repetitions and must not change the method. 0: no limit. */
    uint64_t loads_max;

    uint32_t threads_per_sm;       /* that an SM can hold at once */
    uint32_t l2_fetch_limit_bytes; /* a setting of the driver: no fetch into L2 is larger */
};

/* Read while the GPU works. Values below 0 are unknown. */
struct device_clocks {
    double sm_mhz;
    double memory_mhz;
    uint64_t throttle_reasons; /* NVML's bits; 0 none */
    bool throttle_known;
};

/* The conditions under which the host link is measured. */
struct device_link {
    bool alone; /* no other GPU of the node uses its link meanwhile */
    bool near;  /* on CPUs near the GPU, as far as the driver tells which ones are near */
};

/* Facts about the GPU: hardware (equal for a model), board (this unit: serial, vbios, driver),
 * config (settings). */
struct device_identity {
    struct facts hardware, board, config;
};
struct device_health {
    struct facts config, health;
};
struct device_peers {
    struct facts gpus;
};

/* The calls of a device: DEVICE_CALL_NAME, and the part of the name of the function by which a
 * backend executes it (sim: gpu_run_batch, cuda: cuda_run_batch). calls*.c have a row for each. The
 * order is part of the format of records: new ones are added at the end. */
#define DEVICE_CALLS(CALL)                                                                         \
    CALL(IDENTIFY, identify)                                                                       \
    CALL(BATCH, run_batch)                                                                         \
    CALL(STREAM, run_stream)                                                                       \
    CALL(CLOCKS, read_clocks)                                                                      \
    CALL(HEALTH, read_health)                                                                      \
    CALL(LINK, begin_link)                                                                         \
    CALL(MEMORY, test_memory)                                                                      \
    CALL(CHECK, check_unit)                                                                        \
    CALL(LOAD, run_load)                                                                           \
    CALL(PEERS, list_peers)                                                                        \
    CALL(PEER, test_peer)                                                                          \
    CALL(SHARE, share_host)                                                                        \
    CALL(SM_MAP, map_sms)                                                                          \
    CALL(CODE, run_code)                                                                           \
    CALL(SHARED_LOAD, load_shared)                                                                 \
    CALL(STRAIGHT, run_straight)                                                                   \
    CALL(CLUSTER, run_cluster)                                                                     \
    CALL(BULK, copy_bulk)                                                                          \
    CALL(TICKETS, stream_tickets)                                                                  \
    CALL(LOADED_CHASE, chase_loaded)                                                               \
    CALL(WAY, cross_way)                                                                           \
    CALL(WALK, run_walk)                                                                           \
    CALL(SCREEN, screen_path)                                                                      \
    CALL(MARCH, march_memory)                                                                      \
    CALL(PULSE, pulse_path)

#define DEVICE_CALL_NUMBER(name, function) DEVICE_CALL_##name,
enum device_call {
    DEVICE_CALL_LOOK, /* of a source of GPUs (source.h), as the next one */
    DEVICE_CALL_OPEN,
    DEVICE_CALLS(DEVICE_CALL_NUMBER) DEVICE_CALL_COUNT
};

/* Executes a call: request and answer are of the structs that belong to it (calls*.c); the answer
 * is zeroed, or as the call's row begins it. Returns 0 or a negative errno with text: -ENOTSUP for
 * what the device does not have, -ENOENT for a request that a replayed device was not asked when it
 * was recorded. What a failed call leaves in the answer is released by the caller. */
typedef int device_function(struct device *device, const void *request, void *answer,
                            struct err *err);

/* The functions of a backend. */
struct device_ops {
    const char *backend; /* "sim", "cuda", "record", "replay" */
    /* Executes any call. NULL: the functions below do. */
    int (*call)(struct device *device, enum device_call call, const void *request, void *answer,
                struct err *err);
    device_function *calls[DEVICE_CALL_COUNT]; /* NULL: the device does not have this call */
    void (*end_link)(struct device *device);   /* may be NULL */
    void (*mark)(struct device *device, const char *what);  /* may be NULL */
    bool (*knows)(struct device *device, const char *what); /* NULL: anything can be asked */
    void (*destroy)(struct device *device);
};

/* First member of every backend's own struct. */
struct device {
    const struct device_ops *ops;
    struct device_limits limits;
};

/* Checks the request, executes it and completes the answer. -EINVAL for a request that no backend
 * could execute. Nothing is left in the answer of a failed call, except facts. The functions below
 * are this one, with types. */
int device_call(struct device *device, enum device_call call, const void *request, void *answer,
                struct err *err);

/* As in struct device_identity. The caller owns the three, initialised empty. */
int device_identify(struct device *device, struct facts *hardware, struct facts *board,
                    struct facts *config, struct err *err);

/* Runs all jobs of the batch. answers: one per job, released by device_answers_fini. -EINVAL for a
 * job that no backend could run (array past the memory, no element, bad agent). */
int device_run(struct device *device, const struct device_batch *batch,
               struct device_answer *answers, struct err *err);
void device_answers_fini(struct device_answer *answers, size_t count);

int device_stream(struct device *device, const struct device_stream *stream,
                  struct device_stream_answer *out_answer, struct err *err);

int device_stream_tickets(struct device *device, const struct device_tickets *tickets,
                          struct device_tickets_answer *out_answer, struct err *err);
void device_tickets_answer_fini(struct device_tickets_answer *answer);

/* Tests the whole memory; what was in it is lost. -EBUSY if another process uses the GPU, since it
 * may need more memory meanwhile. out_map is released by device_memory_map_fini. */
int device_test_memory(struct device *device, const struct device_memory_test *test,
                       struct device_memory_map *out_map, struct err *err);
void device_memory_map_fini(struct device_memory_map *map);

/* The March test, with -EBUSY as above. out_answer is released by device_march_answer_fini. */
int device_march_memory(struct device *device, const struct device_march *march,
                        struct device_march_answer *out_answer, struct err *err);
void device_march_answer_fini(struct device_march_answer *answer);

/* Checks a unit on all SMs at once. -ENOTSUP for a unit that the GPU does not have. out_answer is
 * released by device_check_answer_fini. */
int device_check_unit(struct device *device, const struct device_check *check,
                      struct device_check_answer *out_answer, struct err *err);
void device_check_answer_fini(struct device_check_answer *answer);

/* Screens a path on all SMs at once. -ENOTSUP for a path that the GPU does not have. out_answer is
 * released by device_screen_answer_fini. */
int device_screen_path(struct device *device, const struct device_screen *screen,
                       struct device_screen_answer *out_answer, struct err *err);
void device_screen_answer_fini(struct device_screen_answer *answer);

/* The same in pulses. -EBUSY if another process uses the GPU. out_answer is released by
 * device_pulse_answer_fini. */
int device_pulse_path(struct device *device, const struct device_pulse *pulse,
                      struct device_pulse_answer *out_answer, struct err *err);
void device_pulse_answer_fini(struct device_pulse_answer *answer);

/* Measures every SM. -EBUSY if another process uses the GPU, or if the blocks do not run at once.
 * out_answer is released by device_sm_map_answer_fini. */
int device_map_sms(struct device *device, const struct device_sm_map *map,
                   struct device_sm_map_answer *out_answer, struct err *err);
void device_sm_map_answer_fini(struct device_sm_map_answer *answer);

/* Measures latency under load. -EBUSY if the blocks do not run at once, or not all others read from
 * before the first timed load until after the last. */
int device_chase_loaded(struct device *device, const struct device_loaded_chase *asked,
                        struct device_loaded_chase_answer *out_answer, struct err *err);

/* Uses the way between two parts of L2. -EBUSY if the blocks do not run at once. */
int device_cross_way(struct device *device, const struct device_way *asked,
                     struct device_way_answer *out_answer, struct err *err);

/* Loads the GPU. It ends early, with the samples until then, at limit_ms, when the hardware slows
 * itself down, and when another process comes; -EBUSY if one is there already. If this process is
 * killed, the load ends with it. out_answer is released by device_load_answer_fini. */
int device_run_load(struct device *device, const struct device_load *load,
                    struct device_load_answer *out_answer, struct err *err);
void device_load_answer_fini(struct device_load_answer *answer);

/* Appends a copy of the sample. */
void device_load_answer_add(struct device_load_answer *answer,
                            const struct device_load_sample *sample);

/* Executes code on all SMs. -ENOTSUP for an instruction that the GPU does not have, -ENOSYS if the
 * device executes none. */
int device_run_code(struct device *device, const struct device_code *code,
                    struct device_code_answer *out_answer, struct err *err);

/* Launches clusters. -ENOTSUP: the GPU has no clusters, or none of this size. -ENOSYS: the device
 * launches none. -EBUSY: another process has a part of the GPU. out_answer is released by
 * device_cluster_answer_fini. */
int device_run_cluster(struct device *device, const struct device_cluster *cluster,
                       struct device_cluster_answer *out_answer, struct err *err);
void device_cluster_answer_fini(struct device_cluster_answer *answer);

/* How many cycles an answer to this request has for each cluster. */
size_t device_cluster_cycles(const struct device_cluster *cluster);

/* Copies by bulk. Errors as above. */
int device_copy_bulk(struct device *device, const struct device_bulk *bulk,
                     struct device_bulk_answer *out_answer, struct err *err);

/* The GPUs of the node that this process sees, with this one. "own" is the UUID of this GPU; "0",
 * "1", ... are the UUIDs of all, at most DEVICE_PEERS_MAX, in an order that is the same for all of
 * them. The caller owns out_gpus, initialised empty. */
int device_list_peers(struct device *device, struct facts *out_gpus, struct err *err);

/* Measures the link to a peer. The last kind of request to a device: afterwards, other processes
 * of the survey may use this GPU. Every error concerns this pair of GPUs only. -EAGAIN: after
 * wait_ms another process still used one of both, so nothing was done. -ETIMEDOUT: no answer after
 * limit_ms; later tests fail at once. */
int device_test_peer(struct device *device, const struct device_peer_test *test,
                     struct device_peer_answer *out_answer, struct err *err);

/* Waits for the workers of the other GPUs, and copies together with them. Those that have failed,
 * or have done this before, are not waited for. -EAGAIN: nobody else came, somebody left meanwhile,
 * or limit_ms is over. Before device_test_peer. */
int device_share_host(struct device *device, const struct device_host_share *asked,
                      struct device_host_share_answer *out_answer, struct err *err);

int device_read_clocks(struct device *device, struct device_clocks *out_clocks, struct err *err);

/* Called around each stream or batch that uses the host link: the GPUs of one node take turns
 * there, and the thread moves to CPUs near the GPU. Never fails; out_link says what was achieved.
 * The time between both must be short, since other GPUs wait. */
void device_begin_link(struct device *device, struct device_link *out_link);
void device_end_link(struct device *device);

/* Reads what wears and fails, and what shows only under load. Called when the measurements are
 * over, whether they succeeded or not. Adds to health (errors, temperatures, throttling, other
 * processes) and sets in config what an idle GPU does not show (the PCIe link). */
int device_read_health(struct device *device, struct facts *config, struct facts *health,
                       struct err *err);

/* Says what the next requests are for, e.g. the name of a probe. It changes no answer; a record
 * keeps it. */
void device_mark(struct device *device, const char *what);

/* True when requests can be made under this mark. A record has only the marks it was made with. */
bool device_knows(struct device *device, const char *what);

/* Keeps the GPU busy until the SM clock is stable, or returns -ETIMEDOUT: an idle GPU runs at a
 * sixth of its speed. Returns the clock reached in MHz, measured as cycles per real time. */
int device_warm_up(struct device *device, double *out_sm_mhz, struct err *err);

const struct device_limits *device_limits(const struct device *device);
void device_destroy(struct device *device); /* accepts NULL */

#endif
