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
#include "probes/line_fit.h"
#include "probes/resident.h"

enum {
    BEYOND = 3,       /* strides beyond the line, so far oversized that every set is full */
    SATURATE_MAX = 4, /* enlargements until no more tags show */
    REFINE_MAX = 5,
    USUAL_UNITS = 4, /* per line on every GPU since Maxwell */
};

const double LINE_SURE = 0.9;

/* Wanted standard errors: while looking for growth, beyond the line, and where it is a near thing.
 */
static const double SEARCH_PRECISION = 0.02, BEYOND_PRECISION = 0.04, FINE_PRECISION = 0.012;

/* A guess is checked so precisely; growth that speaks against it. */
static const double GUESS_PRECISION = 0.04, GUESS_GROWTH = 1.16;

/* Beyond the line: elements over tags; and more tags than thought by this share: not all sets were
 * full. */
static const double BEYOND_OVERSIZE = 3, MORE_TAGS = 1.1;

/* Two lines are told apart by so much, as twice the logarithm of their odds. */
static const double CLEAR = 20;

/* What touches every line even if the line is a little less than it seems. */
static const double TOUCH_SHARE = 0.7;

static int observe(struct probe_context *context, const struct study *study, uint64_t units,
                   double elements, double oversize, double precision, struct line_evidence *e,
                   struct err *err)
{
    if (e->count == LINE_OBSERVATIONS_MAX)
        return 0;
    struct line_observation *o = &e->items[e->count];
    o->units = units;
    o->layout = resident_plan(study, elements, units * study->fetch_bytes, oversize, precision);
    int rc = resident_measure_share(context, study, &o->layout, &o->share, err);
    e->count += !rc;
    return rc;
}

/* An array of RESIDENT_OVERSIZE times the capacity: it overflows at strides up to the line. */
static int observe_span(struct probe_context *context, const struct study *study, uint64_t units,
                        double capacity, double precision, struct line_evidence *e, struct err *err)
{
    return observe(context, study, units, RESIDENT_OVERSIZE * capacity / (double)units,
                   RESIDENT_OVERSIZE, precision, e, err);
}

/* Far more elements than there are tags, so that all sets are full; how many tags there are shows
 * only then. */
