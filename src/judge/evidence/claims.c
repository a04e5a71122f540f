/* Measured values against the values that the driver reports for the same GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/str.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"
#include "judge/model.h"
#include "judge/robust.h"

/* The measured value must be at least this share of the reported one. L2: the resolution of its
 * size. Memory: drivers, ECC and desktops use a part. Link: hosts reach very different shares of
 * its rate. */
static const double L2_SEEN = 0.9, MEMORY_FREE = 0.75, LINK_REACHED = 0.5;

/* A GPU with this share of its memory less than its peers is watched, or accused. */
static const double MEMORY_WATCH = 0.02, MEMORY_ACCUSE = 0.05;

/* A GPU with an SM clock this share below the reported one is watched, or accused. */
static const double CLOCK_WATCH = 0.05, CLOCK_ACCUSE = 0.15;

/* A GPU with a memory clock under load below this share of the highest one is watched, or accused.
 * Many cards compute in a performance state somewhat below the highest. */
static const double MEMORY_CLOCK_WATCH = 0.8, MEMORY_CLOCK_ACCUSE = 0.6;

static const char MEMORY_METRIC[] = "config.memory_free_bytes";
static const char MEASURED[] = "measured, the driver reports";

/* A measured value and the one that it is compared with. */
struct claim {
    const char *metric, *unit;
    double seen, claimed;
    const char *words;    /* between the two values in the cause */
    double watch, accuse; /* watched, or accused, below this share of `claimed` */
    enum verdict verdict;
    unsigned not_of; /* bits of enum gpu_kind: what the driver reports does not hold for these */
};

enum { OF_INSTANCE = 1u << GPU_KIND_INSTANCE, OF_CONFIDENTIAL = 1u << GPU_KIND_CONFIDENTIAL };

static double claim_fact(const struct fleet *fleet, enum fact_set set, const char *key,
                         uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, set, key), gpu);
}

/* GB/s of a PCIe link: 0.25 per lane in the first generation; each generation doubles it; 128b/130b
 * coding from the third on. */
static double link_gbs(double gen, double width)
{
    return 0.25 * portable_exp2(gen - 1) * width * (gen >= 3 ? 0.985 : 1);
}

static void claim_report(struct judge *judge, uint32_t gpu, const struct claim *claim,
                         enum basis basis, enum evidence evidence)
{
    struct finding finding = finding_new(judge, gpu, claim->metric, basis, evidence);
    finding.unit = judge_symbol(judge, claim->unit);
    finding.verdict = claim->verdict;
    finding_compare(&finding, claim->seen, claim->claimed);
    struct strbuf text = {0};
    fact_text_put_number(&text, claim->seen, claim->unit);
    strbuf_printf(&text, " %s ", claim->words);
    fact_text_put_number(&text, claim->claimed, claim->unit);
    findings_add(judge, finding, text.data);
}

/* Needs no peers: the memory clock, for example, may be low on all GPUs. Whether drivers report the
 * L2 of a MIG instance or of its GPU is not known. The link to the host is that of its GPU, which
 * an instance shares and may have fewer copy engines for. Confidential computing encrypts what goes
 * over the link. */
