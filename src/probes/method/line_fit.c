/* Finds the line that explains what stayed resident at several strides. */
#include "probes/method/line_fit.h"

#include <math.h>

#include "base/quadrature.h"

/* Error of a span, as a share of what the sampling evicted; and the share of growth that may be
 * missing if elements do not use all sets equally. */
static const double EVICTION_ERROR = 0.2, UNSEEN = 0.15;

/* A stride beyond the line may show too few tags, since it can leave sets unused (if its number of
 * lines and that of the sets have a common factor). So a shortage never counts more than this
 * against a line. An excess does. */
static const double SHORTAGE_MAX = 9;

/* If more than this share of an array is resident, the cache may hold more. */
static const double FULL_SHARE = 0.97;

/* Elements in the first `lines` lines. */
static double elements_in(double lines, double line, double units)
{
    return ceil(lines * line / units);
}

/* Capacity in fetch units, from resident elements at most a line apart. The array may end inside a
 * line, which is then partly empty. */
static double filled_span(const struct line_observation *o, struct line_hypothesis h,
                          double resident)
{
    double units = (double)o->units, all = (double)o->layout.elements;
    double lines = floor((all - 1) * units / h.line) + 1;
    double last = all - elements_in(lines - 1, h.line, units);
    double span = (resident + h.line / units - last) * units;
    if (!h.lru)
        return span;
    /* A whole number of lines, the last ones: the number of their elements is known exactly. */
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

/* If the stride does not divide the line, lines hold one element more or less, and it matters which
 * of them are resident. Returns the standard error, in elements, of `tags` out of tags / hits
 * lines. */
static double unevenness(double per_line, double tags, double hits)
{
    double part = per_line - floor(per_line);
    return sqrt(fmax(0, tags * (1 - hits) * part * (1 - part)));
}

struct line_span line_span_of(const struct line_observation *o, struct line_hypothesis h,
                              double systematic)
{
    double units = (double)o->units, all = (double)o->layout.elements;
    double resident = resident_elements(&o->layout, &o->share, fmax(1, h.line / units));
    double evicted = resident - o->share.hits * all;
    struct line_span span = {.units = resident * units};
    double uneven = 0;
    if (units < h.line && o->share.hits < FULL_SHARE) {
        span.units = filled_span(o, h, resident);
        uneven = h.lru ? 0 : unevenness(h.line / units, span.units / h.line, o->share.hits);
    }
    double elements =
        quadrature(quadrature(o->share.error * all, EVICTION_ERROR * evicted), uneven);
    span.error = quadrature(elements * units, systematic * span.units);
    return span;
}

struct line_span line_capacity(const struct line_evidence *e, struct line_hypothesis h)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < e->count; i++) {
        if ((double)e->items[i].units > h.line)
            continue;
        struct line_span span = line_span_of(&e->items[i], h, e->systematic);
        double weight = pow(fmax(span.error, 1e-9), -2);
        sum += weight * span.units;
        weights += weight;
    }
    if (weights <= 0)
        return (struct line_span){0};
    return (struct line_span){.units = sum / weights, .error = 1 / sqrt(weights)};
}

/* By how many standard errors a stride beyond the line shows too many tags (above 0) or too few. */
static double beyond_off(const struct line_observation *o, struct line_hypothesis h,
                         struct line_span capacity, double systematic)
{
    struct line_span span = line_span_of(o, h, systematic);
    double units = (double)o->units, growth = units / h.line;
    double error = quadrature(span.error, capacity.error * growth);
    double full = capacity.units * growth;
    double passes = (double)o->layout.elements * units / capacity.units; /* over all sets */
    double part = passes - floor(passes);
    double unused = pow(1 - 1 / growth, floor(passes)) * (1 - part / growth);
    double least = capacity.units + (1 - UNSEEN) * fmax(0, (1 - unused) * full - capacity.units);
    if (span.units > full)
        return (span.units - full) / error;
    return span.units >= least || o->share.hits > FULL_SHARE ? 0 : (span.units - least) / error;
}

static double misfit_of(const struct line_evidence *e, struct line_hypothesis h)
{
    const struct line_span capacity = line_capacity(e, h);
    double sum = 0, shortages[LINE_STRIDE_MAX + 1] = {0};
    if (capacity.units <= 0)
        return INFINITY;
    for (size_t i = 0; i < e->count; i++) {
        const struct line_observation *o = &e->items[i];
        struct line_span span = line_span_of(o, h, e->systematic);
        double off = (double)o->units > h.line ? beyond_off(o, h, capacity, e->systematic)
                                               : (span.units - capacity.units) / span.error;
        if ((double)o->units > h.line && off < 0)
            shortages[o->units] += off * off;
        else
            sum += off * off;
    }
    for (size_t units = 0; units <= LINE_STRIDE_MAX; units++)
        sum += fmin(shortages[units], SHORTAGE_MAX);
    return sum;
}

double line_misfit(const struct line_evidence *e, uint64_t units,
                   struct line_hypothesis *out_better)
{
    struct line_hypothesis lru = {(double)units, true}, any = {(double)units, false};
    double with_lru = misfit_of(e, lru), with_any = misfit_of(e, any);
    *out_better = with_lru < with_any ? lru : any;
    return fmin(with_lru, with_any);
}

struct line_verdict line_judge(const struct line_evidence *e)
{
    struct line_verdict v = {0};
    double least = INFINITY, next = INFINITY;
    for (uint64_t units = 1; units <= LINE_UNITS_MAX; units++) {
        struct line_hypothesis h;
        double off = line_misfit(e, units, &h);
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
