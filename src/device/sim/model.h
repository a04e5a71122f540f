/* The content of a model file as plain data. A fault or the variation of a unit changes a copy of
 * it. */
#ifndef GPUMEMTOPO_DEVICE_SIM_MODEL_H
#define GPUMEMTOPO_DEVICE_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/yaml.h"
#include "cachesim/cache.h"
#include "device/device.h"
#include "device/instruction.h"
#include "device/sim/sim.h"
#include "inventory/xid.h"

enum {
    SIM_CACHES_MAX = 12,
    SIM_INSTANCES_MAX = 8,
    SIM_LEVELS_MAX = 6,
    SIM_STEPS_MAX = 16,
    SIM_TLBS = 3,
    SIM_PARTS_MAX = 4,
    SIM_SMS_MAX = 1024,
    SIM_BANKS_MAX = 256,
};

enum sim_scope { SIM_SCOPE_SM, SIM_SCOPE_TPC, SIM_SCOPE_CPC, SIM_SCOPE_GPC, SIM_SCOPE_GPU };
enum sim_warp_map { SIM_INTERLEAVED, SIM_BLOCKED };
enum sim_parts { SIM_ONE, SIM_HOMES, SIM_COPIES };

struct sim_cache {
    char name[SIM_TEXT_MAX];
    struct cache_geometry geometry; /* of one instance */
    uint64_t nominal;               /* as documented; 0: not documented */
    int scope;
    uint32_t instances; /* per SM */
    int warp_map;
    bool carveout;
};

/* A path through caches and L2 to main memory, and the cost of a load by the level that serves it,
 * in cycles at the nominal clock. */
struct sim_path {
    bool present;
    uint32_t cache_count; /* before L2 */
    uint32_t caches[SIM_LEVELS_MAX];
    double cache_cycles[SIM_LEVELS_MAX];
    double l2_cycles;
    double main_cycles; /* shared and host: their only latency */
};

struct sim_carveout {
    bool present;
    uint64_t total, reserve, uncached;
    uint64_t steps[SIM_STEPS_MAX]; /* ascending */
    uint32_t step_count;
};

struct sim_l2 {
    struct cache_geometry geometry; /* of all parts together */
    uint64_t reported;
    int parts;
    uint32_t part_count;
    double far_cycles[SIM_PARTS_MAX]; /* by own part XOR home part */
    uint32_t part_sms[SIM_PARTS_MAX]; /* SMs near each part; 0: as many GPCs near each */
    double slice_cycles;              /* between the nearest and the furthest slice of a part */
    double group_cycles;              /* between the nearer half of the slices and the other */
    uint64_t prefetch_units; /* fetch units that a miss in a stream brings in addition; 0: none */
    uint32_t prefetch_after; /* as many misses, each behind the last, are a stream */
};

struct sim_tlb {
    bool present;
    struct cache_geometry geometry; /* a line is a page */
    int scope;
    double miss_cycles;
};

struct sim_clock {
    double sm_mhz, idle_mhz, ramp_ms, memory_mhz;
};

struct sim_noise {
    double jitter_cycles, spike_rate, spike_cycles, bandwidth;
};

/* The banks of shared memory. A bank delivers one of its words, bank_bytes wide, in a pass.
 * Successive pieces of interleave_bytes of the memory lie in successive banks: whole words, or
 * (Kepler in its mode of 4 bytes) a half of a word, whose other half follows when all banks have
 * had one. */
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

/* GB/s at the nominal clocks; per-SM values in bytes per cycle. Loaded: latency of an access while
 * everything streams, which decides how many accesses must be in flight; 0: the same as alone. */
struct sim_bandwidth {
    double sm, l1, shared;
    double shared_write;                  /* 0: as shared */
    double read_only, texture, constants; /* through their cache; 0: as l1 */
    double l2_read, l2_write;
    double l2_way; /* from one of two parts of L2 to the other; 0: no limit */
    double gpc;    /* all SMs of a GPC together from L2; 0: no limit */
    double main_read, main_write, main_copy;
    double main_add; /* two arrays read, one written; 0: as main_copy */
    /* What streams with equal work per SM get of this. */
    double equal_l2_read, equal_l2_write, equal_main_read, equal_main_write, equal_main_copy;
    double h2d, d2h, bidir;
    double l2_loaded_cycles, main_loaded_cycles;
    double round_cycles; /* of a loop's round beside its accesses */
};

