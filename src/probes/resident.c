/* How much of an oversized array stays resident: capacity and line without regard to the
 * replacement policy.
 *
 * An array larger than the cache is loaded, then single elements are timed: the share of hits
 * times the array is what the cache holds, whatever was evicted in which order. Each job times
 * only a few elements, since every miss evicts something; one job per SM at a time.
 *
 * Done with one element per fetch unit this counts bytes. Done with elements so far apart that
 * each needs a line of its own it counts tags. Bytes over tags is the line. */
#include "probes/resident.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/chase.h"

enum {
    JOBS_MIN = 2,
    JOBS_MAX = 8192,
    ROUNDS = 3,      /* load all, time a few: so often per job */
    WARM_PASSES = 2, /* a policy that begins to evict early fills its last ways late */
    ENLARGE_MAX = 3,
    SMALL_ELEMENTS = 128,
    FEW_ELEMENTS = 1024,
    PICKED_OF = 40, /* one in so many elements is picked in a round */
    FEW_TAGS = 64,  /* below: one line more or less is a share to reckon with */
};

/* Loads spent on one resident share: bounds the time on a simulated GPU; a real one needs
 * milliseconds. */
static const double LOADS_BUDGET = 1e6, LOADS_BUDGET_PRECISE = 2e6;

/* The array's size over what is thought to fit. */
static const double OVERSIZE = 1.5;

/* The same for tags: elements far apart fall into the sets at random, and only many of them fill
 * every set of a direct-mapped cache. */
static const double TAG_OVERSIZE = 4;

/* A line's standard error in fetch units, above which it is measured again; and how far that goes.
 */
static const double UNIT_SURE = 0.1, PRECISION_MIN = 0.007;

/* Fetch units per line where nobody has measured them: four on every GPU since Maxwell. */
static const double USUAL_UNITS = 4;

/* More than this share of an array resident: the cache may not be full. */
static const double FULL_SHARE = 0.85;

/* A count of lines with a smaller standard error than this is rounded. */
static const double SNAP_LINES = 0.25;

/* Wanted standard errors, as shares of the value: to tell lines of 7 and 8 fetch units apart, and
 * to stay well within the 2 % that a size may be off. */
static const double ROUGH_PRECISION = 0.05, LINE_PRECISION = 0.02, SIZE_PRECISION = 0.005,
                    QUICK_PRECISION = 0.01;

/* Elements this many fetch units apart lie in lines of their own, and, the factor being prime, in
 * all sets of the cache, unless the number of sets is a multiple of it: hence three of them. */
static const uint64_t TAG_STRIDES[] = {17, 19, 23};

/* A stride that shows so many times the tags of another: that one left sets unused. */
static const double ALIASED = 1.15;

/* What to time: elements a stride apart, of which a few are picked after loading all. */
struct layout {
    uint64_t elements, stride;
    uint64_t few; /* picks per round */
    size_t jobs;
};

struct share {
    double hits;  /* 0..1, corrected for misjudged latencies */
    double error; /* standard error if the picks were independent: an upper bound */
    uint32_t n;
};

/* So few picks that their misses hardly change what is resident, and as many jobs as the wanted
 * precision needs when about 1 in `oversize` elements stays resident. */
static struct layout make_layout(const struct study *study, double elements, uint64_t stride,
                                 double oversize, double precision)
{
    struct layout layout = {.stride = stride};
    double room = (double)(study->limit_bytes / stride);
    bool bounded = study->path == DEVICE_CONSTANT && elements > room;
    layout.elements = (uint64_t)ceil(bounded ? room : elements);
    layout.few = layout.elements < SMALL_ELEMENTS ? 1 : layout.elements / PICKED_OF;
    double picks = (oversize - 1) / (precision * precision);
    double jobs = picks / (double)(ROUNDS * layout.few);
    bool precise = precision < LINE_PRECISION && layout.elements < FEW_ELEMENTS;
    double budget = precise ? LOADS_BUDGET_PRECISE : LOADS_BUDGET;
    double affordable = budget / (double)(layout.elements * (WARM_PASSES + ROUNDS - 1));
    layout.jobs = (size_t)fmin(fmax(fmin(jobs, affordable), JOBS_MIN), JOBS_MAX);
    return layout;
}

