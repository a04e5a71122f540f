/* The probe of the way between the two parts of L2: what SMs move to and from lines whose home is
 * the other part, compared with lines of their own part. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "probes/method/repeats.h"
#include "probes/probe.h"

enum {
    WAY_REPEATS = 3,
    WAY_PER_CENT = 40, /* of L2, both homes together: copies of all of it fit beside */
    WAY_UNIT_BYTES = 1 << 20,
    WAY_READ_ROUNDS = 16,
    WAY_ROUNDS = 32,
};

static const char WAY_METRIC[] = "l2.way.bandwidth";

/* Far lines are slower by more than this share: the way is the limit, not the SMs or the slices. */
static const double WAY_SLOWER = 0.1;

/* By work, then by what is used. */
enum way_use { WAY_NEAR, WAY_FAR, WAY_NEAR_BOTH, WAY_FAR_BOTH, WAY_USES };
static const char *const work_names[DEVICE_WAY_WORK_COUNT] = {"read", "write", "reduce"};

struct way_rates {
    double gbs[DEVICE_WAY_WORK_COUNT][WAY_USES][2 * WAY_REPEATS];
    size_t counts[DEVICE_WAY_WORK_COUNT][WAY_USES];
    uint64_t lines[2];
};

static int way_time(struct probe_context *context, const struct device_way *way, double *out_gbs,
                    uint64_t lines[2], struct err *err)
{
    struct device_way_answer answer;
    int rc = device_cross_way(context->device, way, &answer, err);
    if (rc)
        return rc;
    *out_gbs = answer.elapsed_ns ? (double)answer.bytes / (double)answer.elapsed_ns : 0;
    lines[0] = answer.lines[0];
    lines[1] = answer.lines[1];
    return 0;
}

/* The SMs of one part alone, of the other alone, of both at once. */
static int way_measure(struct probe_context *context, struct device_way *way,
                       struct way_rates *rates, struct err *err)
{
    for (int work = 0; work < DEVICE_WAY_WORK_COUNT; work++)
        for (uint32_t parts = 1; parts <= 3; parts++)
            for (int far = 0; far < 2; far++) {
                enum way_use use = (parts == 3 ? WAY_NEAR_BOTH : WAY_NEAR) + (far ? 1 : 0);
                bool once = work == DEVICE_WAY_READ;
                way->work = (enum device_way_work)work;
                way->far = far;
                way->parts = parts;
                way->total_bytes = way->footprint_bytes / 2 * (once ? WAY_READ_ROUNDS : WAY_ROUNDS);
                for (size_t r = 0; r < WAY_REPEATS; r++) {
                    size_t i = rates->counts[work][use]++;
                    int rc = way_time(context, way, &rates->gbs[work][use][i], rates->lines, err);
                    if (rc)
                        return rc;
                }
            }
    return 0;
}

static double way_rate(const struct way_rates *rates, int work, enum way_use use)
{
    return cpd_median(rates->gbs[work][use], rates->counts[work][use]);
}

/* The work that moves the most to far lines shows the way, if it moves more to near ones. Otherwise
 * the way is at least as wide. */
static void way_report(struct probe_context *context, const struct way_rates *rates)
{
    int best = 0;
    for (int work = 1; work < DEVICE_WAY_WORK_COUNT; work++)
        best = way_rate(rates, work, WAY_FAR) > way_rate(rates, best, WAY_FAR) ? work : best;
    struct measure *m =
        repeats_add(context, WAY_METRIC, rates->gbs[best][WAY_FAR], rates->counts[best][WAY_FAR],
                    "GB/s", "the SMs of one part use lines whose home is the other part");
    double near = way_rate(rates, best, WAY_NEAR);
    m->n = (uint32_t)rates->counts[best][WAY_FAR];
    m->confidence = repeats_confidence(m->value, m->spread);
    m->bound = m->value < (1 - WAY_SLOWER) * near ? MEASURE_EXACT : MEASURE_AT_LEAST;
    facts_set_text(&m->notes, "by", work_names[best]);
    for (int work = 0; work < DEVICE_WAY_WORK_COUNT; work++) {
        double list[WAY_USES];
        for (int use = 0; use < WAY_USES; use++)
            list[use] = facts_decimals(way_rate(rates, work, (enum way_use)use), 0);
        facts_set_numbers(&m->notes, work_names[work], list, WAY_USES);
    }
    const double lines[2] = {(double)rates->lines[0], (double)rates->lines[1]};
    facts_set_numbers(&m->notes, "lines", lines, 2);
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
        repeats_unsupported(context, WAY_METRIC, "L2 has no two parts whose SMs are known");
        return 0;
    }
    uint8_t *part_of_sm = mem_array(count, sizeof *part_of_sm);
    for (size_t sm = 0; sm < count; sm++)
        part_of_sm[sm] = map[sm] > 0;
    struct device_way way = {.footprint_bytes = limits->l2_reported_bytes / 100 * WAY_PER_CENT /
                                                WAY_UNIT_BYTES * WAY_UNIT_BYTES,
                             .split_cycles = (uint32_t)((near + far) / 2),
                             .part_of_sm = part_of_sm};
    struct way_rates *rates = mem_array(1, sizeof *rates);
    struct err own = {0};
    int rc = way.footprint_bytes ? way_measure(context, &way, rates, &own)
                                 : err_set(&own, -ENOTSUP, "L2 is too small");
    if (!rc)
        way_report(context, rates);
    else
        rc = repeats_end(context, WAY_METRIC, rc, &own, err);
    free(rates);
    free(part_of_sm);
    return rc;
}

const struct probe probe_l2_way = {
    .description = {"l2.way", "bandwidth of the way between the parts of L2", PROFILE_FULL},
    .depends = {"l2.part_sms"},
    .metrics = {"l2.way.bandwidth"},
    .run = way_run,
};