/* What the driver reports. */
struct sim_hardware {
    char architecture[SIM_TEXT_MAX], compute_capability[SIM_TEXT_MAX];
    uint32_t cores_per_sm, memory_bus_bits, registers_per_sm;
    uint32_t threads_per_block, threads_per_sm, warp_size;
    double sm_clock_max_mhz, memory_clock_max_mhz;
    uint32_t pcie_gen_max, pcie_width_max;
    uint64_t l2_persisting; /* bytes of L2 that may be set aside; 0: not reported */
};
struct sim_board {
    char part[SIM_TEXT_MAX], vbios[SIM_TEXT_MAX], driver[SIM_TEXT_MAX];
};
struct sim_config {
    bool ecc, ecc_pending, mig, mig_pending, persistence;
    char compute_mode[SIM_TEXT_MAX];
    /* The kind of the GPU; "": the driver does not say, or a whole GPU. */
    char mig_profile[SIM_TEXT_MAX], virtualization[SIM_TEXT_MAX], confidential[SIM_TEXT_MAX];
    double power_limit_w, power_limit_default_w;
    double power_draw_w;             /* under the survey's load */
    double sm_clock_application_mhz; /* 0: the highest */
    uint32_t pcie_gen, pcie_width;
};

/* Cycles: until the result is there; until the unit of a sub-core begins the next one. 0: the GPU
 * does not have it. */
struct sim_instruction {
    double latency_cycles, interval_cycles;
    uint64_t kinds; /* machine operations that the compiler takes in turn */
};

/* A cache of instructions. What it does not have takes miss_cycles longer, per line of the nearest
 * cache, and up to far_cycles more on the furthest SM of a GPC. */
enum { SIM_INSTRUCTION_CACHES_MAX = 4, SIM_JUMPS_MAX = 8 };
struct sim_instruction_cache {
    struct cache_geometry geometry;
    int scope;
    double miss_cycles, far_cycles;
    double jump_miss_cycles; /* if a jump led to the line: nothing was fetched ahead */
};

/* A pass over more code than this takes so much longer. */
struct sim_jump {
    uint64_t size;
    double cycles;
};

/* Clusters of blocks, and the unit of an SM that copies in bulk. Rates in bytes per cycle and SM.
 */
struct sim_clusters {
    uint32_t size_max; /* blocks; 0: the GPU has no clusters */
    uint32_t singles;  /* the last SMs of the first GPC: in no cluster larger than their TPC */
    /* A load of shared memory through the window of the cluster: the block's own; that of another
     * SM, if both are the last of their GPC; added for each of both that is its first, and in
     * proportion for those between. */
    double own_cycles, other_cycles, distance_cycles;
    double own_read, read; /* what an SM gives of its shared memory: to itself, to others */
    double copy_cycles;    /* a bulk copy to another SM takes this much longer than a load */
    double copy;           /* what an SM sends by bulk copies to others */
    double bulk_cycles;    /* a bulk copy from L2 or memory takes this much longer than a load */
    double bulk_interval;  /* cycles from one bulk copy of an SM to the next, at least */
    double bulk;           /* what an SM gets by bulk copies, at most */
};