/* The picks are a random sample: in a regular one, few sets of the cache could get many picks, and
 * each miss would evict what is picked next. */
static struct device_job make_job(struct probe_context *context, const struct study *study,
                                  const struct layout *layout)
{
    const struct device_array all = {.path = study->path,
                                     .size_bytes = layout->elements * layout->stride,
                                     .stride_bytes = layout->stride};
    struct device_job job = chase_job();
    job.shared_bytes = study->shared_bytes;
    for (size_t round = 0; round < ROUNDS; round++) {
        struct device_array picked = all;
        picked.order = DEVICE_RANDOM;
        picked.seed = probe_seed(context);
        chase_add(&job, DEVICE_WARM, &all, (round ? 1 : WARM_PASSES) * layout->elements);
        chase_add(&job, DEVICE_CHASE, &picked, layout->few)->start =
            probe_seed(context) % layout->elements;
    }
    return job;
}

/* Hits are misjudged with probability stray, misses with probability slip. */
static double correct(const struct study *study, double seen)
{
    double hits = (seen - study->slip_share) / (1 - study->stray_share - study->slip_share);
    return hits < 0 ? 0 : hits > 1 ? 1 : hits;
}

/* Elements that were resident before the sampling began. Each miss of it evicts a line, and with it
 * `per_tag` elements that a later pick may look for. */
static double resident_elements(const struct layout *layout, const struct share *share,
                                double per_tag)
{
    double lost = (double)(layout->few - 1) * (1 - share->hits) / 2 * per_tag;
    return fmin((double)layout->elements, share->hits * (double)layout->elements + lost);
}

/* The share of the layout's elements that are still cached after loading all of them. */
static int measure_share(struct probe_context *context, const struct study *study,
                         const struct layout *layout, struct share *out_share, struct err *err)
{
    struct device_job *jobs = mem_array(layout->jobs, sizeof *jobs);
    struct device_answer *answers = NULL;
    if (!jobs)
        return err_no_memory(err);
    for (size_t i = 0; i < layout->jobs; i++)
        jobs[i] = make_job(context, study, layout);
    int rc = chase_run(context, jobs, layout->jobs, study->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    double seen = 0;
    for (size_t i = 0; i < layout->jobs; i++)
        for (size_t round = 0; round < ROUNDS; round++)
            seen += 1 - chase_share_above(&answers[i].samples[round], study->threshold);
    seen /= (double)(ROUNDS * layout->jobs);
    device_answers_fini(answers, layout->jobs);
    free(answers);
    out_share->hits = correct(study, seen);
    out_share->n = (uint32_t)(layout->jobs * ROUNDS * layout->few);
    out_share->error = sqrt(seen * (1 - seen) / out_share->n);
    return 0;
}

static int count_tags(struct probe_context *context, const struct study *study, double tags,
                      uint64_t apart, double oversize, double precision, double *out_tags,
                      struct err *err)
{
    const struct layout layout =
        make_layout(study, oversize * tags, apart * study->fetch_bytes, oversize, precision);
    struct share share;
    int rc = measure_share(context, study, &layout, &share, err);
    if (!rc)
        *out_tags = resident_elements(&layout, &share, 1);
    return rc;
}

/* First roughly, of as many elements as there could be tags and with each stride; then with the
 * stride that showed most, of as many elements as the answer says: that gives the precision. */
static int measure_tags_apart(struct probe_context *context, struct study *study, double precision,
                              struct err *err)
{
    double most = 0, units = study->resident_bytes / (double)study->fetch_bytes;
    uint64_t best = TAG_STRIDES[0];
    for (size_t i = 0; i < COUNT_OF(TAG_STRIDES); i++) {
        double tags;
        int rc = count_tags(context, study, units, TAG_STRIDES[i], OVERSIZE, ROUGH_PRECISION, &tags,
                            err);
        if (rc)
            return rc;
        best = tags > ALIASED * most ? TAG_STRIDES[i] : best;
        most = fmax(most, tags);
    }
    if (most < 1)
        return err_set(err, -ENODATA, "nothing stays resident in the cache");
    return count_tags(context, study, most, best, TAG_OVERSIZE, precision, &study->tags, err);
}

/* How well a line of `units` fetch units explains the shares that stayed resident of the whole
 * memory, touched every k fetch units: the capacity as it is while k reaches no further than the
 * line, k over line times it beyond. Even k may leave sets unused, and then show too little. */
static double misfit(double capacity_share, uint64_t units, const uint64_t *apart,
                     const double *hits, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double expected = fmin(1, capacity_share * fmax(1, (double)apart[i] / (double)units));
        double off = hits[i] - expected;
        if (apart[i] % 2 || off > 0)
            sum += off * off;
    }
    return sum;
}

