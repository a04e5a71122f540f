/* What was measured against what the driver reports of the same GPU. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/robust.h"
#include "judge/yardstick.h"

/* Shares of what is reported that must be seen at least. L2: the resolution of its size. Memory:
 * drivers, ECC and desktops keep a part. Link: what hosts reach of the raw rate differs much. */
static const double L2_SEEN = 0.9, MEMORY_FREE = 0.75, LINK_REACHED = 0.5;

/* So much less memory than on peers, as a share of all of it, is looked at, or accused. */
static const double MEMORY_WATCH = 0.02, MEMORY_ACCUSE = 0.05;

/* An SM clock so far below the reported one is looked at, or accused. */
static const double CLOCK_WATCH = 0.05, CLOCK_ACCUSE = 0.15;

/* Shares of the highest memory clock: below them the one under load is looked at, or accused. Many
 * cards compute in a performance state somewhat below the highest. */
static const double MEMORY_CLOCK_WATCH = 0.8, MEMORY_CLOCK_ACCUSE = 0.6;

static const char MEMORY_METRIC[] = "config.memory_free_bytes";

/* One disagreement: something seen and something claimed. */
struct claim {
    const char *metric, *unit;
    double seen, claimed;
    bool accuses;
    const char *words; /* between the two: "measured, the driver reports" */
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

/* GB/s of a PCIe link: 0.25 per lane in the first generation, doubled by each further one;
 * 128b/130b coding from the third on. */
static double link_gbs(double gen, double width)
{
    return 0.25 * exp2(gen - 1) * width * (gen >= 3 ? 0.985 : 1);
}

static int add(struct judge *judge, uint32_t gpu, const struct claim *claim)
{
    struct finding *finding = findings_add(judge, gpu, claim->metric, BASIS_RULE);
    struct strbuf text = {0};
    if (!finding || symbols_text(&judge->fleet.symbols, claim->unit, &finding->unit))
        return -ENOMEM;
    fact_text_put_number(&text, claim->seen, claim->unit);
    strbuf_printf(&text, " %s ", claim->words);
    fact_text_put_number(&text, claim->claimed, claim->unit);
    finding->accused = claim->accuses;
    finding->value = claim->seen;
    finding->expected = claim->claimed;
    finding->deviation = claim->seen / claim->claimed - 1;
    finding->cause = text.data;
    return text.failed ? -ENOMEM : 0;
}

/* Also where the whole fleet has it, and peers tell nothing. */
static int check_memory_clock(struct judge *judge, uint32_t gpu)
{
    double clock = measured(&judge->fleet, "clock.memory", gpu);
    double highest = fact(&judge->fleet, SET_HARDWARE, "memory_clock_max_mhz", gpu);
    if (!(clock < MEMORY_CLOCK_WATCH * highest))
        return 0;
    int rc = add(judge, gpu,
                 &(struct claim){"clock.memory", "MHz", clock, highest,
                                 clock < MEMORY_CLOCK_ACCUSE * highest,
                                 "under load, the driver's highest is"});
    if (!rc)
        judge->findings.items[judge->findings.count - 1].kind = KIND_MISCONFIGURED;
    return rc;
}

static int check_gpu(struct judge *judge, uint32_t gpu)
{
    const struct fleet *fleet = &judge->fleet;
    double l2 = measured(fleet, "l2.size", gpu);
    double l2_bytes = fact(fleet, SET_HARDWARE, "l2_bytes", gpu);
    double count = measured(fleet, "sm.count", gpu);
    double sms = fact(fleet, SET_HARDWARE, "sms", gpu);
    double memory = fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
    double available = fact(fleet, SET_CONFIG, "memory_free_bytes", gpu);
    double clock = measured(fleet, "clock.sm", gpu);
    double reported = measured(fleet, "clock.sm_reported", gpu);
    double h2d = measured(fleet, "host.bandwidth.h2d", gpu);
    double link = link_gbs(fact(fleet, SET_CONFIG, "pcie_gen", gpu),
                           fact(fleet, SET_CONFIG, "pcie_width", gpu));
    int rc = 0;
    if (l2 < L2_SEEN * l2_bytes)
        rc = add(
            judge, gpu,
            &(struct claim){"l2.size", "B", l2, l2_bytes, true, "measured, the driver reports"});
    if (!rc && count < sms)
        rc = add(judge, gpu,
                 &(struct claim){"sm.count", "", count, sms, true, "measured, the driver reports"});
    if (!rc && available < MEMORY_FREE * memory)
        rc = add(judge, gpu,
                 &(struct claim){MEMORY_METRIC, "B", available, memory, true,
                                 "can be allocated, the driver reports"});
    if (!rc && clock < (1 - CLOCK_WATCH) * reported)
        rc = add(judge, gpu,
                 &(struct claim){"clock.sm_reported", "MHz", clock, reported,
                                 clock < (1 - CLOCK_ACCUSE) * reported,
                                 "measured, the driver reports"});
    if (!rc && h2d < LINK_REACHED * link)
        rc = add(judge, gpu,
                 &(struct claim){"host.bandwidth.h2d", "GB/s", h2d, link, true,
                                 "measured, the link as reported has"});
    return rc ? rc : check_memory_clock(judge, gpu);
}

/* The share of its memory that can be allocated; NaN where it is not known. */
static double free_share(const struct fleet *fleet, uint32_t gpu)
{
    return fact(fleet, SET_CONFIG, "memory_free_bytes", gpu) /
           fact(fleet, SET_HARDWARE, "memory_bytes", gpu);
}

/* What drivers keep is the same on all GPUs of a model: what else is missing somebody holds, or it
 * is broken. */
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
        if (!fleet_judged(&fleet->gpus[gpu]) || judge->odd[gpu] || !(missing >= MEMORY_WATCH) ||
            finding_of(judge, gpu, MEMORY_METRIC, BASIS_RULE))
            continue;
        if (add(judge, gpu,
                &(struct claim){MEMORY_METRIC, "B", (usual - missing) * memory, usual * memory,
                                missing >= MEMORY_ACCUSE,
                                "can be allocated though no process is seen, on its peers"}))
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
