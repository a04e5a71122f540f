/* The probe that maps what each SM reads of L2: alone, with its group, and beside all others. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "inventory/sm_rates.h"
#include "probes/maps/sm_groups.h"
#include "probes/method/repeats.h"

enum {
    REPEATS = 3,
    WARP_THREADS = 32,
    WINDOW_CYCLES = 400000,   /* a fifth of a millisecond */
    FOOTPRINT_MAX = 32 << 20, /* warps that read at once have lines of their own */
    L2_PER_CENT = 40,         /* as by ticket: less than one of two parts holds */
};

/* Of normal values, in standard deviations: the median difference of two, and the standard error of
 * the median of three. */
static const double MEDIAN_DIFFERENCE = 0.954, MEDIAN_ERROR = 0.67;

/* A map that scatters more than this, as a share, is noisy. */
static const double NOISE_MAX = 0.02;

enum turns { ALONE, GROUPS, TOGETHER, TURNS };

struct bandwidths {
    struct probe_context *context;
    size_t sms, groups; /* groups: 0 if they are not known */
    bool merged; /* all SMs together would share lines, and their loads be answered together */
    uint16_t turns[TURNS][SM_RATES_SMS_MAX];  /* of each SM */
    double passes[REPEATS][SM_RATES_SMS_MAX]; /* GB/s */
    double gbs[TURNS][SM_RATES_SMS_MAX];      /* medians of the passes */
    double noise[TURNS];                      /* standard error of one of them, as a share */
};

static void die_bandwidth_read_groups(struct bandwidths *b)
{
    bool known = sm_group_map_read(b->context, b->sms, b->turns[GROUPS]);
    for (size_t i = 0; i < b->sms && known; i++) {
        size_t group = b->turns[GROUPS][i];
        known = group < SM_RATES_GROUPS_MAX;
        b->groups = group >= b->groups ? group + 1 : b->groups;
    }
    b->groups = known ? b->groups : 0;
}

static uint64_t choose_footprint(const struct device_limits *limits)
{
    uint64_t bytes = limits->l2_reported_bytes / 100 * L2_PER_CENT;
    bytes = bytes / DEVICE_REGION_MIN * DEVICE_REGION_MIN;
    return bytes > FOOTPRINT_MAX ? FOOTPRINT_MAX : bytes ? bytes : DEVICE_REGION_MIN;
}

static int run_pass(struct bandwidths *b, enum turns turns, size_t pass, struct err *err)
{
    const struct device_sm_map map = {.kind = DEVICE_SM_MAP_READ,
                                      .footprint_bytes =
                                          choose_footprint(device_limits(b->context->device)),
                                      .window_cycles = WINDOW_CYCLES,
                                      .turns = b->turns[turns]};
    struct device_sm_map_answer answer;
    int rc = device_map_sms(b->context->device, &map, &answer, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < b->sms; i++)
        b->passes[pass][i] =
            (double)answer.values[2 * i] / fmax((double)answer.values[2 * i + 1], 1);
    device_sm_map_answer_fini(&answer);
    return 0;
}

