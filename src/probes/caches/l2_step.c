/* Where the latency of L2 steps up as the array grows: main memory begins to serve lines whose home
 * is the other part (without copies: any line).
 *
 * What was filled first is timed, since it is evicted first: then the step is steep for LRU and
 * similar policies, and not later for others. The rise after the step is traced back to where it
 * began. So it does no harm if sets fill unevenly and round off the foot of the step. */
#include "probes/caches/l2_step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "base/sort.h"
#include "cpd/cpd.h"
#include "probes/caches/l2_capacity.h"

enum {
    POINTS_MAX = 96,
    LOOK_LOADS = 2048,
    RISE_LOADS = 4096,
    LOOK_PART = 64, /* sampling refreshes and reloads lines */
    REPEATS = 3,    /* looks at the rise, if loads are expensive */
    REPEATS_MAX = 9,
};

/* At least one way: if sets are hashed, the first line to be evicted may be any of the oldest
 * way. */
static const double WINDOW = 0.5;

static const double ALPHA = 0.01;

/* The search for the foot of the step ends when the sizes are this share of the capacity apart. */
static const double RESOLUTION = 0.025;

/* Sizes at which the rise is measured, over the foot; and the shares that belong to the rise. */
static const double RISE[] = {1.05, 1.12, 1.2}, RISE_MAX = 0.9;

/* Sizes before the foot, without a rise. */
static const double BASE[] = {0.89, 0.92, 0.95};

/* The traced step must be this close to its foot, as a share of it. */
static const double TRACE_LOW = 0.9, TRACE_HIGH = 1.15;

/* A step must raise the share of slower loads by at least STEP_MIN. A size is beyond the step if
 * its share has risen by this part of that, or by so many standard errors more than misjudged loads
 * explain. */
static const double STEP_MIN = 0.01;

static const double BEYOND_MIN = 0.01, BEYOND_ERRORS = 4;

/* If more loads than this are beyond the limit at the smallest size, the step is elsewhere. */
static const double STRAY_MAX = 0.15;

/* Where the step is searched, as shares of the capacity: first a narrow range, then a wide one. */
struct range {
    double low, high;
};

static const struct range ranges[] = {{0.9, 1.1}, {0.4, 1.4}};

/* A size and the share of its loads that were slower. */
struct point {
    double bytes, share;
    size_t number; /* in order of measuring */
};

struct search {
    struct probe_context *context;
    const struct l2_study *l2;
    struct point points[POINTS_MAX]; /* all looks so far */
    size_t count;
    double capacity;    /* the step is expected near it */
    double base, limit; /* share before the step; a larger share than limit is beyond it */
};

static double l2_step_whole_lines(double bytes, uint64_t line)
{
    uint64_t lines = (uint64_t)(bytes / (double)line);
    return (double)((lines ? lines : 1) * line);
}

/* Measures up to L2_LOOK_SIZES rising sizes in one job and adds them to the points. */
static int l2_step_look_at(struct search *search, const double *sizes, uint32_t loads,
                           struct err *err)
{
    struct l2_look look = {.stride_bytes = search->l2->line_bytes,
                           .window = WINDOW,
                           .part = LOOK_PART,
                           .loads = loads};
    for (size_t i = 0; i < L2_LOOK_SIZES; i++) {
        uint64_t whole = (uint64_t)l2_step_whole_lines(sizes[i], look.stride_bytes);
        if (!look.count || whole > look.sizes[look.count - 1])
            look.sizes[look.count++] = whole;
    }
    if (search->count + look.count > POINTS_MAX)
        return err_set(err, -ENODATA, "the latency of L2 does not settle on a step");
    struct l2_shares shares[L2_LOOK_SIZES];
    int rc = l2_look(search->context, search->l2, &look, shares, err);
    for (size_t i = 0; i < look.count && !rc; i++) {
        search->points[search->count] = (struct point){
            .bytes = (double)look.sizes[i], .share = shares[i].far_missed, .number = search->count};
        search->count++;
    }
    return rc;
}

static int l2_step_look_between(struct search *search, double low, double high, struct err *err)
{
    double sizes[L2_LOOK_SIZES];
    for (size_t i = 0; i < L2_LOOK_SIZES; i++)
        sizes[i] = low + (high - low) * (double)i / (L2_LOOK_SIZES - 1);
    return l2_step_look_at(search, sizes, LOOK_LOADS, err);
}

