/* What was measured against what the driver reports of the same GPU. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "judge/internal.h"
#include "judge/words.h"

/* Shares of what is reported that must be seen at least. L2: the resolution of its size. Memory:
 * drivers, ECC and desktops keep a part. Link: what hosts reach of the raw rate differs much. */
static const double L2_SEEN = 0.9, MEMORY_FREE = 0.75, LINK_REACHED = 0.5;

/* An SM clock so far below the reported one is looked at, or accused. */
static const double CLOCK_WATCH = 0.05, CLOCK_ACCUSE = 0.15;

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
    words_put_number(&text, claim->seen, claim->unit);
    strbuf_printf(&text, " %s ", claim->words);
    words_put_number(&text, claim->claimed, claim->unit);
    finding->accused = claim->accuses;
    finding->value = claim->seen;
    finding->expected = claim->claimed;
    finding->deviation = claim->seen / claim->claimed - 1;
    finding->cause = text.data;
    return text.failed ? -ENOMEM : 0;
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
                 &(struct claim){"config.memory_free_bytes", "B", available, memory, true,
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
    return rc;
}

int judge_claims(struct judge *judge)
{
    for (size_t i = 0; i < judge->fleet.count; i++) {
        uint32_t gpu = judge->fleet.order[i];
        if (fleet_judged(&judge->fleet.gpus[gpu]) && check_gpu(judge, gpu))
            return -ENOMEM;
    }
    return 0;
}
