/* Bounds of a kernel's time. */
#include "predict/bound.h"

#include <math.h>

static double seconds(uint64_t sectors, uint64_t sector_bytes, double gb_per_s)
{
    return (double)(sectors * sector_bytes) / (gb_per_s * 1e9);
}

/* A warp waits for each load as long as the farthest memory takes that it needs; the warps in
 * flight wait at the same time. */
static double latency_seconds(const struct model_counts *counts, const struct machine_figures *f)
{
    double ns = (double)counts->waits_l1 * f->l1_latency +
                (double)counts->waits_l2 * f->l2_latency +
                (double)counts->waits_main * f->main_latency;
    return ns * 1e-9 / ((double)counts->warps_in_flight * counts->active_sms);
}

struct bound bound_of(const struct model_counts *counts, const struct machine *machine)
{
    const struct machine_figures *f = &machine->figures;
    uint64_t sector = machine->config.l1.sector;
    struct bound bound = {
        .seconds =
            {
                [BOUND_L1] = seconds(counts->l1_reads, sector, f->l1_read),
                [BOUND_L2_READ] = seconds(counts->l2.reads, sector, f->l2_read),
                [BOUND_L2_WRITE] = seconds(counts->l2.writes, sector, f->l2_write),
                [BOUND_MAIN_READ] = seconds(counts->l2.main_reads, sector, f->main_read),
                [BOUND_MAIN_WRITE] = seconds(counts->l2.main_writes, sector, f->main_write),
                [BOUND_LATENCY] = latency_seconds(counts, f),
            },
        .longest = NAN,
        .limit = BOUND_LIMITS};
    for (int i = 0; i < BOUND_LIMITS; i++) {
        if (isnan(bound.seconds[i]) || bound.seconds[i] <= bound.longest)
            continue;
        bound.longest = bound.seconds[i];
        bound.limit = (enum bound_limit)i;
    }
    return bound;
}

const char *bound_limit_name(enum bound_limit limit)
{
    static const char *const names[BOUND_LIMITS + 1] = {
        [BOUND_L1] = "l1_bandwidth",
        [BOUND_L2_READ] = "l2_read_bandwidth",
        [BOUND_L2_WRITE] = "l2_write_bandwidth",
        [BOUND_MAIN_READ] = "main_read_bandwidth",
        [BOUND_MAIN_WRITE] = "main_write_bandwidth",
        [BOUND_LATENCY] = "latency",
        [BOUND_LIMITS] = "unknown",
    };
    return names[limit];
}