/* base: the share of slower loads before the step. With copies, some loads from main memory behind
 * the near part are taken for loads behind the far one; they are part of the base. */
static double beyond_limit(const struct search *search, double base)
{
    const struct l2_study *l2 = search->l2;
    double stray = fmax(l2->hit_stray, base);
    double error = sqrt(stray * (1 - stray) / LOOK_LOADS) / (1 - stray);
    return base + fmax(BEYOND_MIN, BEYOND_ERRORS * error);
}

/* For the points from `first` on, which rise in size: moves low to the last one before the step,
 * high to the first one beyond it. */
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

/* Measures the ends and the middle of a range. out_inside false: the step is not in it. */
static int open_range(struct search *search, const struct range *range, double *out_low,
                      double *out_high, bool *out_inside, struct err *err)
{
    size_t first = search->count;
    int rc = l2_step_look_between(search, range->low * search->capacity,
                                  range->high * search->capacity, err);
    if (rc)
        return rc;
    search->base = search->points[first].share;
    search->limit = beyond_limit(search, search->base);
    bool strays = search->l2->copies;
    bool starts_low = search->base <= (strays ? STRAY_MAX : beyond_limit(search, 0));
    *out_low = search->points[first].bytes;
    *out_high = INFINITY;
    enclose(search, first, out_low, out_high);
    *out_inside = starts_low && isfinite(*out_high);
    return 0;
}

/* Narrows the distance to a fourth in each round, until the sizes are close. */
static int l2_step_narrow(struct search *search, double *low, double *high, struct err *err)
{
    double close = fmax(RESOLUTION * search->capacity, (double)search->l2->line_bytes);
    while (*high - *low > close) {
        double step = (*high - *low) / (L2_LOOK_SIZES + 1);
        size_t first = search->count;
        int rc = l2_step_look_between(search, *low + step, *high - step, err);
        if (rc)
            return rc;
        enclose(search, first, low, high);
    }
    return 0;
}

/* A cache that evicts the oldest line loses lines of the array's beginning in proportion to the
 * excess. One that evicts any line loses them exponentially. */
static double bend(double share, bool exponential)
{
    return exponential ? -portable_log1p(-fmin(share, RISE_MAX)) : share;
}

/* Where the line through the points from `first` on meets the base; and how badly it fits. */
static double trace_back(const struct search *search, size_t first, bool exponential,
                         double *out_misfit)
{
    double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, misfit = 0;
    for (size_t i = first; i < search->count; i++) {
        double x = search->points[i].bytes / search->capacity;
        double y = bend(search->points[i].share - search->base, exponential);
        n++;
        sum_x += x;
        sum_y += y;
        sum_xx += x * x;
        sum_xy += x * y;
    }
    double slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
    double level = (sum_y - slope * sum_x) / n;
    for (size_t i = first; i < search->count; i++) {
        double line = level + slope * search->points[i].bytes / search->capacity;
        double share = exponential ? -portable_expm1(-line) : line;
        misfit += square(search->points[i].share - search->base - share);
    }
    *out_misfit = misfit;
    return -search->capacity * level / slope;
}

/* Results of `repeats` looks at the rise: where it begins, by the straight and by the exponential
 * line, and how badly each fits. */
struct traces {
    double found[2][REPEATS_MAX], misfits[2];
};

static int look_at_rise(struct search *search, double low, double high, size_t repeats,
                        struct traces *out_traces, struct err *err)
{
    struct traces traces = {0};
    double sizes[L2_LOOK_SIZES];
    for (size_t i = 0; i < L2_LOOK_SIZES; i++)
        sizes[i] = RISE[i] * high;
    for (size_t i = 0; i < repeats; i++) {
        size_t first = search->count;
        int rc = l2_step_look_at(search, sizes, RISE_LOADS, err);
        if (rc)
            return rc;
        for (int bent = 0; bent < 2; bent++) {
            double misfit, traced = trace_back(search, first, bent, &misfit);
            bool close = traced > TRACE_LOW * low && traced < TRACE_HIGH * high;
            traces.found[bent][i] = close ? traced : low;
            traces.misfits[bent] += misfit;
        }
    }
    *out_traces = traces;
    return 0;
}

/* Measures the base better than one look does: an error in it shifts the point to which the rise is
 * traced back. */
