/* The line of a cache: the largest stride at which capacity counted as span does not yet grow.
 *
 * Elements up to a line apart touch every line, and what stays resident of them spans the whole
 * capacity. Elements further apart skip lines: as many as there are tags stay resident, and they
 * span more. Several strides on either side are measured, and the line is the whole number of fetch
 * units that explains all of them best. Neighbouring strides touch nearly the same lines, so that
 * neither sets nor policy nor what the sampling evicts makes a difference between them. */
#include "probes/line.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "probes/resident.h"

enum {
    OBSERVATIONS_MAX = 64,
    UNITS_MAX = 64,   /* longest line, in fetch units */
    BEYOND = 3,       /* strides beyond the line, so far oversized that every set is full */
    SATURATE_MAX = 4, /* enlargements until no more tags show */
    REFINE_MAX = 3,
};

const double LINE_SURE = 0.9;

/* Wanted standard errors: while looking for growth, beyond the line, and where it is a near thing.
 */
static const double SEARCH_PRECISION = 0.02, BEYOND_PRECISION = 0.03, FINE_PRECISION = 0.007;

/* Beyond the line: elements over tags; and more tags than thought by this share: not all sets were
 * full. */
static const double BEYOND_OVERSIZE = 3, MORE_TAGS = 1.1;

/* What a span may be off, as a share of it and of what the sampling evicted; and growth that may
 * stay out since lines are unused. */
static const double SYSTEMATIC = 0.004, EVICTION_ERROR = 0.2, UNUSED = 0.3;

/* A stride beyond the line may show too little, since it can leave sets unused (its number of lines
 * and that of the sets have a common factor): it never counts more than this against a line. One
 * that shows too much does. */
static const double SHORTAGE_MAX = 9;

/* Two lines are told apart by so much, as twice the logarithm of their odds. */
static const double CLEAR = 20;

/* What touches every line even if the line is a little less than it seems. */
static const double TOUCH_SHARE = 0.7;

/* More than this share of an array resident: there may be more. */
static const double FULL_SHARE = 0.97;

struct observation {
    uint64_t units; /* stride, in fetch units */
    struct resident_layout layout;
    struct resident_share share;
};

struct evidence {
    struct observation items[OBSERVATIONS_MAX];
    size_t count;
};

/* A capacity in fetch units, and its standard error. */
struct span {
    double units, error;
};

/* A line of so many fetch units. What is loaded last stays resident under any policy; under LRU all
 * that is resident was loaded last. */
struct hypothesis {
    double line;
    bool lru;
};

/* Elements in the first `lines` lines. */
static double elements_in(double lines, double line, double units)
{
    return ceil(lines * line / units);
}

/* Capacity in fetch units by resident elements at most a line apart: the array may end inside a
 * line, which then is partly empty. */
static double filled_span(const struct observation *o, struct hypothesis h, double resident)
{
    double units = (double)o->units, all = (double)o->layout.elements;
    double lines = floor((all - 1) * units / h.line) + 1;
    double last = all - elements_in(lines - 1, h.line, units);
    double span = (resident + h.line / units - last) * units;
    if (!h.lru)
        return span;
    /* A whole number of lines, the last ones: how many elements those have is known exactly. */
    double nearest = INFINITY;
    for (double tags = floor(span / h.line); tags <= ceil(span / h.line); tags++) {
        double off = resident - (all - elements_in(lines - tags, h.line, units));
        if (fabs(off) < fabs(nearest)) {
            nearest = off;
            span = tags * h.line + off * units;
        }
    }
    return span;
}

/* Where the stride does not divide the line, lines hold one element more or less, and which of them
 * are resident decides: standard error, in elements, of `tags` out of tags / hits lines. */
static double unevenness(double per_line, double tags, double hits)
{
    double part = per_line - floor(per_line);
    return sqrt(fmax(0, tags * (1 - hits) * part * (1 - part)));
}

/* What the resident elements span. */
static struct span span_of(const struct observation *o, struct hypothesis h)
{
    double units = (double)o->units, all = (double)o->layout.elements;
    double resident = resident_elements(&o->layout, &o->share, fmax(1, h.line / units));
    double evicted = resident - o->share.hits * all;
    struct span span = {.units = resident * units};
    double uneven = 0;
    if (units < h.line && o->share.hits < FULL_SHARE) {
        span.units = filled_span(o, h, resident);
        uneven = h.lru ? 0 : unevenness(h.line / units, span.units / h.line, o->share.hits);
    }
    double elements = hypot(hypot(o->share.error * all, EVICTION_ERROR * evicted), uneven);
    span.error = hypot(elements * units, SYSTEMATIC * span.units);
    return span;
}

/* Capacity in fetch units from all strides up to the line; 0 without any. */
static double capacity_of(const struct evidence *e, struct hypothesis h)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < e->count; i++) {
        if ((double)e->items[i].units > h.line)
            continue;
        struct span span = span_of(&e->items[i], h);
        double weight = pow(fmax(span.error, 1e-9), -2);
        sum += weight * span.units;
        weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
}

