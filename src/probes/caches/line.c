/* The line of a cache: the largest stride at which the capacity, counted as span, does not grow
 * yet.
 *
 * Several strides on both sides of the line are measured. The line is the whole number of fetch
 * units that explains all of them best. Neighbouring strides touch nearly the same lines, so that
 * sets, policy and evictions by the sampling make no difference between them. */
#include "probes/caches/line.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/portable_math.h"
#include "probes/caches/resident.h"

/* Finds the line that explains what stayed resident at several strides. */

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
    if (o->reach.units > 0) /* strides up to the line begin to miss at the same size */
        return (struct line_span){o->reach.units, systematic * o->reach.units};
    double resident = resident_elements(&o->layout, &o->share, fmax(1, h.line / units));
    double evicted = resident - o->share.hits * all;
    struct line_span span = {.units = resident * units};
    double uneven = 0;
    if (units < h.line && o->share.hits < FULL_SHARE) {
        span.units = filled_span(o, h, resident);
        uneven = h.lru ? 0 : unevenness(h.line / units, span.units / h.line, o->share.hits);
    }
    double elements =
        portable_hypot(portable_hypot(o->share.error * all, EVICTION_ERROR * evicted), uneven);
    span.error = portable_hypot(elements * units, systematic * span.units);
    return span;
}

