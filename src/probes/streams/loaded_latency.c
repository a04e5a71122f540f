/* The probes of latency under load: cycles of a load of main memory or L2 while other SMs read from
 * it, from nothing to all that it delivers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "inventory/curves.h"
#include "probes/method/repeats.h"
#include "probes/method/timer.h"
#include "probes/probe.h"

enum {
    REPEATS = 5,
    WINDOW_CYCLES = 1 << 20,
    SMS_PER_CHASER = 16,
    CHASERS_MAX = 4,
    /* Of L2. With the timed lines it is less than main.bandwidth.read uses: memory that is given
     * back when more is taken, the driver clears, which slows down what is measured meanwhile. */
    MAIN_FACTOR = 24,
    L2_PER_CENT = 40,   /* still less than one of two parts holds */
    GOAL_PER_CENT = 90, /* of the highest bandwidth */
    REASON_MAX = 160,
};

/* What the others may read, in per cent of what they read without a limit; then without one. */
static const uint32_t LIMITS[] = {10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100, 105};
enum { LOADED_POINTS = COUNT_OF(LIMITS) + 2 }; /* the first one is quiet */
_Static_assert((int)LOADED_POINTS <= (int)LATENCY_CURVE_POINTS_MAX, "room for all of them");

/* If the latency without load differs from the figure of the same memory by a larger share, other
 * lines were timed. And figures that repeat only within this share are noisy. */
static const double AGREEMENT = 0.1, UNSTABLE = 0.1;

/* If others read more than the memory delivers by this share, not all of it came from there. */
static const double TOO_MUCH = 0.03;

/* The metrics of each memory; the first one is the name of the probe, too. */
static const struct loaded_memory {
    const char *loaded, *doubles, *latency, *bandwidth;
    bool cold;
} loaded_memories[] = {
    {"main.latency_loaded", "main.latency_doubles", "main.latency", "main.bandwidth.read", true},
    {"l2.latency_loaded", "l2.latency_doubles", "l2.latency", "l2.bandwidth.read", false},
};

struct loaded {
    struct probe_context *context;
    const struct loaded_memory *memory;
    struct device_loaded_chase asked;
    struct latency_curve curves[REPEATS];
    uint64_t loads;
};

static uint64_t loaded_footprint(const struct device_limits *limits, bool main_memory)
{
    uint64_t bytes = MAIN_FACTOR * limits->l2_reported_bytes;
    if (!main_memory)
        return limits->l2_reported_bytes / 100 * L2_PER_CENT;
    return limits->global_bytes && bytes > limits->global_bytes / 2 ? limits->global_bytes / 2
                                                                    : bytes;
}

/* bytes: that the others read at most; 0: no limit. */
static int loaded_time(struct loaded *loaded, bool quiet, uint64_t bytes,
                       struct latency_curve_point *out_point, uint64_t *out_bytes, struct err *err)
{
    struct device_loaded_chase_answer answer;
    loaded->asked.quiet = quiet;
    loaded->asked.limit_bytes = bytes;
    int rc = device_chase_loaded(loaded->context->device, &loaded->asked, &answer, err);
    if (rc)
        return rc;
    double loads = (double)answer.loads, mean = (double)answer.cycles / loads;
    double squares = (double)answer.squares / loads - mean * mean;
    *out_point = (struct latency_curve_point){
        .gbs = answer.elapsed_ns ? (double)answer.bytes / (double)answer.elapsed_ns : 0,
        .cycles = mean - timer_overhead(loaded->context, DEVICE_GLOBAL_CG),
        .deviation = squares > 0 ? sqrt(squares) : 0};
    *out_bytes = answer.bytes;
    loaded->loads += answer.loads;
    return 0;
}

/* Without a limit first: it brings the memory into L2 or its pages into the TLBs, and says what the
 * others read then. */