/* What a stride beyond the line says against it. */
static double against_beyond(const struct observation *o, struct hypothesis h, double capacity)
{
    struct span span = span_of(o, h);
    double units = (double)o->units, full = capacity * units / h.line;
    double passes = (double)o->layout.elements * units / capacity; /* over all sets */
    double used = 1 - pow(1 - h.line / units, passes);
    double least = capacity + (1 - UNUSED) * fmax(0, used * full - capacity);
    if (span.units > full)
        return pow((span.units - full) / span.error, 2);
    if (span.units >= least || o->share.hits > FULL_SHARE)
        return 0;
    return fmin(pow((least - span.units) / span.error, 2), SHORTAGE_MAX);
}

static double misfit_of(const struct evidence *e, struct hypothesis h)
{
    double capacity = capacity_of(e, h), sum = 0;
    if (capacity <= 0)
        return INFINITY;
    for (size_t i = 0; i < e->count; i++) {
        const struct observation *o = &e->items[i];
        struct span span = span_of(o, h);
        if ((double)o->units > h.line)
            sum += against_beyond(o, h, capacity);
        else
            sum += pow((span.units - capacity) / span.error, 2);
    }
    return sum;
}

/* How badly a line of so many fetch units explains all observations, under the better policy. */
static double misfit(const struct evidence *e, uint64_t units, struct hypothesis *out_better)
{
    struct hypothesis lru = {(double)units, true}, any = {(double)units, false};
    double with_lru = misfit_of(e, lru), with_any = misfit_of(e, any);
    *out_better = with_lru < with_any ? lru : any;
    return fmin(with_lru, with_any);
}

struct verdict {
    struct hypothesis best, second;
    double clear; /* misfit of the second less that of the best */
};

static struct verdict judge(const struct evidence *e)
{
    struct verdict v = {0};
    double least = INFINITY, next = INFINITY;
    for (uint64_t units = 1; units <= UNITS_MAX; units++) {
        struct hypothesis h;
        double off = misfit(e, units, &h);
        if (off < least) {
            next = least;
            v.second = v.best;
            least = off;
            v.best = h;
        } else if (off < next) {
            next = off;
            v.second = h;
        }
    }
    v.clear = next - least;
    return v;
}

static int observe(struct probe_context *context, const struct study *study, uint64_t units,
                   double elements, double oversize, double precision, struct evidence *e,
                   struct err *err)
{
    if (e->count == OBSERVATIONS_MAX)
        return 0;
    struct observation *o = &e->items[e->count];
    o->units = units;
    o->layout = resident_plan(study, elements, units * study->fetch_bytes, oversize, precision);
    int rc = resident_measure_share(context, study, &o->layout, &o->share, err);
    e->count += !rc;
    return rc;
}

/* An array of RESIDENT_OVERSIZE times the capacity: it overflows at strides up to the line. */
static int observe_span(struct probe_context *context, const struct study *study, uint64_t units,
                        double capacity, double precision, struct evidence *e, struct err *err)
{
    return observe(context, study, units, RESIDENT_OVERSIZE * capacity / (double)units,
                   RESIDENT_OVERSIZE, precision, e, err);
}

/* Far more elements than there are tags, so that all sets are full; how many tags there are shows
 * only then. */
static int observe_beyond(struct probe_context *context, const struct study *study, uint64_t units,
                          double tags, struct evidence *e, struct err *err)
{
    for (int attempt = 0; attempt < SATURATE_MAX; attempt++) {
        int rc = observe(context, study, units, BEYOND_OVERSIZE * tags, BEYOND_OVERSIZE,
                         BEYOND_PRECISION, e, err);
        const struct observation *o = &e->items[e->count - 1];
        double seen = resident_elements(&o->layout, &o->share, 1);
        if (rc || seen < MORE_TAGS * tags)
            return rc;
        tags = seen;
        if (attempt + 1 < SATURATE_MAX)
            e->count--;
    }
    return 0;
}

/* Whether the strides up to the longest one so far rule out that it touches every line. */
static bool skips_lines(const struct evidence *e, uint64_t longest)
{
    double shorter = INFINITY, longer = INFINITY;
    for (uint64_t units = 1; units <= UNITS_MAX; units++) {
        struct hypothesis h;
        double *least = units < longest ? &shorter : &longer;
        *least = fmin(*least, misfit(e, units, &h));
    }
    return longer > shorter + CLEAR;
}

static uint64_t prime_from(uint64_t n)
{
    for (;; n++) {
        uint64_t d = 2;
        while (d * d <= n && n % d)
            d++;
        if (d * d > n)
            return n;
    }
}