struct line_span line_capacity(const struct line_evidence *e, struct line_hypothesis h)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < e->count; i++) {
        if ((double)e->items[i].units > h.line)
            continue;
        struct line_span span = line_span_of(&e->items[i], h, e->systematic);
        double weight = portable_pow(fmax(span.error, 1e-9), -2);
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
    double error = portable_hypot(span.error, capacity.error * growth);
    double full = capacity.units * growth;
    double passes = (double)o->layout.elements * units / capacity.units; /* over all sets */
    double part = passes - floor(passes);
    double unused = portable_pow(1 - 1 / growth, floor(passes)) * (1 - part / growth);
    if (o->reach.units > 0) { /* an array that begins to miss has filled its sets */
        unused = 0;
        error = portable_hypot(error, o->reach.error);
    }
    double least = capacity.units + (1 - UNSEEN) * fmax(0, (1 - unused) * full - capacity.units);
    if (span.units > full)
        return (span.units - full) / error;
    bool full_array = o->open || o->share.hits > FULL_SHARE;
    return span.units >= least || full_array ? 0 : (span.units - least) / error;
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
        /* A sweep may begin to miss early, but not late. */
        if (((double)o->units > h.line || o->reach.units > 0) && off < 0)
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
    uint64_t step = e->multiple ? e->multiple : 1;
    for (uint64_t units = step; units <= LINE_UNITS_MAX; units += step) {
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

enum {
    BEYOND = 3,       /* strides beyond the line, with arrays so oversized that every set is full */
    SATURATE_MAX = 4, /* how often the array is enlarged until no more tags show */
    REFINE_MAX = 6,
    USUAL_UNITS = 4, /* per line on every GPU since Maxwell */
};

const double LINE_SURE = 0.95;

/* Wanted standard errors: while searching for growth, beyond the line, and if the decision is
 * close. */
static const double SEARCH_PRECISION = 0.02, BEYOND_PRECISION = 0.03, FINE_PRECISION = 0.008;

/* A guess is checked with this precision. It holds if the span at that stride differs by less than
 * GUESS_FLAT, and the span beyond it grows as expected, within the factors GUESS_LEAST and
 * GUESS_MOST. If the span at two or three fetch units has grown by GUESS_ONE, a line is one fetch
 * unit long. */
static const double GUESS_PRECISION = 0.02, GUESS_FLAT = 0.055, GUESS_LEAST = 0.35,
                    GUESS_MOST = 1.4, GUESS_ONE = 0.3;

/* Beyond the line: elements / tags. If there are more tags than expected by the factor MORE_TAGS,
 * not all sets were full. */
static const double BEYOND_OVERSIZE = 3, MORE_TAGS = 1.1;

/* The stride that shows best that lines are skipped is at least CONTRAST lines. Spans that differ
 * by FLAT_ERRORS standard errors are not the same. */
static const double CONTRAST = 1.4, FLAT_ERRORS = 4.5;

/* Two candidates are told apart if their misfits differ by CLEAR. If all errors were known, the
 * logarithm of their odds would be half of the difference; with CAUTION, less is claimed. */
static const double CLEAR = 20, CAUTION = 4;

/* Of an array that spans SURELY_MORE times the capacity, as one fetch unit per line shows it, at
 * least this share stays resident if its elements are more than a line apart. */
static const double ALL_RESIDENT = 0.97, SURELY_MORE = 1.3;

/* Elements this share of the line apart touch every line, even if the line is a little shorter than
 * measured. */
static const double TOUCH_SHARE = 0.7;

/* A running search. */
struct search {
    struct probe_context *context;
    const struct study *study;
    struct line_evidence evidence;
    bool one_unit; /* line_guess: even two or three fetch units skip lines */
};

/* Real caches do not follow any textbook policy exactly: spans at different strides differ by some
 * per cent (seen on Hopper), however often they are measured. */
static const double SYSTEMATIC = 0.03;

static struct search begin_search(struct probe_context *context, const struct study *study)
{
    return (struct search){.context = context, .study = study, .evidence.systematic = SYSTEMATIC};
}

static const struct line_observation *last_of(const struct search *search)
{
    return &search->evidence.items[search->evidence.count - 1];
}

/* Measures the share of this many elements that stays resident, with about per_tag of them in a
 * line. */
static int line_observe(struct search *search, uint64_t units, double elements, double per_tag,
                        double oversize, double precision, struct err *err)
{
    struct line_evidence *e = &search->evidence;
    if (e->count == LINE_OBSERVATIONS_MAX)
        return 0;
    struct line_observation *o = &e->items[e->count];
    o->units = units;
    o->layout = resident_plan(search->study, elements, units * search->study->fetch_bytes, per_tag,
                              oversize, precision);
    int rc = resident_measure_share(search->context, search->study, &o->layout, &o->share, err);
    if (rc)
        return rc;
    e->count++;
    return 0;
}

/* An array of RESIDENT_OVERSIZE times the presumed capacity, in fetch units: it overflows the cache
 * at strides up to the line. */
static int observe_span(struct search *search, uint64_t units, double capacity, double line,
                        double precision, struct err *err)
{
    return line_observe(search, units, RESIDENT_OVERSIZE * capacity / (double)units,
                        line / (double)units, RESIDENT_OVERSIZE, precision, err);
}

/* Far more elements than tags, so that all sets are full; only then the number of tags shows. */
static int observe_beyond(struct search *search, uint64_t units, double tags, double precision,
                          struct err *err)
{
    for (int attempt = 1;; attempt++) {
        int rc =
            line_observe(search, units, BEYOND_OVERSIZE * tags, 1, BEYOND_OVERSIZE, precision, err);
        if (rc)
            return rc;
        double seen = resident_elements(&last_of(search)->layout, &last_of(search)->share, 1);
        if (seen < MORE_TAGS * tags || attempt == SATURATE_MAX)
            return 0;
        tags = seen;
        search->evidence.count--;
    }
}

/* Touches every fetch unit. */
static int observe_all(struct search *search, double precision, struct err *err)
{
    const struct study *study = search->study;
    struct line_observation *o = &search->evidence.items[0];
    double elements = resident_whole(
        RESIDENT_OVERSIZE * (double)study->region_high_bytes / (double)study->fetch_bytes, 1);
    o->units = search->evidence.count = 1;
    int rc = resident_overflow(search->context, study, elements, study->fetch_bytes, USUAL_UNITS,
                               precision, &o->layout, &o->share, err);
    if (rc)
        return rc;
    if (line_capacity(&search->evidence, (struct line_hypothesis){1, true}).units < 1)
        return err_set(err, -ENODATA, "nothing stays resident in the cache");
    return 0;
}

/* True when the strides up to the longest one so far rule out that it touches every line. */
static bool skips_lines(const struct line_evidence *e, uint64_t longest)
{
    double shorter = INFINITY, longer = INFINITY;
    for (uint64_t units = 1; units <= LINE_UNITS_MAX; units++) {
        struct line_hypothesis h;
        double *least = units < longest ? &shorter : &longer;
        *least = fmin(*least, line_misfit(e, units, &h));
    }
    return longer > shorter + CLEAR;
}

/* Tries longer and longer strides until one certainly skips lines; out_longest is 0 if none
 * does. */
static int climb(struct search *search, uint64_t *out_longest, struct err *err)
{
    static const uint64_t ladder[] = {
        2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, LINE_UNITS_MAX};
    for (size_t i = 0; i < COUNT_OF(ladder); i++) {
        const struct line_hypothesis best = line_judge(&search->evidence).best;
        int rc = observe_span(search, ladder[i], line_capacity(&search->evidence, best).units,
                              best.line, SEARCH_PRECISION, err);
        if (rc)
            return rc;
        *out_longest = ladder[i];
        if (skips_lines(&search->evidence, ladder[i]))
            return 0;
    }
    *out_longest = 0;
    return 0;
}

/* The shortest stride at which an array that spans clearly more than the cache stays resident:
 * lines as long as that would not all have room. 0 if there is none. Decides where small errors add
 * up to no clear misfit, as in a small cache whose line is one fetch unit. */
static uint64_t shortest_resident(const struct line_evidence *e)
{
    double capacity = line_capacity(e, (struct line_hypothesis){1, false}).units;
    for (size_t i = 1; i < e->count; i++) {
        const struct line_observation *o = &e->items[i];
        double span = (double)(o->layout.elements * o->units);
        if (o->share.hits > ALL_RESIDENT && span > SURELY_MORE * capacity)
            return o->units;
    }
    return 0;
}

/* Measures strides beyond the line, which show its tags. */
static int look_beyond(struct search *search, uint64_t longest, struct err *err)
{
    const uint64_t beyond[BEYOND] = {longest, longest + 1, number_prime_from(2 * longest + 1)};
    double tags = resident_elements(&last_of(search)->layout, &last_of(search)->share, 1);
    for (size_t i = 0; i < BEYOND; i++) {
        int rc = observe_beyond(search, beyond[i], tags, BEYOND_PRECISION, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* While two candidates explain the observations nearly as well: measures both, and another stride
 * beyond, more precisely. Of several primes, not all divide the number of sets. */
static int refine(struct search *search, struct line_verdict *verdict, struct err *err)
{
    const struct line_evidence *e = &search->evidence;
    uint64_t beyond = 0;
    *verdict = line_judge(e);
    for (int round = 0; round < REFINE_MAX && verdict->clear < CLEAR; round++) {
        double low = fmin(verdict->best.line, verdict->second.line);
        double high = fmax(verdict->best.line, verdict->second.line);
        double capacity = line_capacity(e, verdict->best).units;
        beyond = number_prime_from((beyond > (uint64_t)high ? beyond : (uint64_t)high) + 1);
        int rc = observe_span(search, (uint64_t)low, capacity, low, FINE_PRECISION, err);
        if (rc)
            return rc;
        rc = observe_span(search, (uint64_t)high, capacity, high, FINE_PRECISION, err);
        if (rc)
            return rc;
        rc = observe_beyond(search, beyond, capacity / low, SEARCH_PRECISION, err);
        if (rc)
            return rc;
        *verdict = line_judge(e);
    }
    return 0;
}

/* Keeps the stride well beyond the line that shows most of its tags. */
static void keep_contrast(struct study *study, const struct line_evidence *e,
                          struct line_hypothesis h)
{
    double best = 0;
    for (size_t i = 0; i < e->count; i++) {
        const struct line_observation *o = &e->items[i];
        double tags = line_span_of(o, h, 0).units / (double)o->units;
        if ((double)o->units < CONTRAST * h.line || tags <= best)
            continue;
        best = tags;
        study->contrast_tags = tags;
        study->contrast_units = o->units;
        study->contrast_elements = o->layout.elements;
    }
}

double line_confidence(const struct line_verdict *verdict)
{
    return 1 / (1 + portable_exp(-verdict->clear / CAUTION));
}

static void line_settle(struct study *study, const struct line_evidence *e,
                        const struct line_verdict *verdict)
{
    double line = verdict->best.line;
    study->line_bytes = (uint64_t)line * study->fetch_bytes;
    study->line_confidence = line_confidence(verdict);
    study->resident_bytes = line_capacity(e, verdict->best).units * (double)study->fetch_bytes;
    study->touch_bytes = study->line_bytes;
    if (study->line_confidence < LINE_SURE)
        study->touch_bytes = (uint64_t)fmax(1, TOUCH_SHARE * line) * study->fetch_bytes;
    study->line_n = 0;
    for (size_t i = 0; i < e->count; i++)
        study->line_n += e->items[i].share.n;
    keep_contrast(study, e, verdict->best);
}

/* The line is not visible, but every fetch unit can be touched. */
static void settle_without(struct study *study, struct line_evidence *e)
{
    const struct line_hypothesis one = {1, false};
    e->count = 1;
    study->line_bytes = 0;
    study->touch_bytes = study->guess_bytes = study->fetch_bytes;
    study->resident_bytes = line_capacity(e, one).units * (double)study->fetch_bytes;
}

int line_measure(struct probe_context *context, struct study *study, struct err *err)
{
    struct search search = begin_search(context, study);
    struct line_verdict verdict;
    uint64_t longest = 0;
    int rc = observe_all(&search, SEARCH_PRECISION, err);
    if (rc)
        return rc;
    rc = climb(&search, &longest, err);
    if (rc)
        return rc;
    if (!longest)
        longest = shortest_resident(&search.evidence);
    if (!longest) {
        settle_without(study, &search.evidence);
        return 0;
    }
    rc = look_beyond(&search, longest, err);
    if (rc)
        return rc;
    rc = refine(&search, &verdict, err);
    if (rc)
        return rc;
    line_settle(study, &search.evidence, &verdict);
    return 0;
}

/* Checks that elements this far apart span the same as neighbouring ones, and that elements further
 * apart span as much more as they should. */
static int try_guess(struct search *search, uint64_t units, bool *out_fits, struct err *err)
{
    const struct line_hypothesis h = {(double)units, false};
    struct line_evidence *e = &search->evidence;
    uint64_t beyond = units + (units < 4 ? 1 : units / 4);
    double growth = (double)beyond / h.line - 1;
    e->count = 1;
    double capacity = line_capacity(e, h).units;
    int rc = observe_span(search, units, capacity, h.line, GUESS_PRECISION, err);
    if (rc)
        return rc;
    rc = observe_span(search, beyond, capacity, h.line, GUESS_PRECISION, err);
    if (rc)
        return rc;
    double there = line_span_of(&e->items[1], h, 0).units / capacity - 1;
    double further = line_span_of(&e->items[2], h, 0).units / capacity - 1;
    *out_fits =
        fabs(there) < GUESS_FLAT && further > GUESS_LEAST * growth && further < GUESS_MOST * growth;
    search->one_unit = fmax(there, further) > GUESS_ONE; /* the last guess is the shortest */
    return 0;
}

int line_guess(struct probe_context *context, struct study *study, struct err *err)
{
    static const uint64_t guesses[] = {USUAL_UNITS, 8, 2};
    struct search search = begin_search(context, study);
    bool fits = false;
    double line = USUAL_UNITS; /* if no guess fits: used for what the sampling evicts */
    int rc = observe_all(&search, GUESS_PRECISION, err);
    study->touch_bytes = study->fetch_bytes;
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(guesses) && !fits; i++) {
        rc = try_guess(&search, guesses[i], &fits, err);
        if (rc)
            return rc;
        if (fits) {
            line = (double)guesses[i];
            study->touch_bytes = guesses[i] * study->fetch_bytes;
        }
    }
    if (!fits && search.one_unit)
        line = 1;
    search.evidence.count = 1;
    study->guess_bytes = (uint64_t)line * study->fetch_bytes;
    study->resident_bytes =
        line_capacity(&search.evidence, (struct line_hypothesis){line, false}).units *
        (double)study->fetch_bytes;
    return 0;
}

/* Confirms the line if half of it does not span less than the whole, and the contrast grows at
 * least half as much as it should. Otherwise the answer is the line that explains these three
 * best. */
int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 uint32_t *out_n, struct err *err)
{
    struct search search = begin_search(context, study);
    const struct line_observation *seen = search.evidence.items;
    double line = (double)study->line_bytes / (double)study->fetch_bytes;
    double capacity = study->resident_bytes / (double)study->fetch_bytes;
    int rc = observe_span(&search, (uint64_t)line, capacity, line, SEARCH_PRECISION, err);
    if (rc)
        return rc;
    rc = observe_span(&search, ((uint64_t)line + 1) / 2, capacity, line, SEARCH_PRECISION, err);
    if (rc)
        return rc;
    rc = line_observe(&search, study->contrast_units, (double)study->contrast_elements, 1,
                      BEYOND_OVERSIZE, BEYOND_PRECISION, err);
    if (rc)
        return rc;
    const struct line_hypothesis h = {line, false};
    struct line_span whole = line_span_of(&seen[0], h, search.evidence.systematic),
                     half = line_span_of(&seen[1], h, search.evidence.systematic);
    double grown = line_span_of(&seen[2], h, 0).units / whole.units - 1;
    bool flat =
        fabs(whole.units - half.units) < FLAT_ERRORS * portable_hypot(whole.error, half.error);
    bool grows = grown > ((double)study->contrast_units / line - 1) / 2;
    double confirmed = flat && grows ? line : line_judge(&search.evidence).best.line;
    *out_line_bytes = (uint64_t)confirmed * study->fetch_bytes;
    *out_n = seen[0].share.n + seen[1].share.n + seen[2].share.n;
    return 0;
}