struct sim_model {
    char name[SIM_TEXT_MAX];
    char key[3 * SIM_TEXT_MAX];
    char pci_device[SIM_TEXT_MAX], pci_subsystem[SIM_TEXT_MAX];
    uint32_t sms, sms_per_tpc, gpc_count;
    uint32_t sms_per_cpc; /* at most; 0: GPCs have no CPCs */
    uint16_t tpc_of[SIM_SMS_MAX], gpc_of[SIM_SMS_MAX];
    bool across;                    /* SMs are numbered across the GPCs */
    struct sim_clock clock;         /* reached; faults lower it */
    struct sim_clock nominal_clock; /* the clock for which latencies and bandwidths are stated */
    double timer_overhead_cycles[DEVICE_PATH_COUNT], timer_granularity_cycles;
    struct sim_noise noise;
    struct sim_cache caches[SIM_CACHES_MAX];
    uint32_t cache_count;
    struct sim_carveout carveout;
    uint64_t shared_bytes_max, constant_bytes, host_bytes, memory_bytes;
    struct sim_banks banks; /* of shared memory */
    struct sim_l2 l2;
    struct sim_tlb tlbs[SIM_TLBS];
    bool translate_first; /* also loads that L1 serves need their page */
    struct sim_clusters clusters;
    bool has_instructions;
    struct sim_instruction instructions[INSTRUCTIONS_MAX]; /* by row of instruction_table */
    struct sim_instruction_cache instruction_caches[SIM_INSTRUCTION_CACHES_MAX]; /* nearest first */
    uint32_t instruction_cache_count;
    struct sim_jump jumps[SIM_JUMPS_MAX];
    uint32_t jump_count;
    double straight_cycles; /* of an instruction that the nearest cache has */
    /* Only jumping code shows these: a cache of each sub-core (size 0: none), what a jump costs,
     * and whether the last cache of instructions is also the last one of constants before L2. */
    struct sim_instruction_cache sub_core_cache;
    double jump_cycles;
    bool code_and_constants;
    double dram_clocked; /* share of the DRAM time that follows the memory clock */
    double dram_slow_share, dram_slow_cycles; /* this share takes up to this much longer */
    double constant_first_cycles;             /* added to an SM's first constant load in a launch */
    struct sim_path paths[DEVICE_PATH_COUNT];
    struct sim_bandwidth bandwidth;
    struct sim_hardware hardware;
    struct sim_board board;
    struct sim_config config;
    double health[HEALTH_NUMBERS];

    /* What faults and variation add: */
    double dram_factor;    /* on the DRAM part of a latency */
    double l1_share;       /* share of the derived or stated size that still caches */
    int32_t slow_sm;       /* -1: none */
    double timer_error;    /* share by which the clock in nanoseconds goes too fast */
    double slow_share;     /* additional cycles on that SM, as a share */
    uint32_t hidden_sms;   /* missing, although the driver reports them */
    uint64_t hidden_bytes; /* of memory, in the same way */
    uint64_t held_bytes;   /* of memory, by nobody who is listed */
    uint64_t weak_offset;  /* in the part of the memory that takes weak_share longer */
    double weak_share;
    double weak_ns;                     /* that a load of it takes longer besides */
    uint32_t weak_corrected;            /* errors that ECC corrects whenever that part is read */
    uint64_t wrong_offset, wrong_words; /* words with a bit that is always 1 */
    uint64_t wrong_stride;              /* bytes from one to the next */
    uint32_t wrong_bit;
    uint32_t wrong_sm; /* computes wrong in wrong_share of its checks */
    double wrong_share;
    int wrong_path;            /* enum device_screen_path: of what */
    int wrong_card_path;       /* all SMs compute it wrong alike; -1: none */
    uint64_t throttle_bits;    /* as NVML gives them */
    double fall_share, fall_s; /* of the SM clock, after this time under load */
    int fall_reason;           /* enum sim_reason */
    int64_t hang_after;        /* jobs; -1: never */
    int64_t crash_after;
    double wait_s; /* before the first job */

    /* Where the parts of the GPU are: */
    uint16_t gpc_rank[SIM_SMS_MAX]; /* of a GPC along the parts of L2 */
    float l2_distance[SIM_SMS_MAX]; /* cycles that the loads of an SM take longer to L2 */
    unsigned xids[XID_LIST_MAX];
    size_t xid_count;
    bool fabric_set;  /* by a fault; otherwise it is completed if there are NVLinks */
    int fabric_state; /* enum sim_fabric */
};

/* By enum cache_index, enum cache_policy and enum sim_scope; NULL after the last. */
extern const char *const sim_index_words[], *const sim_policy_words[], *const sim_scope_words[];

/* Caches, carve-out, L2, TLBs and paths are in geometry.c, instructions in instructions.c, clusters
 * in cluster.c, the rest in model.c. */
int sim_read_caches(const struct yaml_node *node, struct sim_model *model, struct err *err);

/* node: the value of `sms_per_gpc`, or NULL (places.c). */
int sim_read_places(const struct yaml_node *node, bool across, struct sim_model *model,
                    struct err *err);

