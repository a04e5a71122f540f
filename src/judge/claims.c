/* Measured values against the values that the driver reports for the same GPU. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

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
    double watch, accuse; /* check_gpu: watched, or accused, below this share of `claimed` */
};

static double measured(const struct fleet *fleet, const char *metric, uint32_t gpu)
{
    const struct cell *cell = fleet_number(fleet_metric(fleet, metric), gpu, false);
    return cell ? cell->value : NAN;
}

static double fact(const struct fleet *fleet, enum fact_set set, const char *key, uint32_t gpu)
{
    return fleet_fact_number(fleet, fleet_facts(fleet, set, key), gpu);
}

/* GB/s of a PCIe link: 0.25 per lane in the first generation; each generation doubles it; 128b/130b
 * coding from the third on. */
static double link_gbs(double gen, double width)
{
    return 0.25 * exp2(gen - 1) * width * (gen >= 3 ? 0.985 : 1);
}

static int add(struct judge *judge, uint32_t gpu, const struct claim *claim, bool accused)
{
    struct finding *finding = findings_add(judge, gpu, claim->metric, BASIS_RULE);
    struct strbuf text = {0};
    if (!finding || symbols_text(&judge->fleet.symbols, claim->unit, &finding->unit))
        return -ENOMEM;
    fact_text_put_number(&text, claim->seen, claim->unit);
    strbuf_printf(&text, " %s ", claim->words);
    fact_text_put_number(&text, claim->claimed, claim->unit);
    finding->accused = accused;
    finding->value = claim->seen;
    finding->expected = claim->claimed;
    finding->deviation = claim->seen / claim->claimed - 1;
    finding->cause = text.data;
    return text.failed ? -ENOMEM : 0;
}

/* Needs no peers: the memory clock may be low on all GPUs. */
static int check_memory_clock(struct judge *judge, uint32_t gpu)
{
    double clock = measured(&judge->fleet, "clock.memory", gpu);
    double highest = fact(&judge->fleet, SET_HARDWARE, "memory_clock_max_mhz", gpu);
    if (!(clock < MEMORY_CLOCK_WATCH * highest))
        return 0;
    const struct claim claim = {.metric = "clock.memory",
                                .unit = "MHz",
                                .seen = clock,
                                .claimed = highest,
                                .words = "under load, the driver's highest is"};
    if (add(judge, gpu, &claim, clock < MEMORY_CLOCK_ACCUSE * highest))
        return -ENOMEM;
    judge->findings.items[judge->findings.count - 1].kind = KIND_MISCONFIGURED;
    return 0;
}

static int check_gpu(struct judge *judge, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double memory = fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
    double available = fact(fleet, SET_CONFIG, "memory_free_bytes", gpu);
    double clock = measured(fleet, "clock.sm", gpu);
    double reported_clock = measured(fleet, "clock.sm_reported", gpu);
    double link = link_gbs(fact(fleet, SET_CONFIG, "pcie_gen", gpu),
                           fact(fleet, SET_CONFIG, "pcie_width", gpu));
    const struct claim claims[] = {
        {"l2.size", "B", measured(fleet, "l2.size", gpu),
         fact(fleet, SET_HARDWARE, "l2_bytes", gpu), MEASURED, L2_SEEN, L2_SEEN},
        {"sm.count", "", measured(fleet, "sm.count", gpu), fact(fleet, SET_HARDWARE, "sms", gpu),
         MEASURED, 1, 1},
        {MEMORY_METRIC, "B", available, memory, "can be allocated, the driver reports", MEMORY_FREE,
         MEMORY_FREE},
        {"clock.sm_reported", "MHz", clock, reported_clock, MEASURED, 1 - CLOCK_WATCH,
         1 - CLOCK_ACCUSE},
        {"host.bandwidth.h2d", "GB/s", measured(fleet, "host.bandwidth.h2d", gpu), link,
         "measured, the link as reported has", LINK_REACHED, LINK_REACHED},
    };
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        const struct claim *claim = &claims[i];
        if (claim->seen < claim->watch * claim->claimed &&
            add(judge, gpu, claim, claim->seen < claim->accuse * claim->claimed))
            return -ENOMEM;
    }
    return check_memory_clock(judge, gpu);
}

/* The share of the memory that can be allocated; NaN if it is not known. */
static double free_share(const struct fleet *fleet, uint32_t gpu)
{
    return fact(fleet, SET_CONFIG, "memory_free_bytes", gpu) /
           fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
}

/* Drivers reserve the same memory on all GPUs of a model. If more is missing on one GPU, a process
 * that the driver does not list uses it, or the memory is broken. */
static int check_memory(struct judge *judge, const struct group *group, double *numbers)
{
    const struct fleet *fleet = &judge->fleet;
    size_t n = 0;
    for (size_t i = 0; i < group->count; i++) {
        double share = free_share(fleet, group->members[i]);
        if (fleet_judged(&fleet->gpus[group->members[i]]) && isfinite(share))
            numbers[n++] = share;
    }
    double usual = robust_median(numbers, n);
    for (size_t i = 0; i < group->count && n >= YARDSTICK_MIN; i++) {
        uint32_t gpu = group->members[i];
        double missing = usual - free_share(fleet, gpu);
        double memory = fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
        if (!fleet_judged(&fleet->gpus[gpu]) || judge->other_hardware[gpu] ||
            !(missing >= MEMORY_WATCH) || finding_of(judge, gpu, MEMORY_METRIC, BASIS_RULE))
            continue;
        const struct claim claim = {.metric = MEMORY_METRIC,
                                    .unit = "B",
                                    .seen = (usual - missing) * memory,
                                    .claimed = usual * memory,
                                    .words =
                                        "can be allocated though no process is seen, on its peers"};
        if (add(judge, gpu, &claim, missing >= MEMORY_ACCUSE))
            return -ENOMEM;
        judge->findings.items[judge->findings.count - 1].basis = BASIS_FLEET;
    }
    return 0;
}

int judge_claims(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    double *numbers = mem_array(fleet->count, sizeof *numbers);
    int rc = numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < fleet->count && !rc; i++)
        if (fleet_judged(&fleet->gpus[fleet->order[i]]))
            rc = check_gpu(judge, fleet->order[i]);
    for (size_t g = 0; g < fleet->group_count && !rc; g++)
        rc = check_memory(judge, &fleet->groups[g], numbers);
    free(numbers);
    return rc;
}
