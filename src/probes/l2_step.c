/* Where the latency of L2 steps up as the array grows: near half of the size, where an SM's own
 * part no longer has room for copies of far lines, and at the whole, where main memory begins to
 * serve loads.
 *
 * What was filled first is timed, since it is what was evicted first: the step is then sharp for
 * LRU and its kin, and no later for others. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/chase.h"

enum {
    CURVE_MAX = 24,
    LOOK_LOADS = 2048,
    ROUNDS = 4, /* of halving between the sizes of the curve */
    REPEATS = 3,
    BEFORE = 3, /* the change point of a slow rise comes late by up to so many sizes */
};

static const double WINDOW = 0.125;
static const double ALPHA = 0.01;

/* A step must raise the share of slower loads by this much, and a size counts as beyond the step
 * with this much of it, or with so many standard errors more than misjudged loads explain. */
static const double STEP_MIN = 0.02, BEYOND_MIN = 0.01, BEYOND_ERRORS = 4;

/* At the smallest size so many loads are far already: no copies are kept. */
static const double ALWAYS_FAR = 0.25;

/* Sizes to look at, as shares of the capacity: first a narrow range, then a wide one. */
struct range {
    double low, high;
    size_t count;
};
enum { RANGES = 2 };
static const struct range RANGES_OF[][RANGES] = {
    [L2_STEP_HALF] = {{0.3, 0.9, 13}, {0.08, 0.98, CURVE_MAX}},
    [L2_STEP_WHOLE] = {{0.88, 1.12, 13}, {0.4, 1.4, CURVE_MAX}},
};

struct curve {
    double bytes[CURVE_MAX], shares[CURVE_MAX];
    size_t count;
};

struct search {
    struct probe_context *context;
    const struct l2_study *l2;
    enum l2_step_kind kind;
    uint32_t looks;
};

static int look_at(struct search *search, double bytes, double *out_bytes, double *out_share,
                   struct err *err)
{
    uint64_t line = search->l2->line_bytes, lines = (uint64_t)(bytes / (double)line);
    const struct l2_look look = {.size_bytes = (lines ? lines : 1) * line,
                                 .stride_bytes = line,
                                 .window = WINDOW,
                                 .loads = LOOK_LOADS};
    struct l2_shares shares;
    int rc = l2_look(search->context, search->l2, &look, &shares, err);
    if (rc)
        return rc;
    search->looks++;
    *out_bytes = (double)look.size_bytes;
    *out_share = search->kind == L2_STEP_HALF ? shares.beyond_near : shares.missed;
    return 0;
}

static int measure_curve(struct search *search, const struct range *range, struct curve *out_curve,
                         struct err *err)
{
    double step = (range->high - range->low) / (double)(range->count - 1);
    for (size_t i = 0; i < range->count; i++) {
        double bytes = (range->low + step * (double)i) * search->l2->resident_bytes;
        int rc = look_at(search, bytes, &out_curve->bytes[i], &out_curve->shares[i], err);
        if (rc)
            return rc;
    }
    out_curve->count = range->count;
    return 0;
}

/* The first change point: the part before one is searched again for as long as it has one of its
 * own. */
static int find_onset(const struct curve *curve, uint64_t seed, struct cpd_change *out_change,
                      struct err *err)
{
    const struct cpd_options options = {
        .cost = CPD_COST_MEAN, .alpha = ALPHA, .step_min = STEP_MIN, .seed = seed};
    struct cpd_change onset = {0};
    for (size_t end = curve->count; end;) {
        struct cpd_change change;
        int rc = cpd_test(curve->shares, end, &options, &change);
        if (rc)
            return err_set(err, rc, "change-point detection failed on %zu sizes", end);
        bool rise = change.found && change.step > 0;
        if (rise)
            onset = change;
        end = rise ? change.split : 0;
    }
    *out_change = onset;
    return 0;
}

static double beyond_limit(const struct search *search)
{
    const struct l2_study *l2 = search->l2;
    double stray = search->kind == L2_STEP_HALF ? l2->near_stray : l2->hit_stray;
    return fmax(BEYOND_MIN, BEYOND_ERRORS * sqrt(stray * (1 - stray) / LOOK_LOADS));
}

/* Halves the distance between a size before the step and one behind it. */
static int narrow(struct search *search, double low, double high, double *out_bytes,
                  struct err *err)
{
    double limit = beyond_limit(search);
    for (int round = 0; round < ROUNDS; round++) {
        double bytes, share;
        int rc = look_at(search, (low + high) / 2, &bytes, &share, err);
        if (rc)
            return rc;
        if (bytes <= low)
            break;
        if (share > limit)
            high = bytes;
        else
            low = bytes;
    }
    *out_bytes = low;
    return 0;
}

/* From the step's beginning to nine tenths of what the curve rises by. */
static double step_width(const struct curve *curve, double begin)
{
    double highest = cpd_quantile(curve->shares, curve->count, 1);
    for (size_t i = 0; i < curve->count; i++)
        if (curve->bytes[i] > begin && curve->shares[i] >= 0.9 * highest)
            return curve->bytes[i] - begin;
    return 0;
}

static int locate(struct search *search, const struct curve *curve, size_t split,
                  struct l2_step *out_step, struct err *err)
{
    double limit = beyond_limit(search), found[REPEATS];
    size_t first = split;
    while (first > 0 && split - first < BEFORE && curve->shares[first - 1] > limit)
        first--;
    size_t last = first > 0 ? first - 1 : 0;
    for (size_t i = 0; i < REPEATS; i++) {
        int rc = narrow(search, curve->bytes[last], curve->bytes[first], &found[i], err);
        if (rc)
            return rc;
    }
    out_step->bytes = cpd_median(found, REPEATS);
    out_step->spread = (cpd_quantile(found, REPEATS, 1) - cpd_quantile(found, REPEATS, 0)) / 2;
    out_step->width_bytes = step_width(curve, out_step->bytes);
    return 0;
}

int l2_find_step(struct probe_context *context, const struct l2_study *l2, enum l2_step_kind kind,
                 struct l2_step *out_step, struct err *err)
{
    struct search search = {.context = context, .l2 = l2, .kind = kind};
    struct l2_step step = {0};
    for (size_t i = 0; i < RANGES && !step.found; i++) {
        struct curve curve;
        struct cpd_change change = {0};
        int rc = measure_curve(&search, &RANGES_OF[kind][i], &curve, err);
        if (!rc)
            rc = find_onset(&curve, probe_seed(context), &change, err);
        if (rc)
            return rc;
        step.found = change.found;
        step.confidence = change.confidence;
        if (change.found)
            rc = locate(&search, &curve, change.split, &step, err);
        if (rc)
            return rc;
        if (kind == L2_STEP_HALF && curve.shares[0] > ALWAYS_FAR)
            break;
    }
    step.n = search.looks;
    *out_step = step;
    return 0;
}