static int loaded_measure(struct loaded *loaded, struct err *err)
{
    struct latency_curve_point unused;
    uint64_t most = 0, bytes;
    int rc = loaded_time(loaded, false, 0, &unused, &bytes, err);
    if (!rc)
        rc = loaded_time(loaded, false, 0, &unused, &most, err);
    loaded->loads = 0;
    for (size_t r = 0; r < REPEATS; r++) {
        loaded->curves[r].count = LOADED_POINTS;
        for (size_t i = 0; i < LOADED_POINTS && !rc; i++) {
            bool limited = i && i + 1 < LOADED_POINTS;
            rc = loaded_time(loaded, i == 0, limited ? most / 100 * LIMITS[i - 1] : 0,
                             &loaded->curves[r].points[i], &bytes, err);
        }
    }
    return rc;
}

/* Where a curve reaches a bandwidth (by_gbs), or a number of cycles, first: the other of both,
 * interpolated. NAN: it does not. */
static double loaded_crossing(const struct latency_curve *curve, bool by_gbs, double goal)
{
    for (size_t i = 0; i < curve->count; i++) {
        const struct latency_curve_point *to = &curve->points[i], *from = i ? to - 1 : to;
        double x0 = by_gbs ? from->gbs : from->cycles, x1 = by_gbs ? to->gbs : to->cycles;
        double y0 = by_gbs ? from->cycles : from->gbs, y1 = by_gbs ? to->cycles : to->gbs;
        if (x1 >= goal)
            return x1 > x0 ? y0 + (y1 - y0) * (goal - x0) / (x1 - x0) : y1;
    }
    return NAN;
}

static double loaded_highest(const struct latency_curve *curve)
{
    double gbs = 0;
    for (size_t i = 0; i < curve->count; i++)
        gbs = fmax(gbs, curve->points[i].gbs);
    return gbs;
}

/* The median of the repetitions, point by point. */
static void loaded_merge(const struct loaded *loaded, struct latency_curve *out_curve)
{
    out_curve->count = LOADED_POINTS;
    for (size_t i = 0; i < LOADED_POINTS; i++) {
        double gbs[REPEATS], cycles[REPEATS], deviations[REPEATS];
        for (size_t r = 0; r < REPEATS; r++) {
            gbs[r] = loaded->curves[r].points[i].gbs;
            cycles[r] = loaded->curves[r].points[i].cycles;
            deviations[r] = loaded->curves[r].points[i].deviation;
        }
        out_curve->points[i] =
            (struct latency_curve_point){.gbs = cpd_median(gbs, REPEATS),
                                         .cycles = cpd_median(cycles, REPEATS),
                                         .spread = repeats_half_range(cycles, REPEATS),
                                         .deviation = cpd_median(deviations, REPEATS)};
    }
}

/* Without load it must be the latency of this memory. Lines of L2 may be near or far, if the parts
 * keep no copies. */