static int settle_base(struct search *search, double low, size_t repeats, struct err *err)
{
    double sizes[L2_LOOK_SIZES], sum = 0;
    size_t first = search->count;
    for (size_t i = 0; i < L2_LOOK_SIZES; i++)
        sizes[i] = BASE[i] * low;
    for (size_t i = 0; i < repeats; i++) {
        int rc = l2_step_look_at(search, sizes, RISE_LOADS, err);
        if (rc)
            return rc;
    }
    for (size_t i = first; i < search->count; i++)
        sum += search->points[i].share;
    search->base = sum / (double)(search->count - first);
    return 0;
}

/* The median of all looks. */
static int trace(struct search *search, double low, double high, struct l2_step *out_step,
                 struct err *err)
{
    size_t repeats = device_limits(search->context->device)->loads_max ? REPEATS : REPEATS_MAX;
    struct traces traces;
    int rc = settle_base(search, low, repeats / REPEATS, err);
    if (rc)
        return rc;
    rc = look_at_rise(search, low, high, repeats, &traces, err);
    if (rc)
        return rc;
    out_step->exponential = traces.misfits[1] < traces.misfits[0];
    const double *best = traces.found[out_step->exponential];
    out_step->bytes = cpd_median(best, repeats);
    out_step->spread = (cpd_quantile(best, repeats, 0.75) - cpd_quantile(best, repeats, 0.25)) / 2;
    out_step->low_bytes = low;
    out_step->high_bytes = high;
    out_step->base = search->base;
    return 0;
}

static int compare_points(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    int by_size = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return by_size ? by_size : (x->number > y->number) - (x->number < y->number);
}

/* Tests whether all points, in order of size, have a change point. Sorts them. */
static int test_points(struct search *search, struct cpd_change *out_change, struct err *err)
{
    const struct cpd_options options = {.cost = CPD_COST_RANK,
                                        .alpha = ALPHA,
                                        .step_min = STEP_MIN,
                                        .seed = probe_analysis_seed(search->context)};
    double shares[POINTS_MAX];
    sort_stable(search->points, search->count, sizeof *search->points, compare_points);
    for (size_t i = 0; i < search->count; i++)
        shares[i] = search->points[i].share;
    int rc = cpd_test(shares, search->count, &options, out_change);
    return rc ? err_set(err, rc, "change-point detection failed on %zu sizes", search->count) : 0;
}

/* The distance from the foot to nine tenths of the rise; the points are sorted. */
static double step_width(const struct search *search, double foot)
{
    double highest = 0;
    for (size_t i = 0; i < search->count; i++)
        highest = fmax(highest, search->points[i].share - search->base);
    for (size_t i = 0; i < search->count; i++)
        if (search->points[i].bytes > foot &&
            search->points[i].share - search->base >= 0.9 * highest)
            return search->points[i].bytes - foot;
    return 0;
}

int l2_find_step(struct probe_context *context, const struct l2_study *l2, struct l2_step *out_step,
                 struct err *err)
{
    struct search search = {.context = context, .l2 = l2, .capacity = l2->resident_bytes};
    struct l2_step step = {0};
    struct cpd_change change = {0};
    double low = 0, high = 0;
    bool inside = false;
    for (size_t i = 0; i < COUNT_OF(ranges) && !inside; i++) {
        int rc = open_range(&search, &ranges[i], &low, &high, &inside, err);
        if (rc)
            return rc;
    }
    if (inside) {
        int rc = l2_step_narrow(&search, &low, &high, err);
        if (rc)
            return rc;
        rc = trace(&search, low, high, &step, err);
        if (rc)
            return rc;
        rc = test_points(&search, &change, err);
        if (rc)
            return rc;
    }
    step.found = change.found && change.step > 0;
    step.confidence = change.confidence;
    step.width_bytes = step.found ? step_width(&search, low) : 0;
    step.n = (uint32_t)search.count;
    *out_step = step;
    return 0;
}

int l2_confirm_step(struct probe_context *context, const struct l2_study *l2,
                    const struct l2_step *step, double *out_bytes, struct err *err)
{
    size_t repeats = device_limits(context->device)->loads_max ? 1 : REPEATS;
    struct search search = {
        .context = context, .l2 = l2, .capacity = l2->resident_bytes, .base = step->base};
    struct traces traces;
    int rc = look_at_rise(&search, step->low_bytes, step->high_bytes, repeats, &traces, err);
    if (rc)
        return rc;
    *out_bytes = cpd_median(traces.found[step->exponential], repeats);
    return 0;
}
