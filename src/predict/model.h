/* The model of a GPU's caches: runs a kernel's accesses through L1 and L2 and counts. */
#ifndef GPUMEMTOPO_PREDICT_MODEL_H
#define GPUMEMTOPO_PREDICT_MODEL_H

#include "base/err.h"
#include "cachesim/cache.h"
#include "predict/kernel.h"
#include "predict/parallel.h"
#include "predict/sm.h"

/* What L1 does with stores, and whether it holds loads. */
enum model_writes {
    MODEL_THROUGH, /* a store goes to L2, and L1 has it from then on */
    MODEL_WON,     /* a store goes to L2 and evicts the line from L1 */
    MODEL_RWON,    /* loads and stores bypass L1 */
    MODEL_OFF,     /* nothing bypasses: L1 takes stores; those that miss go to L2, too */
};

/* How far a run has come. */
struct model_state {
    double share; /* of its blocks, 0..1 */
    uint64_t lines;
};

enum { MODEL_L2_PARTS_MAX = 2 };

struct model_config {
    uint32_t sms, schedulers, registers; /* registers of a thread; 0: not known */
    struct sm_limits limits;
    enum block_mapping mapping;
    enum sm_scheduler scheduler;
    enum model_writes writes;
    bool together;                /* as in struct sm: the seed's algorithms 2 and 3 */
    struct cache_geometry l1, l2; /* lines and sectors: powers of two; the sectors are the same */
    bool no_l1; /* loads bypass it: `writes` is MODEL_RWON, and l1 has the lines of l2 */
    uint32_t l1_per_sm;
    uint32_t l2_parts;     /* 1, or MODEL_L2_PARTS_MAX: of the same size; l2 is both together */
    uint32_t groups;       /* of SMs that share a way to L2, of about the same size; at least 1 */
    uint32_t merged_loads; /* of a group: requests that become one at most; 1: none */
    uint32_t merged_store_lines; /* of an L1: lines whose stores become one; 0 only if 1 is above */
    struct parallel_config parallel; /* of L1; mshrs 0: every access is served at once */
    uint32_t l2_partitions; /* each with the banks, ports and miss registers of l2_parallel */
    struct parallel_config l2_parallel; /* mshrs 0: every access is served at once */
    double stall;                       /* ticks that a warp waits after a miss; without MSHRs */
    uint64_t seed;
    bool reuse; /* also find reuse distances */
    /* Called now and then, some thousand lines apart at least; NULL: nobody wants to know. */
    void (*tell)(void *context, struct model_state state);
    void *tell_context;
};

/* Transactions are sectors. A store fetches nothing, and so is a hit. If L2 has parts, a load hits
 * if the near one has it. */
struct model_l2_counts {
    uint64_t reads, read_hits, writes, write_hits;
    uint64_t main_reads, main_writes; /* sectors from and to main memory */
};

enum { MODEL_CURVE_MAX = 64 };

/* Sectors that a fully associative LRU cache of so many lines would have hit. */
struct model_curve {
    uint64_t lines[MODEL_CURVE_MAX], hits[MODEL_CURVE_MAX];
    size_t count;                 /* 0: not asked for */
    uint64_t accesses;            /* sectors asked for */
    uint64_t own_lines, own_hits; /* the same for the size that the cache has */
};

struct model_counts {
    uint64_t accesses, lines; /* of warps; lines that they touch */
    uint64_t l1_reads, l1_read_hits, l1_writes, l1_write_hits;
    uint64_t merges, fails, steps;           /* with MSHRs only */
    uint64_t l2_merges, l2_fails, l2_steps;  /* with MSHRs of L2 only */
    struct model_l2_counts l2, l2_bypassed;  /* behind L1, and as if there were no L1 */
    uint64_t waits_l1, waits_l2, waits_main; /* loads of warps by the farthest memory they need */
    uint32_t blocks_in_flight, warps_in_flight, active_sms;
    struct model_curve l1_curve; /* with `reuse`: loads */
    struct model_curve l2_curve; /* loads behind L1 */
};

/* The group of the SM that has this L1. */
static inline uint32_t model_group(const struct model_config *config, uint32_t l1)
{
    return (uint32_t)((uint64_t)(l1 / config->l1_per_sm) * config->groups / config->sms);
}

/* 0 or -EINVAL: the configuration, or a block that does not fit. */
int model_run(const struct model_config *config, const struct kernel_launch *launch,
              struct model_counts *out_counts, struct err *err);

#endif