static int observe_beyond(struct probe_context *context, const struct study *study, uint64_t units,
                          double tags, struct line_evidence *e, struct err *err)
{
    for (int attempt = 0; attempt < SATURATE_MAX; attempt++) {
        int rc = observe(context, study, units, BEYOND_OVERSIZE * tags, BEYOND_OVERSIZE,
                         BEYOND_PRECISION, e, err);
        const struct line_observation *o = &e->items[e->count - 1];
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
static int climb(struct probe_context *context, const struct study *study, struct line_evidence *e,
                 uint64_t *out_longest, struct err *err)
{
    static const uint64_t ladder[] = {
        2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, LINE_UNITS_MAX};
    for (size_t i = 0; i < COUNT_OF(ladder); i++) {
        double capacity = line_capacity(e, line_judge(e).best);
        int rc = observe_span(context, study, ladder[i], capacity, SEARCH_PRECISION, e, err);
        if (rc)
            return rc;
        *out_longest = ladder[i];
        if (skips_lines(e, ladder[i]))
            return 0;
    }
    return err_set(err, -ENODATA, "no stride up to %d fetch units skips a line", LINE_UNITS_MAX);
}

/* Strides beyond the line that show its tags. */
static int look_beyond(struct probe_context *context, const struct study *study, uint64_t longest,
                       struct line_evidence *e, struct err *err)
{
    const struct line_observation *last = &e->items[e->count - 1];
    double tags = resident_elements(&last->layout, &last->share, 1);
    const uint64_t beyond[BEYOND] = {longest, longest + 1, prime_from(2 * longest + 1)};
    int rc = 0;
    for (size_t i = 0; i < BEYOND && !rc; i++)
        rc = observe_beyond(context, study, beyond[i], tags, e, err);
    return rc;
}

/* While two lines explain it nearly as well: the stride at which they differ most, precisely. */
static int refine(struct probe_context *context, const struct study *study, struct line_evidence *e,
                  struct line_verdict *verdict, struct err *err)
{
    int rc = 0;
    *verdict = line_judge(e);
    for (int round = 0; round < REFINE_MAX && verdict->clear < CLEAR && !rc; round++) {
        uint64_t low = (uint64_t)fmin(verdict->best.line, verdict->second.line);
        uint64_t high = (uint64_t)fmax(verdict->best.line, verdict->second.line);
        double capacity = line_capacity(e, verdict->best);
        rc = observe_span(context, study, low, capacity, FINE_PRECISION, e, err);
        if (!rc)
            rc = observe_span(context, study, high, capacity, FINE_PRECISION, e, err);
        if (!rc)
            rc = observe_span(context, study, high + 1, capacity, FINE_PRECISION, e, err);
        *verdict = line_judge(e);
    }
    return rc;
}

/* The stride beyond the line that shows all tags. */
static void keep_contrast(struct study *study, const struct line_evidence *e,
                          struct line_hypothesis h)
{
    double best = 0, capacity = line_capacity(e, h);
    for (size_t i = 0; i < e->count; i++) {
        const struct line_observation *o = &e->items[i];
        double shown = line_span_of(o, h).units / (capacity * (double)o->units / h.line);
        if ((double)o->units <= h.line || shown <= best)
            continue;
        best = shown;
        study->contrast_units = o->units;
        study->contrast_elements = o->layout.elements;
    }
}

static void settle(struct study *study, const struct line_evidence *e,
                   const struct line_verdict *verdict)
{
    double line = verdict->best.line;
    study->line_bytes = (uint64_t)line * study->fetch_bytes;
    study->line_confidence = 1 / (1 + exp(-verdict->clear / 2));
    study->resident_bytes = line_capacity(e, verdict->best) * (double)study->fetch_bytes;
    study->touch_bytes = study->line_bytes;
    if (study->line_confidence < LINE_SURE)
        study->touch_bytes = (uint64_t)fmax(1, TOUCH_SHARE * line) * study->fetch_bytes;
    study->line_n = 0;
    for (size_t i = 0; i < e->count; i++)
        study->line_n += e->items[i].share.n;
    keep_contrast(study, e, verdict->best);
}

/* Touched element by element. */
static int observe_all(struct probe_context *context, const struct study *study, double precision,
                       struct line_evidence *e, struct err *err)
{
    double elements =
        RESIDENT_OVERSIZE * (double)study->region_high_bytes / (double)study->fetch_bytes;
    e->count = 1;
    e->items[0].units = 1;
    int rc = resident_overflow(context, study, elements, study->fetch_bytes, precision,
                               &e->items[0].layout, &e->items[0].share, err);
    if (!rc && line_capacity(e, (struct line_hypothesis){1, true}) < 1)
        return err_set(err, -ENODATA, "nothing stays resident in the cache");
    return rc;
}

int line_measure(struct probe_context *context, struct study *study, struct err *err)
{
    struct line_evidence e;
    struct line_verdict verdict;
    uint64_t longest;
    int rc = observe_all(context, study, SEARCH_PRECISION, &e, err);
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

int line_guess(struct probe_context *context, struct study *study, struct err *err)
{
    struct line_evidence e;
    uint64_t units = USUAL_UNITS;
    double capacity = 0;
    int rc = observe_all(context, study, GUESS_PRECISION, &e, err);
    for (bool grows = true; !rc && grows; units /= grows ? 2 : 1) {
        struct line_hypothesis h = {(double)units, false};
        e.count = 1;
        capacity = line_capacity(&e, h);
        if (units == 1)
            break;
        rc = observe_span(context, study, units, capacity, GUESS_PRECISION, &e, err);
        grows = !rc && line_span_of(&e.items[1], h).units > GUESS_GROWTH * capacity;
    }
    if (rc)
        return rc;
    study->touch_bytes = units * study->fetch_bytes;
    study->resident_bytes = capacity * (double)study->fetch_bytes;
    return 0;
}

int line_confirm(struct probe_context *context, const struct study *study, uint64_t *out_line_bytes,
                 struct err *err)
{
    struct line_evidence e = {0};
    uint64_t line = study->line_bytes / study->fetch_bytes;
    double capacity = study->resident_bytes / (double)study->fetch_bytes;
    int rc = observe_span(context, study, (line + 1) / 2, capacity, SEARCH_PRECISION, &e, err);
    if (!rc && line > 1)
        rc = observe_span(context, study, line, capacity, SEARCH_PRECISION, &e, err);
    if (!rc)
        rc = observe(context, study, study->contrast_units, (double)study->contrast_elements,
                     BEYOND_OVERSIZE, BEYOND_PRECISION, &e, err);
    if (!rc)
        *out_line_bytes = (uint64_t)line_judge(&e).best.line * study->fetch_bytes;
    return rc;
}