/* sizes: of each GPC, in SMs; they add up to the model's. */
void sim_place_sms(struct sim_model *model, const uint32_t *sizes, uint32_t gpc_count);
int sim_read_carveout(const struct yaml_node *node, struct sim_model *model, struct err *err);
/* `full` is 0. */
int sim_read_ways(const struct yaml_node *node, uint64_t lines, uint64_t *out_ways,
                  struct err *err);
int sim_read_l2(const struct yaml_node *node, struct sim_model *model, struct err *err);
int sim_read_instructions(const struct yaml_node *node, struct sim_model *model, struct err *err);
int sim_read_instruction_caches(const struct yaml_node *node, struct sim_model *model,
                                struct err *err);
int sim_read_clusters(const struct yaml_node *node, struct sim_model *model, struct err *err);
int sim_read_tlbs(const struct yaml_node *node, struct sim_model *model, struct err *err);
int sim_read_paths(const struct yaml_node *node, struct sim_model *model, struct err *err);

/* The timer's overhead on each path: one number for all, or a mapping of paths. */
int sim_read_overheads(const struct yaml_node *node, struct sim_model *model, struct err *err);

/* By enum sim_fabric; NULL after the last. */
extern const char *const sim_fabric_words[];

/* What the driver reports about health (identity.c): the values of a healthy GPU, and values read
 * from a mapping of facts. */
void sim_health_defaults(double health[HEALTH_NUMBERS]);
int sim_health_read(const struct yaml_node *node, struct sim_health_value health[HEALTH_NUMBERS],
                    struct err *err);
void sim_health_apply(const struct sim_health_value values[HEALTH_NUMBERS],
                      double health[HEALTH_NUMBERS]);

/* Applies a fault that only the driver's counters, events and sensors show. -EINVAL for more Xid
 * events than fit. */
int sim_health_fault(const struct sim_fault *fault, struct sim_model *model, struct err *err);

/* The shared memory that a wish gets, and the L1 data capacity that is left, in bytes. -EINVAL for
 * a wish above the largest step. */
int sim_carveout_grant(const struct sim_carveout *carveout, uint64_t wish, uint64_t *out_granted,
                       uint64_t *out_l1, struct err *err);

/* How many passes a load of shared memory takes (shared_memory.c): in each one, a bank delivers one
 * word to all lanes that want it. As many lanes go together as all banks have words. */
uint32_t sim_banks_passes(const struct sim_banks *banks, const struct sim_lanes *lanes);

/* NVML's bits of a reason (fault.c). */
uint64_t sim_throttle_bits(int reason);

/* Applies a fault to a model (fault.c); -EINVAL for one that does not fit. */
int sim_model_apply(struct sim_model *model, const struct sim_fault *fault, struct err *err);

/* Where a fault is: on a GPU of its node, or on a share of the fleet. */
struct sim_fault_place {
    const struct yaml_node *gpu; /* an index, or `all`; only if the fault is not drawn */
    double hits;
    int per; /* enum sim_per */
};
extern const char *const sim_per_words[];

/* Reads {kind: .., when: .., parameters} with `gpu`, or with `hits` and `per` if it is drawn. */
int sim_fault_read(const struct yaml_node *node, bool drawn, struct sim_fault *out_fault,
                   struct sim_fault_place *out_place, struct err *err);

/* -EINVAL with the position of the node for a fault that the model cannot have. */
int sim_fault_fits(const struct yaml_node *node, const struct sim_fault *fault,
                   const struct sim_model *model, struct err *err);

/* `vary` of a fleet file (draws.c); NULL: as real cards vary. */
int sim_vary_read(const struct yaml_node *node, struct sim_vary *out_vary, struct err *err);
void sim_vary_apply(const struct sim_vary *vary, uint64_t seed, struct sim_model *model);

/* The value of a key, for the position in an error message, or the mapping itself if the key is
 * absent. */
const struct yaml_node *sim_at(const struct yaml_node *mapping, const char *key);

/* Copies a text that must not be longer than SIM_TEXT_MAX - 1. These are in geometry.c. */
int sim_copy_text(const struct yaml_node *mapping, const char *key, const char *text,
                  char out_text[SIM_TEXT_MAX], struct err *err);

/* The same for what a setting of the catalogue has: one of its words, if it has a list of them. */
int sim_copy_setting(const struct yaml_node *mapping, const char *key, const char *setting,
                     const char *text, char out_text[SIM_TEXT_MAX], struct err *err);

#endif