/* Where the memory ends too soon for that (constant L1.5) its whole is touched ever more sparsely,
 * and the line is what explains best how much of it stays resident. */
static int measure_tags_bounded(struct probe_context *context, struct study *study, struct err *err)
{
    static const uint64_t apart[] = {2, 3, 5, 7, 11, 13};
    enum { COUNT = sizeof apart / sizeof *apart, UNITS_MAX = 16 };
    double hits[COUNT], least = INFINITY;
    double units = study->resident_bytes / (double)study->fetch_bytes;
    for (size_t i = 0; i < COUNT; i++) {
        const struct layout layout =
            make_layout(study, INFINITY, apart[i] * study->fetch_bytes, OVERSIZE, LINE_PRECISION);
        struct share share;
        int rc = measure_share(context, study, &layout, &share, err);
        if (rc)
            return rc;
        hits[i] = share.hits;
    }
    for (uint64_t line = 1; line <= UNITS_MAX; line++) {
        double off =
            misfit(study->resident_bytes / (double)study->limit_bytes, line, apart, hits, COUNT);
        if (off < least - 1e-4) {
            least = off;
            study->tags = units / (double)line;
        }
    }
    return 0;
}

static int measure_tags(struct probe_context *context, struct study *study, double precision,
                        struct err *err)
{
    double span = OVERSIZE * study->resident_bytes * (double)TAG_STRIDES[0];
    if (study->path == DEVICE_CONSTANT && span > (double)study->limit_bytes)
        return measure_tags_bounded(context, study, err);
    return measure_tags_apart(context, study, precision, err);
}

/* An array of which nearly all stays resident does not fill the cache (a policy that evicts early
 * begins to miss long before): twice as much of it, up to a limit. */
static int measure_overflowing(struct probe_context *context, const struct study *study,
                               double elements, uint64_t stride, double precision,
                               struct layout *out_layout, struct share *out_share, struct err *err)
{
    for (int attempt = 0;; attempt++, elements *= 2) {
        *out_layout = make_layout(study, elements, stride, OVERSIZE, precision);
        int rc = measure_share(context, study, out_layout, out_share, err);
        if (rc || out_share->hits < FULL_SHARE || attempt == ENLARGE_MAX)
            return rc;
    }
}

/* Fetch units that stay resident of an array of whole lines of `line_units` of them: an array that
 * ends inside a line leaves that line partly empty. */
static int measure_units(struct probe_context *context, const struct study *study,
                         uint64_t line_units, double precision, struct layout *out_layout,
                         struct share *out_share, struct err *err)
{
    double line_bytes = (double)(line_units * study->fetch_bytes);
    double lines = ceil(OVERSIZE * (double)study->region_high_bytes / line_bytes);
    return measure_overflowing(context, study, lines * (double)line_units, study->fetch_bytes,
                               precision, out_layout, out_share, err);
}

/* In a cache of few lines it matters where an array ends: inside a line it leaves that line partly
 * empty. So arrays of whole lines of each candidate are tried, and the one that holds most tells.
 */
static int line_of_few(struct probe_context *context, struct study *study, uint64_t guess,
                       double precision, struct err *err)
{
    double most = 0;
    for (uint64_t units = guess > 3 ? guess - 2 : 1; units <= guess + 3; units++) {
        struct layout layout;
        struct share share;
        int rc = measure_units(context, study, units, precision, &layout, &share, err);
        if (rc)
            return rc;
        most = fmax(most, resident_elements(&layout, &share, (double)units) / study->tags);
    }
    study->line_exact = most * (double)study->fetch_bytes;
    study->line_bytes = (uint64_t)fmax(1, round(most)) * study->fetch_bytes;
    return 0;
}

