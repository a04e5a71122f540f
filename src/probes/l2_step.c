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
    POINTS_MAX = 64,
    LOOK_LOADS = 2048,
    LOOK_PART = 32,
    REPEATS = 3, /* of the finest look */
};

/* At least one way: where sets are hashed, the first line to go may be any of the oldest way. */
static const double WINDOW = 0.5;
static const double ALPHA = 0.01;

/* The search ends with sizes this share of the capacity apart. */
static const double RESOLUTION = 0.0065;

/* A step must raise the share of slower loads by this much, and a size counts as beyond the step
 * with this much of it, or with so many standard errors more than misjudged loads explain. */
static const double STEP_MIN[] = {[L2_STEP_HALF] = 0.03, [L2_STEP_WHOLE] = 0.01};
static const double BEYOND_MIN = 0.01, BEYOND_ERRORS = 4;

/* At the smallest size so many loads are far already: no copies are kept. */
static const double ALWAYS_FAR = 0.25;

/* Where the step is looked for, as shares of the capacity: first a narrow range, then a wide one.
 */
struct range {
    double low, high;
};
enum { RANGES = 2 };
static const struct range RANGES_OF[][RANGES] = {
    [L2_STEP_HALF] = {{0.4, 0.6}, {0.08, 0.98}},
    [L2_STEP_WHOLE] = {{0.9, 1.1}, {0.4, 1.4}},
};

/* A size and the share of its loads that were slower. */
struct point {
    double bytes, share;
};

struct search {
    struct probe_context *context;
    const struct l2_study *l2;
    enum l2_step_kind kind;
    struct point points[POINTS_MAX]; /* all looks so far */
    size_t count;
    double limit; /* a share above it is beyond the step */
};

static double whole_lines(double bytes, uint64_t line)
{
    uint64_t lines = (uint64_t)(bytes / (double)line);
    return (double)((lines ? lines : 1) * line);
}

/* Looks at up to L2_LOOK_SIZES evenly spaced sizes in one job and adds them to the points. */
static int look_at(struct search *search, double low, double high, struct err *err)
{
    struct l2_look look = {.stride_bytes = search->l2->line_bytes,
                           .window = WINDOW,
                           .part = LOOK_PART,
                           .loads = LOOK_LOADS};
    for (size_t i = 0; i < L2_LOOK_SIZES; i++) {
        double bytes = low + (high - low) * (double)i / (L2_LOOK_SIZES - 1);
        uint64_t whole = (uint64_t)whole_lines(bytes, look.stride_bytes);
        if (!look.count || whole > look.sizes[look.count - 1])
            look.sizes[look.count++] = whole;
    }
    if (search->count + look.count > POINTS_MAX)
        return err_set(err, -ENODATA, "the latency of L2 does not settle on a step");
    struct l2_shares shares[L2_LOOK_SIZES];
    int rc = l2_look(search->context, search->l2, &look, shares, err);
    for (size_t i = 0; i < look.count && !rc; i++)
        search->points[search->count++] = (struct point){
            .bytes = (double)look.sizes[i],
            .share = search->kind == L2_STEP_HALF ? shares[i].beyond_near : shares[i].missed};
    return rc;
}

/* base: the share of slower loads before the step. */
static double beyond_limit(const struct search *search, double base)
{
    const struct l2_study *l2 = search->l2;
    double stray = search->kind == L2_STEP_HALF ? l2->near_stray : l2->hit_stray;
    double error = sqrt(stray * (1 - stray) / LOOK_LOADS) / (1 - stray);
    return base + fmax(BEYOND_MIN, BEYOND_ERRORS * error);
}

/* Of the points from `first` on, which rise in size: moves low to the last before the step, high
 * to the first beyond it. */
static void enclose(const struct search *search, size_t first, double *low, double *high)
{
    for (size_t i = first; i < search->count; i++) {
        if (search->points[i].share > search->limit) {
            *high = search->points[i].bytes;
            return;
        }
        *low = search->points[i].bytes;
    }
}