/* Medians of the passes, and their standard error as far as two passes show it. */
static int die_bandwidth_measure(struct bandwidths *b, enum turns turns, struct err *err)
{
    double spreads[SM_RATES_SMS_MAX];
    for (size_t p = 0; p < REPEATS; p++) {
        int rc = run_pass(b, turns, p, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < b->sms; i++) {
        double values[REPEATS];
        for (size_t p = 0; p < REPEATS; p++)
            values[p] = b->passes[p][i];
        b->gbs[turns][i] = cpd_median(values, REPEATS);
        spreads[i] = fabs(values[0] - values[1]) / fmax(b->gbs[turns][i], 1e-9);
    }
    b->noise[turns] = MEDIAN_ERROR * cpd_median(spreads, b->sms) / MEDIAN_DIFFERENCE;
    return 0;
}

static void note_numbers(struct measure *m, const char *key, const double *values, size_t count)
{
    double *rounded = mem_array(count, sizeof *rounded);
    for (size_t i = 0; i < count; i++)
        rounded[i] = facts_decimals(values[i], 1);
    facts_set_numbers(&m->notes, key, rounded, count);
    free(rounded);
}

/* The figure of the median one; the map has all of them. */
static struct measure *die_bandwidth_report(const struct bandwidths *b, const char *metric,
                                            const double *gbs, size_t count, enum turns turns,
                                            const char *method)
{
    struct measure *m = repeats_add(b->context, metric, gbs, count, "GB/s", method);
    note_numbers(m, "map", gbs, count);
    facts_set_real(&m->notes, "noise", b->noise[turns]);
    if (b->noise[turns] > NOISE_MAX)
        measure_set_status(m, MEASURE_NOISY, "the same SM differs from pass to pass");
    m->spread = CPD_MAD_SIGMA * cpd_mad(gbs, count);
    m->n = (uint32_t)(count * REPEATS);
    m->confidence = NAN;
    return m;
}

/* What the baseline is compared with. */
static void die_bandwidth_note_rates(const struct bandwidths *b, const double *group_gbs,
                                     struct measure *m)
{
    struct sm_rates rates = {.sms = b->sms, .groups = b->groups, .noise = b->noise[ALONE]};
    for (size_t i = 0; i < b->sms; i++) {
        rates.gbs[i] = b->gbs[ALONE][i];
        rates.group_of[i] = (uint8_t)b->turns[GROUPS][i];
    }
    for (size_t g = 0; g < b->groups; g++)
        rates.group_gbs[g] = group_gbs[g];
    sm_rates_put(&rates, &m->notes);
}

static void die_bandwidth_report_all(const struct bandwidths *b)
{
    double group_gbs[SM_RATES_GROUPS_MAX];
    for (size_t g = 0; g < b->groups; g++)
        group_gbs[g] = 0;
    for (size_t i = 0; i < b->sms && b->groups; i++)
        group_gbs[b->turns[GROUPS][i]] += b->gbs[GROUPS][i];
    struct measure *m = die_bandwidth_report(b, "die.bandwidth.alone", b->gbs[ALONE], b->sms, ALONE,
                                             "each SM reads a part of L2, the others wait");
    die_bandwidth_note_rates(b, group_gbs, m);
    if (b->merged)
        repeats_unsupported(b->context, "die.bandwidth.together",
                            "L2 is too small: SMs would read the same lines at once");
    else
        die_bandwidth_report(b, "die.bandwidth.together", b->gbs[TOGETHER], b->sms, TOGETHER,
                             "what each SM reads of L2 while all do");
    if (!b->groups) {
        repeats_unsupported(b->context, "die.bandwidth.group", "the groups of SMs are not known");
        return;
    }
    die_bandwidth_report(b, "die.bandwidth.group", group_gbs, b->groups, GROUPS,
                         "the SMs of a group read L2 at once, the others wait");
}

static int die_bandwidth_run(struct probe_context *context, struct err *err)
{
    struct bandwidths *b = mem_array(1, sizeof *b);
    struct err own = {0};
    b->context = context;
    b->sms = device_limits(context->device)->sm_count;
    int rc = 0;
    if (!b->sms || b->sms > SM_RATES_SMS_MAX) {
        repeats_unsupported(context, "die.bandwidth.alone", "too many SMs, or an unknown number");
        goto out;
    }
    for (size_t i = 0; i < b->sms; i++)
        b->turns[ALONE][i] = (uint16_t)i;
    die_bandwidth_read_groups(b);
    const struct device_limits *limits = device_limits(context->device);
    uint64_t warps = (uint64_t)b->sms * limits->threads_per_sm / WARP_THREADS;
    b->merged = warps * DEVICE_SM_MAP_WARP_BYTES > choose_footprint(limits);
    rc = die_bandwidth_measure(b, ALONE, &own);
    if (!rc && !b->merged)
        rc = die_bandwidth_measure(b, TOGETHER, &own);
    if (!rc && b->groups)
        rc = die_bandwidth_measure(b, GROUPS, &own);
    if (rc)
        rc = repeats_end(context, "die.bandwidth.alone", rc, &own, err);
    else
        die_bandwidth_report_all(b);
out:
    free(b);
    return rc;
}

const struct probe probe_die_bandwidth = {
    .description = {"die.bandwidth", "bandwidth of each SM and group from L2", PROFILE_FULL},
    .depends = {"sm.groups"},
    .metrics = {"die.bandwidth.alone", "die.bandwidth.together", "die.bandwidth.group"},
    .run = die_bandwidth_run,
};
