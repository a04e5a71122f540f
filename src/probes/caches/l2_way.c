/* The probe of the way between the two parts of L2: what SMs move to and from lines whose home is
 * the other part, compared with lines of their own part. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum {
    WAY_REPEATS = 3,
    WAY_ONE_PER_CENT = 80,  /* of L2: the lines of a home fit into either part */
    WAY_BOTH_PER_CENT = 40, /* and those of both homes together, if both parts have copies */
    WAY_UNIT_BYTES = 1 << 16,
    WAY_ROUNDS = 16,
};

static const char *const way_metrics[DEVICE_WAY_WORK_COUNT] = {"l2.way.read", "l2.way.write"};

/* Far lines are slower by more than this share than near ones, and half of the SMs are not: the way
 * is the limit, neither the slices nor the SMs. */
static const double WAY_SLOWER = 0.1;

/* Who uses which lines. */
enum { WAY_NEAR, WAY_FAR, WAY_FAR_HALF, WAY_NEAR_BOTH, WAY_FAR_BOTH, WAY_USES };
static const struct way_use {
    const char *note;
    bool far, both;
    uint32_t every;
} way_uses[WAY_USES] = {[WAY_NEAR] = {"near", false, false, 1},
                        [WAY_FAR] = {"far", true, false, 1},
                        [WAY_FAR_HALF] = {"far_half_of_sms", true, false, 2},
                        [WAY_NEAR_BOTH] = {"near_both", false, true, 1},
                        [WAY_FAR_BOTH] = {"far_both", true, true, 1}};

static uint64_t way_footprint(const struct device_limits *limits, bool both)
{
    uint64_t per_cent = both ? WAY_BOTH_PER_CENT : WAY_ONE_PER_CENT;
    return limits->l2_reported_bytes / 100 * per_cent / WAY_UNIT_BYTES * WAY_UNIT_BYTES;
}

/* The SMs of each part alone, or of both at once. */
static int way_measure(struct probe_context *context, struct device_way *way,
                       const struct way_use *use, double *gbs, size_t *count, struct err *err)
{
    way->far = use->far;
    way->every = use->every;
    way->footprint_bytes = way_footprint(device_limits(context->device), use->both);
    way->total_bytes = way->footprint_bytes / 2 * WAY_ROUNDS;
    *count = 0;
    for (uint32_t parts = use->both ? 3 : 1; parts <= (use->both ? 3 : 2); parts++)
        for (size_t r = 0; r < WAY_REPEATS; r++) {
            struct device_way_answer answer;
            way->parts = parts;
            int rc = device_cross_way(context->device, way, &answer, err);
            if (rc)
                return rc;
            gbs[*count] = 0;
            for (uint32_t part = 0; part < 2; part++)
                if (answer.elapsed_ns[part])
                    gbs[*count] += (double)answer.bytes[part] / (double)answer.elapsed_ns[part];
            (*count)++;
        }
    return 0;
}

static int way_measure_work(struct probe_context *context, struct device_way *way, struct err *err)
{
    double gbs[WAY_USES][2 * WAY_REPEATS], medians[WAY_USES];
    size_t counts[WAY_USES];
    for (int use = 0; use < WAY_USES; use++) {
        int rc = way_measure(context, way, &way_uses[use], gbs[use], &counts[use], err);
        if (rc)
            return rc;
        medians[use] = cpd_median(gbs[use], counts[use]);
    }
    struct measure *m =
        repeats_add(context, way_metrics[way->work], gbs[WAY_FAR], counts[WAY_FAR], "GB/s",
                    "the SMs of one part use lines whose home is the other part");
    bool limits = medians[WAY_FAR] < (1 - WAY_SLOWER) * medians[WAY_NEAR] &&
                  medians[WAY_FAR_HALF] > (1 - WAY_SLOWER) * medians[WAY_FAR];
    m->n = (uint32_t)counts[WAY_FAR];
    m->confidence = repeats_confidence(m->value, m->spread);
    m->bound = limits ? MEASURE_EXACT : MEASURE_AT_LEAST;
    for (int use = 0; use < WAY_USES; use++)
        if (use != WAY_FAR)
            facts_set_real(&m->notes, way_uses[use].note, facts_decimals(medians[use], 0));
    return 0;
}

static void way_missing(struct probe_context *context, enum measure_status status,
                        const char *reason)
{
    for (int work = 0; work < DEVICE_WAY_WORK_COUNT; work++)
        measures_add_missing(context->measures, way_metrics[work], status, reason);
}

static int way_run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    const struct measure *parts = measures_get(context->measures, "l2.part_sms");
    size_t count = 0, sizes = 0;
    const double *map = parts ? facts_numbers(&parts->notes, "map", &count) : NULL;
    if (parts)
        facts_numbers(&parts->notes, "sizes", &sizes);
    double near = parts ? fact_number(facts_get(&parts->notes, "atomic_near")) : NAN;
    double far = parts ? fact_number(facts_get(&parts->notes, "atomic_far")) : NAN;
    if (!map || count != limits->sm_count || sizes != 2 || !(near > 0 && far > near)) {
        const struct measure *known = measures_get(context->measures, "l2.parts");
        if (known && known->status == MEASURE_OK && known->value != 2)
            way_missing(context, MEASURE_UNSUPPORTED, "L2 has no two parts");
        else
            way_missing(context, MEASURE_FAILED, "the SMs of the parts of L2 are not known");
        return 0;
    }
    if (!way_footprint(limits, true)) {
        way_missing(context, MEASURE_UNSUPPORTED, "L2 is too small");
        return 0;
    }
    uint8_t *part_of_sm = mem_array(count, sizeof *part_of_sm);
    for (size_t sm = 0; sm < count; sm++)
        part_of_sm[sm] = map[sm] > 0;
    struct device_way way = {.split_cycles = (uint32_t)((near + far) / 2),
                             .part_of_sm = part_of_sm};
    int rc = 0;
    for (int work = 0; work < DEVICE_WAY_WORK_COUNT && !rc; work++) {
        struct err own = {0};
        way.work = (enum device_way_work)work;
        rc = way_measure_work(context, &way, &own);
        if (rc)
            rc = repeats_end(context, way_metrics[work], rc, &own, err);
    }
    free(part_of_sm);
    return rc;
}

const struct probe probe_l2_way = {
    .description = {"l2.way", "bandwidth of the way between the parts of L2", PROFILE_FULL},
    .depends = {"l2.part_sms"},
    .metrics = {"l2.way.read", "l2.way.write"},
    .run = way_run,
};