static void loaded_check_quiet(const struct loaded *loaded, double cycles, struct measure *m)
{
    const char *metric = loaded->memory->latency;
    char reason[REASON_MAX];
    double near, far;
    if (!measures_value(loaded->context->measures, metric, &near))
        return;
    if (loaded->asked.cold || loaded->context->l2.copies ||
        !measures_value(loaded->context->measures, "l2.latency_far", &far))
        far = near;
    if (cycles >= (1 - AGREEMENT) * near && cycles <= (1 + AGREEMENT) * far)
        return;
    snprintf(reason, sizeof reason, "%.0f cycles without load, but %s is %.0f", cycles, metric,
             near);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static void loaded_check_highest(const struct loaded *loaded, double gbs, struct measure *m)
{
    const char *metric = loaded->memory->bandwidth;
    char reason[REASON_MAX];
    double known;
    if (!measures_value(loaded->context->measures, metric, &known) || gbs <= (1 + TOO_MUCH) * known)
        return;
    snprintf(reason, sizeof reason, "%.0f GB/s were read, but %s is %.0f", gbs, metric, known);
    measure_set_status(m, MEASURE_NOISY, reason);
}

static struct measure *loaded_add(const struct loaded *loaded, const char *metric,
                                  const double *values, const char *unit, const char *method)
{
    char reason[REASON_MAX];
    struct measure *m = repeats_add(loaded->context, metric, values, REPEATS, unit, method);
    m->n = (uint32_t)loaded->loads;
    m->confidence = repeats_confidence(m->value, m->spread);
    if (m->spread > UNSTABLE * m->value) {
        snprintf(reason, sizeof reason, "repetitions differ by %.0f %%",
                 200 * m->spread / m->value);
        measure_set_status(m, MEASURE_NOISY, reason);
    }
    return m;
}

static void loaded_report(const struct loaded *loaded)
{
    struct latency_curve curve = {.count = 0};
    double loaded_cycles[REPEATS], doubled_gbs[REPEATS];
    bool doubles = true;
    loaded_merge(loaded, &curve);
    for (size_t r = 0; r < REPEATS; r++) {
        const struct latency_curve *own = &loaded->curves[r];
        double highest = loaded_highest(own);
        loaded_cycles[r] = loaded_crossing(own, true, GOAL_PER_CENT / 100.0 * highest);
        doubled_gbs[r] = loaded_crossing(own, false, 2 * own->points[0].cycles);
        doubles &= !isnan(doubled_gbs[r]);
    }
    struct measure *m = loaded_add(loaded, loaded->memory->loaded, loaded_cycles, "cycles",
                                   "single loads while other SMs read at 90 % of the highest rate");
    latency_curve_put(&curve, &m->notes);
    loaded_check_quiet(loaded, curve.points[0].cycles, m);
    loaded_check_highest(loaded, loaded_highest(&curve), m);
    for (size_t r = 0; r < REPEATS && !doubles; r++)
        doubled_gbs[r] = loaded_highest(&loaded->curves[r]);
    m = loaded_add(loaded, loaded->memory->doubles, doubled_gbs, "GB/s",
                   "bandwidth of the other SMs at which a load takes twice as long");
    m->bound = doubles ? MEASURE_EXACT : MEASURE_AT_LEAST;
    loaded_check_quiet(loaded, curve.points[0].cycles, m);
    loaded_check_highest(loaded, loaded_highest(&curve), m);
}

static int loaded_run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    const struct loaded_memory *memory = loaded_memories;
    while (strcmp(memory->loaded, context->probe) != 0)
        memory++;
    uint32_t chasers = limits->sm_count / SMS_PER_CHASER;
    struct loaded loaded = {.context = context,
                            .memory = memory,
                            .asked = {.cold = memory->cold,
                                      .footprint_bytes = loaded_footprint(limits, memory->cold),
                                      .chasers = chasers < 1             ? 1
                                                 : chasers > CHASERS_MAX ? CHASERS_MAX
                                                                         : chasers,
                                      .window_cycles = WINDOW_CYCLES}};
    struct err own = {0};
    int rc = limits->sm_count > 1 && limits->l2_reported_bytes
                 ? loaded_measure(&loaded, &own)
                 : err_set(&own, -ENOTSUP, "there is one SM, or no L2 is reported");
    if (!rc)
        loaded_report(&loaded);
    else if (rc == -ENOTSUP)
        repeats_unsupported(context, memory->doubles, own.text);
    return repeats_end(context, memory->loaded, rc, &own, err);
}

#define LOADED_PROBE(id, memory, text)                                                             \
    const struct probe probe_##id##_latency_loaded = {                                             \
        .description = {memory ".latency_loaded", text, PROFILE_FULL},                             \
        .depends = {memory ".latency", memory ".bandwidth.read"},                                  \
        .metrics = {memory ".latency_loaded", memory ".latency_doubles"},                          \
        .run = loaded_run,                                                                         \
    };
LOADED_PROBE(main, "main", "latency of main memory while other SMs read from it")
LOADED_PROBE(l2, "l2", "latency of L2 while other SMs read from it")
