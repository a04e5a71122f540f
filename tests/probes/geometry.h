/* Random cache geometries as simulated GPUs: the truth that probes are compared with. */
#ifndef GPUMEMTOPO_TESTS_PROBES_GEOMETRY_H
#define GPUMEMTOPO_TESTS_PROBES_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "device/device.h"
#include "inventory/measure.h"

enum geometry_policy {
    POLICY_LRU,
    POLICY_RANDOM,
    POLICY_FERMI,
    POLICY_EARLY,
    POLICY_FIFO,
    POLICY_TREE
};

struct geometry {
    uint64_t l1_size_bytes, l1_line_bytes, l1_sector_bytes;
    uint32_t l1_ways; /* 0: fully associative */
    uint32_t run;     /* lines that go to the same set one after the other; 0: 1 */
    bool hashed;
    enum geometry_policy policy;
    uint64_t tags_bytes; /* of L1, if there are more tags than data */
    bool l2_hashed;
    enum geometry_policy l2_policy;
    bool l1_for_global; /* global loads are cached in L1 */
    bool per_tpc;       /* two SMs share L1 */
    uint32_t instances; /* L1s per SM */
    bool blocked;       /* warps in blocks to instances, else interleaved */
    bool texture_apart; /* texture has a cache of its own, else it is L1's array */
    double l1_cycles, l2_cycles, main_cycles;
    double jitter_cycles, spike_rate, spike_cycles;
    double overhead_cycles;
    uint32_t sms;
};

/* A quiet GPU: 16 SMs, L1 of 128 KiB, line 128, sector 32, 4 ways, LRU, 32 / 200 / 500 cycles. */
struct geometry geometry_default(void);

/* Number `i` of the random geometries of a seed: L1 of 1 to 512 KiB, direct-mapped to fully
 * associative, modulo and hashed, 1 to 8 sectors, all policies, 1 to 4 per SM, texture in the same
 * array or apart, jitter up to 20 % of the gap between hit and miss, spikes up to 1 %. */
struct geometry geometry_random(uint64_t seed, uint64_t i);

void geometry_print(const struct geometry *geometry, struct strbuf *out_yaml);

/* Opens the simulated GPU and runs the probes of `list` (NULL: all). Fails the test on error. */
void geometry_measure(const struct geometry *geometry, const char *list, uint64_t seed,
                      struct measures *out_measures);

#endif