/* Looks at the ends and the middle of a range. False in out_inside: the step is not inside. */
static int open_range(struct search *search, const struct range *range, double *out_low,
                      double *out_high, bool *out_inside, struct err *err)
{
    double resident = search->l2->resident_bytes;
    size_t first = search->count;
    int rc = look_at(search, range->low * resident, range->high * resident, err);
    if (rc)
        return rc;
    search->limit = beyond_limit(search, search->points[first].share);
    bool starts_low =
        search->kind == L2_STEP_HALF || search->points[first].share <= beyond_limit(search, 0);
    *out_low = search->points[first].bytes;
    *out_high = INFINITY;
    enclose(search, first, out_low, out_high);
    *out_inside = starts_low && isfinite(*out_high);
    return 0;
}

/* A fourth of the distance in each round, until the sizes are close. */
static int narrow(struct search *search, double *low, double *high, struct err *err)
{
    double close = fmax(RESOLUTION * search->l2->resident_bytes, (double)search->l2->line_bytes);
    while (*high - *low > close) {
        double step = (*high - *low) / (L2_LOOK_SIZES + 1);
        size_t first = search->count;
        int rc = look_at(search, *low + step, *high - step, err);
        if (rc)
            return rc;
        enclose(search, first, low, high);
    }
    return 0;
}

/* Looks again around the size found, at one size before it and two behind, and takes the middle of
 * all repetitions. */
static int repeat(struct search *search, double low, double high, struct l2_step *out_step,
                  struct err *err)
{
    double found[REPEATS] = {low}, step = high - low;
    for (size_t i = 1; i < REPEATS; i++) {
        double last = low - 3 * step, beyond = high;
        size_t first = search->count;
        int rc = look_at(search, low - step, low + 3 * step, err);
        if (rc)
            return rc;
        enclose(search, first, &last, &beyond);
        found[i] = last + step;
    }
    out_step->bytes = cpd_median(found, REPEATS);
    out_step->spread = (cpd_quantile(found, REPEATS, 1) - cpd_quantile(found, REPEATS, 0)) / 2;
    return 0;
}

static int compare_points(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    int by_size = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return by_size ? by_size : (x->share > y->share) - (x->share < y->share);
}

/* Whether all points, in order of size, have a change point. Sorts them. */
static int test_points(struct search *search, struct cpd_change *out_change, struct err *err)
{
    const struct cpd_options options = {.cost = CPD_COST_RANK,
                                        .alpha = ALPHA,
                                        .step_min = STEP_MIN[search->kind],
                                        .seed = probe_seed(search->context)};
    double shares[POINTS_MAX];
    qsort(search->points, search->count, sizeof *search->points, compare_points);
    for (size_t i = 0; i < search->count; i++)
        shares[i] = search->points[i].share;
    int rc = cpd_test(shares, search->count, &options, out_change);
    return rc ? err_set(err, rc, "change-point detection failed on %zu sizes", search->count) : 0;
}

/* From the step's beginning to nine tenths of what the points, sorted, rise by. */
static double step_width(const struct search *search, double begin)
{
    double highest = 0;
    for (size_t i = 0; i < search->count; i++)
        highest = fmax(highest, search->points[i].share);
    for (size_t i = 0; i < search->count; i++)
        if (search->points[i].bytes > begin && search->points[i].share >= 0.9 * highest)
            return search->points[i].bytes - begin;
    return 0;
}

int l2_find_step(struct probe_context *context, const struct l2_study *l2, enum l2_step_kind kind,
                 struct l2_step *out_step, struct err *err)
{
    struct search search = {.context = context, .l2 = l2, .kind = kind};
    struct l2_step step = {0};
    struct cpd_change change = {0};
    double low = 0, high = 0;
    bool inside = false;
    int rc = 0;
    bool far = false;
    for (size_t i = 0; i < RANGES && !rc && !inside && !far; i++) {
        rc = open_range(&search, &RANGES_OF[kind][i], &low, &high, &inside, err);
        far = kind == L2_STEP_HALF && search.count && search.points[0].share > ALWAYS_FAR;
    }
    inside = inside && !far;
    if (!rc && inside)
        rc = narrow(&search, &low, &high, err);
    if (!rc && inside)
        rc = repeat(&search, low, high, &step, err);
    if (!rc && inside)
        rc = test_points(&search, &change, err);
    if (rc)
        return rc;
    step.found = change.found && change.step > 0;
    step.confidence = change.confidence;
    step.width_bytes = step.found ? step_width(&search, step.bytes) : 0;
    step.n = (uint32_t)search.count;
    *out_step = step;
    return 0;
}