/* Ever longer strides until one surely skips lines. */
static int climb(struct probe_context *context, const struct study *study, struct evidence *e,
                 uint64_t *out_longest, struct err *err)
{
    static const uint64_t ladder[] = {2,  3,  4,  5,  6,  7,  8,  10, 12,       14,
                                      16, 18, 20, 24, 28, 32, 40, 48, UNITS_MAX};
    for (size_t i = 0; i < COUNT_OF(ladder); i++) {
        double capacity = capacity_of(e, judge(e).best);
        int rc = observe_span(context, study, ladder[i], capacity, SEARCH_PRECISION, e, err);
        if (rc)
            return rc;
        *out_longest = ladder[i];
        if (skips_lines(e, ladder[i]))
            return 0;
    }
    return err_set(err, -ENODATA, "no stride up to %d fetch units skips a line", UNITS_MAX);
}

/* Strides beyond the line that show its tags. */
static int look_beyond(struct probe_context *context, const struct study *study, uint64_t longest,
                       struct evidence *e, struct err *err)
{
    const struct observation *last = &e->items[e->count - 1];
    double tags = resident_elements(&last->layout, &last->share, 1);
    const uint64_t beyond[BEYOND] = {longest, longest + 1, prime_from(2 * longest + 1)};
    int rc = 0;
    for (size_t i = 0; i < BEYOND && !rc; i++)
        rc = observe_beyond(context, study, beyond[i], tags, e, err);
    return rc;
}

/* While two lines explain it nearly as well: the stride at which they differ most, precisely. */
static int refine(struct probe_context *context, const struct study *study, struct evidence *e,
                  struct verdict *verdict, struct err *err)
{
    int rc = 0;
    *verdict = judge(e);
    for (int round = 0; round < REFINE_MAX && verdict->clear < CLEAR && !rc; round++) {
        uint64_t low = (uint64_t)fmin(verdict->best.line, verdict->second.line);
        uint64_t high = (uint64_t)fmax(verdict->best.line, verdict->second.line);
        double capacity = capacity_of(e, verdict->best);
        rc = observe_span(context, study, low, capacity, FINE_PRECISION, e, err);
        if (!rc)
            rc = observe_span(context, study, high, capacity, FINE_PRECISION, e, err);
        if (!rc)
            rc = observe_span(context, study, high + 1, capacity, FINE_PRECISION, e, err);
        *verdict = judge(e);
    }
    return rc;
}

/* The stride beyond the line that shows all tags. */
static void keep_contrast(struct study *study, const struct evidence *e, struct hypothesis h)
{
    double best = 0, capacity = capacity_of(e, h);
    for (size_t i = 0; i < e->count; i++) {
        const struct observation *o = &e->items[i];
        double shown = span_of(o, h).units / (capacity * (double)o->units / h.line);
        if ((double)o->units <= h.line || shown <= best)
            continue;
        best = shown;
        study->contrast_units = o->units;
        study->contrast_elements = o->layout.elements;
    }
}

static void settle(struct study *study, const struct evidence *e, const struct verdict *verdict)
{
    double line = verdict->best.line;
    study->line_bytes = (uint64_t)line * study->fetch_bytes;
    study->line_confidence = 1 / (1 + exp(-verdict->clear / 2));
    study->resident_bytes = capacity_of(e, verdict->best) * (double)study->fetch_bytes;
    study->touch_bytes = study->line_bytes;
    if (study->line_confidence < LINE_SURE)
        study->touch_bytes = (uint64_t)fmax(1, TOUCH_SHARE * line) * study->fetch_bytes;
    study->line_n = 0;
    for (size_t i = 0; i < e->count; i++)
        study->line_n += e->items[i].share.n;
    keep_contrast(study, e, verdict->best);
}

int line_measure(struct probe_context *context, struct study *study, struct err *err)
{
    struct evidence e = {.count = 1, .items = {{.units = 1}}};
    struct verdict verdict;
    uint64_t longest;
    double elements =
        RESIDENT_OVERSIZE * (double)study->region_high_bytes / (double)study->fetch_bytes;
    int rc = resident_overflow(context, study, elements, study->fetch_bytes, SEARCH_PRECISION,
                               &e.items[0].layout, &e.items[0].share, err);
    if (!rc && capacity_of(&e, (struct hypothesis){1, true}) < 1)
        return err_set(err, -ENODATA, "nothing stays resident in the cache");
    if (!rc)
        rc = climb(context, study, &e, &longest, err);
    if (!rc)
        rc = look_beyond(context, study, longest, &e, err);
    if (!rc)
        rc = refine(context, study, &e, &verdict, err);
    if (!rc)
        settle(study, &e, &verdict);
    return rc;
}

int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 struct err *err)
{
    struct evidence e = {0};
    uint64_t line = study->line_bytes / study->fetch_bytes;
    double capacity = study->resident_bytes / (double)study->fetch_bytes;
    int rc = observe_span(context, study, (line + 1) / 2, capacity, SEARCH_PRECISION, &e, err);
    if (!rc && line > 1)
        rc = observe_span(context, study, line, capacity, SEARCH_PRECISION, &e, err);
    if (!rc)
        rc = observe(context, study, study->contrast_units, (double)study->contrast_elements,
                     BEYOND_OVERSIZE, BEYOND_PRECISION, &e, err);
    if (!rc)
        *out_line_bytes = (uint64_t)judge(&e).best.line * study->fetch_bytes;
    return rc;
}
