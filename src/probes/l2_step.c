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
    LOOK_PART = 32,
    REPEATS = 3, /* of the last, fine looks */
};

/* At least one way: where sets are hashed, the first line to go may be any of the oldest way. */
static const double WINDOW = 0.5;
static const double ALPHA = 0.01;

/* A step must raise the share of slower loads by this much, and a size counts as beyond the step
 * with this much of it, or with so many standard errors more than misjudged loads explain. */
static const double STEP_MIN[] = {[L2_STEP_HALF] = 0.1, [L2_STEP_WHOLE] = 0.02};
static const double BEYOND_MIN = 0.01, BEYOND_ERRORS = 4;

/* At the smallest size so many loads are far already: no copies are kept. */
static const double ALWAYS_FAR = 0.25;

/* Sizes to look at, as shares of the capacity: first a narrow range, then a wide one. */
struct range {
    double low, high;
    size_t count;
};
enum { RANGES = 2 };
static const struct range RANGES_OF[][RANGES] = {
    [L2_STEP_HALF] = {{0.4, 0.68, 12}, {0.08, 0.98, CURVE_MAX}},
    [L2_STEP_WHOLE] = {{0.89, 1.11, 12}, {0.4, 1.4, CURVE_MAX}},
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

static uint64_t whole_lines(double bytes, uint64_t line)
{
    uint64_t lines = (uint64_t)(bytes / (double)line);
    return (lines ? lines : 1) * line;
}

/* Looks at rising sizes, several in one job. */
static int look_at(struct search *search, const double *bytes, size_t count, double *out_shares,
                   struct err *err)
{
    for (size_t done = 0; done < count;) {
        struct l2_look look = {.stride_bytes = search->l2->line_bytes,
                               .window = WINDOW,
                               .part = LOOK_PART,
                               .loads = LOOK_LOADS};
        for (; look.count < L2_LOOK_SIZES && done + look.count < count; look.count++)
            look.sizes[look.count] = (uint64_t)bytes[done + look.count];
        struct l2_shares shares[L2_LOOK_SIZES];
        int rc = l2_look(search->context, search->l2, &look, shares, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < look.count; i++)
            out_shares[done + i] =
                search->kind == L2_STEP_HALF ? shares[i].beyond_near : shares[i].missed;
        done += look.count;
    }
    search->looks += (uint32_t)count;
    return 0;
}

/* Evenly spaced sizes of whole lines, each larger than the one before. */
static size_t make_sizes(double low, double high, size_t count, uint64_t line, double *out_bytes)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        double bytes = low + (high - low) * (double)i / (double)(count > 1 ? count - 1 : 1);
        double whole = (double)whole_lines(bytes, line);
        if (!made || whole > out_bytes[made - 1])
            out_bytes[made++] = whole;
    }
    return made;
}

static int measure_curve(struct search *search, const struct range *range, struct curve *out_curve,
                         struct err *err)
{
    double resident = search->l2->resident_bytes;
    out_curve->count = make_sizes(range->low * resident, range->high * resident, range->count,
                                  search->l2->line_bytes, out_curve->bytes);
    return look_at(search, out_curve->bytes, out_curve->count, out_curve->shares, err);
}

/* The first change point: the part before one is searched again for as long as it has one of its
 * own. */
static int find_onset(const struct curve *curve, enum l2_step_kind kind, uint64_t seed,
                      struct cpd_change *out_change, struct err *err)
{
    const struct cpd_options options = {
        .cost = CPD_COST_MEAN, .alpha = ALPHA, .step_min = STEP_MIN[kind], .seed = seed};
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

/* base: the share of slower loads before the step. */
static double beyond_limit(const struct search *search, double base)
{
    const struct l2_study *l2 = search->l2;
    double stray = search->kind == L2_STEP_HALF ? l2->near_stray : l2->hit_stray;
    double error = sqrt(stray * (1 - stray) / LOOK_LOADS) / (1 - stray);
    return base + fmax(BEYOND_MIN, BEYOND_ERRORS * error);
}

/* The last size before the step, between one before it and one behind it. */
static int narrow(struct search *search, double low, double high, double limit, double *out_bytes,
                  struct err *err)
{
    double sizes[L2_LOOK_SIZES], shares[L2_LOOK_SIZES];
    double step = (high - low) / (L2_LOOK_SIZES + 1);
    size_t count =
        make_sizes(low + step, high - step, L2_LOOK_SIZES, search->l2->line_bytes, sizes);
    int rc = look_at(search, sizes, count, shares, err);
    if (rc)
        return rc;
    double last = low;
    for (size_t i = 0; i < count && shares[i] <= limit; i++)
        last = sizes[i];
    *out_bytes = last;
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
    double limit = beyond_limit(search, cpd_median(curve->shares, split)), found[REPEATS];
    size_t first = split;
    /* The change point of a slow rise comes late. */
    while (first > 1 && curve->shares[first - 1] > limit)
        first--;
    for (size_t i = 0; i < REPEATS; i++) {
        int rc =
            narrow(search, curve->bytes[first - 1], curve->bytes[first], limit, &found[i], err);
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
        if (!rc && kind == L2_STEP_HALF && curve.shares[0] > ALWAYS_FAR)
            break;
        if (!rc)
            rc = find_onset(&curve, kind, probe_seed(context), &change, err);
        if (!rc && change.found)
            rc = locate(&search, &curve, change.split, &step, err);
        if (rc)
            return rc;
        step.found = change.found;
        step.confidence = change.confidence;
    }
    step.n = search.looks;
    *out_step = step;
    return 0;
}