/* Otherwise one count serves: the whole number of fetch units per line that agrees best with units
 * over tags, where what the picks evicted is reckoned under the same assumption. */
static void line_of_many(struct study *study, const struct layout *layout,
                         const struct share *share, uint64_t guess)
{
    double best_off = INFINITY;
    for (uint64_t units = guess > 3 ? guess - 2 : 1; units <= guess + 3; units++) {
        double found = resident_elements(layout, share, (double)units) / study->tags;
        double off = fabs(found - (double)units);
        if (off < best_off) {
            best_off = off;
            study->line_exact = found * (double)study->fetch_bytes;
            study->line_bytes = units * study->fetch_bytes;
        }
    }
}

static int measure_line(struct probe_context *context, struct study *study,
                        const struct layout *layout, const struct share *share, double precision,
                        struct err *err)
{
    uint64_t guess = (uint64_t)fmax(1, round(resident_elements(layout, share, 1) / study->tags));
    int rc = 0;
    if (study->tags < FEW_TAGS)
        rc = line_of_few(context, study, guess, precision, err);
    else
        line_of_many(study, layout, share, guess);
    /* Both counts err by about `precision`. */
    study->line_error = study->line_exact * precision * sqrt(2);
    return rc;
}

/* Units, tags and from both the line; lines of many fetch units need the precision to be told from
 * their neighbours, and get a second round. */
static int study_line(struct probe_context *context, struct study *study, struct err *err)
{
    double precision = LINE_PRECISION;
    for (int round = 0; round < 2; round++) {
        struct layout layout;
        struct share share;
        int rc = measure_units(context, study, 1, precision, &layout, &share, err);
        if (rc)
            return rc;
        study->resident_bytes = resident_elements(&layout, &share, 1) * (double)study->fetch_bytes;
        if (study->resident_bytes < (double)study->fetch_bytes)
            return err_set(err, -ENODATA, "nothing stays resident in the cache");
        rc = measure_tags(context, study, precision, err);
        if (!rc)
            rc = measure_line(context, study, &layout, &share, precision, err);
        double units = study->line_exact / (double)study->fetch_bytes;
        if (rc || units * LINE_PRECISION < UNIT_SURE)
            return rc;
        precision = fmax(UNIT_SURE / units, PRECISION_MIN);
    }
    return 0;
}

/* Capacity: lines that stay resident of an array touched once per line. */
static int measure_capacity(struct probe_context *context, struct study *study, struct err *err)
{
    double line = (double)study->line_bytes;
    struct layout layout;
    struct share share;
    int rc = measure_overflowing(context, study, OVERSIZE * study->resident_bytes / line,
                                 study->line_bytes, SIZE_PRECISION, &layout, &share, err);
    if (rc)
        return rc;
    double lines = resident_elements(&layout, &share, 1);
    /* Nothing holds half a line; where a count of lines is this sure, it is a whole number. */
    double error = share.error * (double)layout.elements;
    study->resident_bytes = (error < SNAP_LINES ? round(lines) : lines) * line;
    study->resident_error = error * line;
    study->resident_n = share.n;
    return 0;
}

int resident_measure(struct probe_context *context, struct study *study, struct err *err)
{
    int rc = study_line(context, study, err);
    return rc ? rc : measure_capacity(context, study, err);
}

int resident_measure_quick(struct probe_context *context, const struct study *study,
                           double *out_bytes, double *out_error, struct err *err)
{
    double elements = OVERSIZE * (double)study->region_high_bytes / (double)study->fetch_bytes;
    struct layout layout;
    struct share share;
    int rc = measure_overflowing(context, study, elements, study->fetch_bytes, QUICK_PRECISION,
                                 &layout, &share, err);
    if (rc)
        return rc;
    double span = (double)(layout.elements * layout.stride);
    *out_bytes = resident_elements(&layout, &share, USUAL_UNITS) * (double)layout.stride;
    *out_error = share.error * span;
    return 0;
}
