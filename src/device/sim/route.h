/* The order in which a chase visits the elements of an array; the levels that the loads of one
 * agent on one path go through, and what each load costs. */
#ifndef GPUMEMTOPO_DEVICE_SIM_ROUTE_H
#define GPUMEMTOPO_DEVICE_SIM_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/sim/gpu.h"

enum { WALK_ROUNDS = 4 };

struct walk {
    uint64_t first, stride, count;
    uint64_t position; /* in the random cycle */
    bool random;
    uint32_t low_bits, high_bits;
    uint64_t keys[WALK_ROUNDS];
};

/* Begins at element `start` of the array. */
void walk_init(struct walk *walk, const struct device_array *array, uint64_t start);

/* Addresses of the next `count` elements. Many at once, since the computation of a random one takes
 * long but does not depend on the others. */
void walk_next(struct walk *walk, uint64_t *out_addresses, uint32_t count);

struct route {
    struct cache *caches[SIM_LEVELS_MAX];
    double cache_cycles[SIM_LEVELS_MAX];
    uint32_t cache_count;
    struct cache *tlbs[SIM_TLBS];
    double tlb_cycles[SIM_TLBS];
    /* The page is needed before the caches of the SM. The TLBs are as far away as L2: a load that
     * misses the first one takes as long as one from L2. */
    bool translate_first;
    struct cache *l2[SIM_PARTS_MAX];
    struct miss_stream *misses; /* NULL: L2 does not prefetch */
    struct divider fetch;       /* bytes that a miss brings */
    uint64_t prefetch_units;
    uint32_t prefetch_after;
    int parts;
    uint32_t part_count, part_shift; /* shift: bits of a hash beyond the part's number */
    uint32_t side;                   /* the L2 part near this SM */
    uint32_t group;                  /* the half of a part's slices that is near this SM */
    struct divider granule;          /* bytes that have one home */
    uint64_t copies_at; /* how far apart the copies of different parts lie in the near part */
    const double *far_cycles;
    double l2_cycles, slice_cycles, group_cycles;
    double dram_cycles; /* at the nominal clock */
    double dram_now;    /* at the current clock */
    double dram_slow_share, dram_slow_cycles;
    double first_cycles;   /* added to the first load */
    uint64_t *first_epoch; /* of the job that made the first load; NULL: it costs nothing more */
    uint64_t epoch;
    bool direct; /* shared or host: one latency, no cache */
    bool host;
    double direct_cycles, direct_now;
    const struct sim_banks *banks;
    uint64_t base; /* beginning of the path's memory in the address range of the caches */
};

/* Where a load starts and under which carve-out. */
struct route_place {
    struct sm_context *context;
    uint32_t sm, warp;
    uint64_t l1_bytes; /* of a carved-out cache */
    uint64_t epoch;    /* of the job: older contents of SM-private caches are invalid */
    uint64_t launch;   /* older contents of caches that SMs share are invalid */
};

/* The part of L2 that an SM is near. */
uint32_t route_part(const struct sim_model *model, uint32_t sm);

/* -ENOTSUP for a path that the GPU does not have. */
int route_prepare(struct gpu *gpu, enum device_path path, const struct route_place *place,
                  struct route *out_route, struct err *err);

/* DRAM and the host link take nanoseconds, not cycles: fewer cycles at a lower SM clock. */
void route_set_clock(struct route *route, double share_of_nominal);

/* For atomics only, which the home of a line executes; its page is at hand. -ENOTSUP: the GPU has
 * none. */
int route_prepare_atomics(struct gpu *gpu, uint32_t sm, struct route *out_route, struct err *err);

/* Its cycles. */
double route_atomic(const struct route *route, uint64_t address);

/* Executes loads one after the other; out: their latencies in cycles. */
void route_load(const struct route *route, const uint64_t *addresses, uint32_t count,
                struct rng *rng, double *out_cycles);

/* Loads of `lanes` lanes of a warp at once: the slowest decides; bank conflicts in shared memory
 * add up. */
double route_load_lanes(const struct route *route, uint64_t address, uint32_t lanes,
                        uint32_t lane_stride_bytes, struct rng *rng);

/* A load that bypasses the SM's caches. */
void route_fill(const struct route *route, uint64_t address, struct rng *rng);

/* Lines and sectors brought into the caches of the route so far. */
uint64_t route_fills(const struct route *route);

#endif