static void claims_check_gpu(struct judge *judge, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    unsigned kinds = 0;
    for (int kind = 0; kind < GPU_KINDS; kind++)
        kinds |= fleet_is_kind(fleet, (enum gpu_kind)kind, gpu) ? 1u << kind : 0;
    const struct claim claims[] = {
        {"l2.size", "B", fleet_value(fleet, "l2.size", gpu, false),
         claim_fact(fleet, SET_HARDWARE, "l2_bytes", gpu), MEASURED, L2_SEEN, L2_SEEN,
         VERDICT_DEGRADED, OF_INSTANCE},
        {"sm.count", "", fleet_value(fleet, "sm.count", gpu, false),
         claim_fact(fleet, SET_HARDWARE, "sms", gpu), MEASURED, 1, 1, VERDICT_DEGRADED},
        {MEMORY_METRIC, "B", claim_fact(fleet, SET_CONFIG, "memory_free_bytes", gpu),
         claim_fact(fleet, SET_HARDWARE, "memory_bytes", gpu),
         "can be allocated, the driver reports", MEMORY_FREE, MEMORY_FREE, VERDICT_DEGRADED},
        {"clock.sm_reported", "MHz", fleet_value(fleet, "clock.sm", gpu, false),
         fleet_value(fleet, "clock.sm_reported", gpu, false), MEASURED, 1 - CLOCK_WATCH,
         1 - CLOCK_ACCUSE, VERDICT_DEGRADED},
        {"host.bandwidth.h2d", "GB/s", fleet_value(fleet, "host.bandwidth.h2d", gpu, false),
         link_gbs(claim_fact(fleet, SET_CONFIG, "pcie_gen", gpu),
                  claim_fact(fleet, SET_CONFIG, "pcie_width", gpu)),
         "measured, the link as reported has", LINK_REACHED, LINK_REACHED, VERDICT_DEGRADED,
         OF_INSTANCE | OF_CONFIDENTIAL},
        {"clock.memory", "MHz", fleet_value(fleet, "clock.memory", gpu, false),
         claim_fact(fleet, SET_HARDWARE, "memory_clock_max_mhz", gpu),
         "under load, the driver's highest is", MEMORY_CLOCK_WATCH, MEMORY_CLOCK_ACCUSE,
         VERDICT_MISCONFIGURED},
    };
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        const struct claim *claim = &claims[i];
        bool fault = claim->seen < claim->accuse * claim->claimed;
        if (claim->seen < claim->watch * claim->claimed && !(claim->not_of & kinds))
            claim_report(judge, gpu, claim, BASIS_RULE, fault ? EVIDENCE_FAULT : EVIDENCE_HINT);
    }
}

/* The share of the memory that can be allocated; NaN if it is not known. */
static double free_share(const struct fleet *fleet, uint32_t gpu)
{
    return claim_fact(fleet, SET_CONFIG, "memory_free_bytes", gpu) /
           claim_fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
}

/* Drivers reserve the same memory on all GPUs of a model. If more is missing on one GPU, a process
 * that the driver does not list uses it, or the memory is broken. */
static void claims_check_memory(struct judge *judge, const struct group *group, double *numbers)
{
    const struct fleet *fleet = &judge->fleet;
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        double share = free_share(fleet, group->members[i]);
        if (fleet_judged(&fleet->gpus[group->members[i]]) && isfinite(share))
            numbers[n++] = share;
    }
    double usual = robust_median(numbers, n);
    for (size_t i = 0; i < group->count && n >= PEERS_MIN; i++) {
        uint32_t gpu = group->members[i];
        double missing = usual - free_share(fleet, gpu);
        double memory = claim_fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
        if (!fleet_judged(&fleet->gpus[gpu]) || judge->other_hardware[gpu] ||
            !(missing >= MEMORY_WATCH) || issue_find(judge, gpu, MEMORY_METRIC, BASIS_RULE))
            continue;
        const struct claim claim = {.metric = MEMORY_METRIC,
                                    .unit = "B",
                                    .seen = (usual - missing) * memory,
                                    .claimed = usual * memory,
                                    .words =
                                        "can be allocated though no process is seen, on its peers",
                                    .verdict = VERDICT_DEGRADED};
        claim_report(judge, gpu, &claim, BASIS_FLEET,
                     missing >= MEMORY_ACCUSE ? EVIDENCE_FAULT : EVIDENCE_HINT);
    }
}

void stage_claims(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    double *numbers = mem_array(fleet->count, sizeof *numbers);
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet_judged(&fleet->gpus[fleet->order[i]]) && !fleet->gpus[fleet->order[i]].sliced)
            claims_check_gpu(judge, fleet->order[i]);
    for (size_t g = 0; g < fleet->group_count; g++)
        claims_check_memory(judge, &fleet->groups[g], numbers);
    free(numbers);
}
