/* The catalogue of metrics: a row each. */
#include "catalogue/metrics.h"

#include <string.h>

#include "base/mem.h"
#include "catalogue/screens.h"

const struct metric_row metric_rows[] = {
    /* How many bytes of data L1 holds. 3 % is above the resolution of the sweep. */
    {"l1_data.size", JUDGE_LOWER, 0.03},
    /* The line of L1 is fixed in hardware: a GPU with another value has another chip. */
    {"l1_data.line", JUDGE_ANY, 0},
    /* An L1 hit in SM cycles does not depend on the clock: a few per cent are not noise. */
    {"l1_data.latency", JUDGE_HIGHER, 0.01},
    /* Main memory in SM cycles: the time behind L2 is constant in ns, so it takes more cycles at a
     * higher SM clock. A part of it follows the memory clock. */
    {"main.latency", JUDGE_HIGHER, 0.01,
     .follows = {[JUDGE_SM_CLOCK] = 0.6, [JUDGE_MEMORY_CLOCK] = 0.3}},
    /* The bandwidth of main memory repeats within fractions of a per cent. With equal work per SM
     * it is another figure, which the split of the SMs among the parts of L2 lowers. */
    {"main.bandwidth.read", JUDGE_LOWER, 0.01, .peak_share = 0.7,
     .follows = {[JUDGE_MEMORY_CLOCK] = 1, [JUDGE_MEMORY_BUS] = 1, [JUDGE_SMS] = 1}},
    {"main.bandwidth.write", JUDGE_LOWER, 0.01, .peak_share = 0.6,
     .follows = {[JUDGE_MEMORY_CLOCK] = 1, [JUDGE_MEMORY_BUS] = 1, [JUDGE_SMS] = 1}},
    {"main.bandwidth_equal.read", JUDGE_LOWER, 0.01, .unless = "main.bandwidth.read",
     .follows = {[JUDGE_MEMORY_CLOCK] = 1, [JUDGE_MEMORY_BUS] = 1, [JUDGE_SMS] = 1}},
    {"main.bandwidth_equal.write", JUDGE_LOWER, 0.01, .unless = "main.bandwidth.write",
     .follows = {[JUDGE_MEMORY_CLOCK] = 1, [JUDGE_MEMORY_BUS] = 1, [JUDGE_SMS] = 1}},
    /* The test of the whole memory: counts that must be 0, by a rule, and offsets in the memory. */
    {"main.whole.errors", JUDGE_NONE},
    {"main.whole.first_error", JUDGE_NONE, .is_name = true},
    {"main.whole.ecc_corrected", JUDGE_NONE},
    {"main.whole.ecc_uncorrected", JUDGE_NONE},
    {"main.whole.slow_regions", JUDGE_NONE},
    {"main.whole.slowest_region", JUDGE_NONE, .is_name = true},
    {"main.whole.late_regions", JUDGE_NONE},
    {"main.whole.latency_worst_region", JUDGE_NONE, .is_name = true},
    /* The March test of it: the same, and what the wrong words have in common. */
    {"main.march.errors", JUDGE_NONE},
    {"main.march.first_error", JUDGE_NONE, .is_name = true},
    {"main.march.places", JUDGE_NONE},
    {"main.march.again", JUDGE_NONE},
    {"main.march.pages", JUDGE_NONE},
    {"main.march.period", JUDGE_NONE},
    {"main.march.bits", JUDGE_NONE},
    {"main.march.bit", JUDGE_NONE, .is_name = true},
    {"main.march.ones", JUDGE_NONE},
    {"main.march.ecc_corrected", JUDGE_NONE},
    {"main.march.ecc_uncorrected", JUDGE_NONE},
    /* The check of the SMs: results that must not be wrong, by a rule, and rates, which the design
     * decides: they repeat within 0.02 %. That of integers also follows from how the compiler makes
     * their instructions: builds of one version differ by a third. */
    {"compute.wrong", JUDGE_NONE},
    {"compute.wrong_sm", JUDGE_NONE, .is_name = true},
    {"compute.wrong_in.int", JUDGE_NONE},
    {"compute.wrong_in.fp32", JUDGE_NONE},
    {"compute.wrong_in.fp64", JUDGE_NONE},
    {"compute.wrong_in.mma_f16", JUDGE_NONE},
    {"compute.wrong_in.mma_bf16", JUDGE_NONE},
    {"compute.wrong_in.mma_fp8", JUDGE_NONE},
    {"compute.wrong_in.wgmma_f16", JUDGE_NONE},
    {"compute.wrong_in.wgmma_bf16", JUDGE_NONE},
    {"compute.wrong_in.wgmma_fp8", JUDGE_NONE},
    {"compute.wrong_in.shared", JUDGE_NONE},
    {"compute.wrong_in.registers", JUDGE_NONE},
    {"compute.wrong_in.atomics", JUDGE_NONE},
    /* The screen for wrong results: counts by a rule, and digests, which GPUs that run the same
     * machine code must have alike. */
    {"compute.screen", JUDGE_NONE},
    {"compute.code", JUDGE_NONE, .is_name = true, .for_world = true},
    {"compute.pulse", JUDGE_NONE},
    {"compute.pulse_hz", JUDGE_NONE, .is_name = true},
    {"compute.pulse_sm", JUDGE_NONE, .is_name = true},
    {"compute.pulse_step", JUDGE_NONE},
    {"compute.hot", JUDGE_NONE},
    {"compute.hot_sm", JUDGE_NONE, .is_name = true},
#define SCREEN_ROWS(id, name, words, ...)                                                          \
    {"compute.wrong_on." name, JUDGE_NONE},                                                        \
        {"compute.wrong_at." name, JUDGE_NONE, .is_name = true, .keep_notes = true},               \
        {"compute.digest." name, JUDGE_NONE, .is_name = true, .for_world = true},                  \
        {"compute.not_as_host." name, JUDGE_NONE},
    SCREENS(SCREEN_ROWS){"compute.rate.int", JUDGE_NONE},
    {"compute.rate.fp32", JUDGE_LOWER, 0.005},
    {"compute.rate.fp64", JUDGE_LOWER, 0.005},
    {"compute.rate.mma_f16", JUDGE_LOWER, 0.005},
    {"compute.rate.mma_bf16", JUDGE_LOWER, 0.005},
    {"compute.rate.mma_fp8", JUDGE_LOWER, 0.005},
    {"compute.rate.wgmma_f16", JUDGE_LOWER, 0.005},
    {"compute.rate.wgmma_bf16", JUDGE_LOWER, 0.005},
    {"compute.rate.wgmma_fp8", JUDGE_LOWER, 0.005},
    /* The slowest sub-core over the median one, while units are checked; it confirms nothing. In
     * 110 surveys of 5 H200s it was 1.0008 to 1.0096. */
    {"compute.slowest", JUDGE_HIGHER, 0.02, .accuse = 0.05},
    {"compute.slowest_sm", JUDGE_NONE, .is_name = true},
    /* Links between the GPUs of a node: compared link by link, by rules of their own. */
    {"links.peers", JUDGE_NONE},
    {"links.read", JUDGE_NONE},
    {"links.write", JUDGE_NONE},
    {"links.both", JUDGE_NONE},
    {"links.sm_both", JUDGE_NONE},
    {"links.latency", JUDGE_NONE},
    {"links.least", JUDGE_NONE},
    /* Host links of all GPUs of a node at once: compared with the same places of other nodes, by
     * rules of their own. */
    {"host.together.h2d", JUDGE_NONE},
    {"host.together.d2h", JUDGE_NONE},
    {"host.together.both", JUDGE_NONE},
    {"host.together.gpus", JUDGE_NONE},
    /* Size and line of L2; a disabled slice reduces the size. The latency is that of a near hit,
     * in SM cycles. */
    {"l2.size", JUDGE_LOWER, 0.03, .follows = {[JUDGE_L2] = 1}},
    {"l2.line", JUDGE_ANY, 0},
    {"l2.parts", JUDGE_NONE},
    {"l2.part_sms", JUDGE_NONE},
    {"l2.latency", JUDGE_HIGHER, 0.02},
    /* The part that is far from an SM, and the smallest one: cards differ by 0.5 and 0.2 %. */
    {"l2.latency_far", JUDGE_HIGHER, 0.02},
    {"l2.part_size", JUDGE_LOWER, 0.03, .follows = {[JUDGE_L2] = 1}},
    /* The bandwidth of L2 follows the SM clock, which differs from GPU to GPU. With a GPC of 12 SMs
     * an H200 reads 1.8 % less: it is built so. Older surveys do not have the sizes of GPCs. */
    {"l2.bandwidth.read", JUDGE_LOWER, 0.015, .accuse = 0.025, .place_metric = "sm.group_sms",
     .follows = {[JUDGE_SM_CLOCK] = 1, [JUDGE_L2] = 1, [JUDGE_SMS] = 1}},
    {"l2.bandwidth.write", JUDGE_LOWER, 0.015,
     .follows = {[JUDGE_SM_CLOCK] = 1, [JUDGE_L2] = 1, [JUDGE_SMS] = 1}},
    {"l2.bandwidth_equal.read", JUDGE_LOWER, 0.015, .unless = "l2.bandwidth.read",
     .follows = {[JUDGE_SM_CLOCK] = 1, [JUDGE_L2] = 1, [JUDGE_SMS] = 1}},
    {"l2.bandwidth_equal.write", JUDGE_LOWER, 0.015, .unless = "l2.bandwidth.write",
     .follows = {[JUDGE_SM_CLOCK] = 1, [JUDGE_L2] = 1, [JUDGE_SMS] = 1}},
    /* The link to the host: with half the lanes or a lower generation it loses half, by other work
     * of the host a few per cent. */
    {"host.bandwidth.h2d", JUDGE_LOWER, 0.015, .follows = {[JUDGE_PCIE] = 1}},
    {"host.bandwidth.d2h", JUDGE_LOWER, 0.015, .follows = {[JUDGE_PCIE] = 1}},
    /* Under the same load, GPUs of one model reach SM clocks up to 8 % apart. A larger loss means
     * that a limit is active. A smaller loss counts only if a setting or a throttle reason
     * explains it. */
    {"clock.sm", JUDGE_LOWER, 0.01, .accuse = 0.09, .few = 0.25},
    /* Clocks that the driver reports. The judge compares clock.memory with the peers, as a
     * setting, and clock.sm_reported with the measured SM clock, by a rule. */
    {"clock.memory", JUDGE_NONE},
    {"clock.sm_reported", JUDGE_NONE},
    /* L1 hit latency of the median SM; latency of the slowest SM / latency of the median SM. */
    {"sm.l1_latency", JUDGE_HIGHER, 0.01},
    {"sm.l1_worst", JUDGE_HIGHER, 0.01},
    {"sm.l1_worst_sm", JUDGE_NONE, .is_name = true},
    {"sm.count", JUDGE_NONE},
    {"sm.group_sms", JUDGE_NONE},
    /* Sustained load, in the last third of it. Under a power limit the clock differs from GPU to
     * GPU. Of 8 healthy H200s the slowest did 10 % less than the fastest: two cards alone tell
     * little. */
    {"load.flops", JUDGE_LOWER, 0.02, .few = 0.15,
     .follows = {[JUDGE_POWER_LIMIT] = 1, [JUDGE_SMS] = 1}},
    {"load.bandwidth", JUDGE_LOWER, 0.02,
     .follows = {[JUDGE_MEMORY_CLOCK] = 1, [JUDGE_MEMORY_BUS] = 1, [JUDGE_POWER_LIMIT] = 1}},
    /* load.flops follows it */
    {"load.clock.steady", JUDGE_NONE},
    /* Compares a GPU with itself, so it does not show that cards of one model differ by 9 % under
     * load. */
    {"load.clock.kept", JUDGE_LOWER, 0.01},
    {"load.per_joule", JUDGE_NONE},
    {"load.clock.first", JUDGE_NONE},
    {"load.power.steady", JUDGE_NONE},
    {"load.temperature.steady", JUDGE_NONE},
    {"load.drift", JUDGE_NONE},
    {"load.seconds", JUDGE_NONE},
    /* NVML's bits of the reasons that lowered the clock under load. */
    {"load.throttle", JUDGE_NONE},
};
const size_t metric_row_count = COUNT_OF(metric_rows);

bool metric_is_name(const char *metric, const char *unit)
{
    for (size_t i = 0; i < metric_row_count; i++)
        if (metric_rows[i].is_name && strcmp(metric_rows[i].key, metric) == 0)
            return true;
    return unit && strcmp(unit, "id") == 0;
}
