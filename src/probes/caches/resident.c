/* How much of an oversized array stays resident: the capacity, whatever the replacement policy.
 *
 * An array larger than the cache is loaded, then single elements are timed. The share of hits times
 * the array size is what the cache holds, in whatever order it evicted. Each job times only a few
 * elements, since every miss evicts something; one job per SM at a time. */
#include "probes/caches/resident.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/method/chase.h"

enum {
    JOBS_MIN = 1,
    JOBS_MAX = 8192,
    ROUNDS = 3,      /* per job: load everything, time a few elements */
    WARM_PASSES = 2, /* a policy that evicts early fills its last ways late */
    ENLARGE_MAX = 3,
    SMALL_ELEMENTS = 128,
    TWO_OF = 32, /* among this many elements, a second pick hardly depends on the first */
    FEW_ELEMENTS = 1024,
    WHOLE_UNITS = 16,     /* a multiple of most lines, in fetch units */
    PICKED_OF = 40,       /* one in this many elements is picked in a round */
    PICKED_OF_LINES = 16, /* more if a pick that misses evicts one element, not several */
};

/* Loads spent on one resident share: limits the time on a simulated GPU; a real one needs
 * milliseconds. */
static const double LOADS_BUDGET = 1e6, LOADS_BUDGET_PRECISE = 2e6, PRECISE = 0.02;

const double RESIDENT_OVERSIZE = 1.5;

/* With this many elements per line or more, a pick that misses evicts several. */
static const double MANY_PER_TAG = 1.6;

/* Tolerance for the arithmetic of another machine: a record made there must be asked for the
 * same. */
static const double ROUNDING = 1e-6;

/* If more than this share of an array is resident, the cache may not be full. */
static const double FULL_SHARE = 0.85;

/* So few picks that their misses hardly change what is resident, and as many jobs as the wanted
 * precision needs if about 1 in `oversize` elements stays resident. */
struct resident_layout resident_plan(const struct study *study, double elements, uint64_t stride,
                                     double per_tag, double oversize, double precision)
{
    struct resident_layout layout = {.stride = stride};
    double room = (double)(study->limit_bytes / stride);
    bool bounded = study->path == DEVICE_CONSTANT && elements > room;
    layout.elements = (uint64_t)fmax(ceil((bounded ? room : elements) - ROUNDING), 1);
    uint64_t picked_of = per_tag < MANY_PER_TAG ? PICKED_OF_LINES : PICKED_OF;
    layout.few = layout.elements < SMALL_ELEMENTS ? 1 : layout.elements / picked_of;
    if (layout.few == 1 && layout.elements >= TWO_OF)
        layout.few = 2;
    double picks = (oversize - 1) / (precision * precision);
    double jobs = picks / (double)(ROUNDS * layout.few);
    bool precise = precision < PRECISE && layout.elements < FEW_ELEMENTS;
    double budget = precise ? LOADS_BUDGET_PRECISE : LOADS_BUDGET;
    double affordable = budget / (double)(layout.elements * (WARM_PASSES + ROUNDS - 1));
    if (!study->loads_are_expensive)
        affordable = JOBS_MAX;
    layout.jobs = (size_t)fmin(fmax(fmin(jobs, affordable), JOBS_MIN), JOBS_MAX);
    return layout;
}

/* The picks are a random sample: a regular one could have many picks in few sets, where each miss
 * would evict the element that is picked next. */
static struct device_job resident_make_job(struct probe_context *context, const struct study *study,
                                           const struct resident_layout *layout)
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
static double resident_correct(const struct study *study, double seen)
{
    double hits = (seen - study->slip_share) / (1 - study->stray_share - study->slip_share);
    return hits < 0 ? 0 : hits > 1 ? 1 : hits;
}

/* A pick that misses evicts a line, unless an earlier pick has brought that line in. After e
 * evictions from T lines, the element of a later pick survives with probability 1 - e / T under
 * LRU, and exp(-e / T) under a random policy. The formula is between the two, to second order. */
double resident_elements(const struct resident_layout *layout, const struct resident_share *share,
                         double per_tag)
{
    double all = (double)layout->elements, few = (double)(layout->few - 1);
    double missed = 1 - share->hits, hits = share->hits;
    double evicted = missed * few / 2 * (1 - (per_tag - 1) * few / (3 * all));
    for (int i = 0; i < 3; i++) {
        double tags = fmax(hits * all / per_tag, 1);
        double left = 1 - evicted / tags + square(missed * few / tags) / 12;
        hits = share->hits / fmax(left, 0.5);
    }
    return fmin(all, hits * all);
}

int resident_measure_share(struct probe_context *context, const struct study *study,
                           const struct resident_layout *layout, struct resident_share *out_share,
                           struct err *err)
{
    struct device_job *jobs = mem_array(layout->jobs, sizeof *jobs);
    struct device_answer *answers = NULL;
    for (size_t i = 0; i < layout->jobs; i++)
        jobs[i] = resident_make_job(context, study, layout);
    int rc = chase_run(context, jobs, layout->jobs, study->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    double seen = 0;
    for (size_t i = 0; i < layout->jobs; i++)
        for (size_t round = 0; round < ROUNDS; round++)
            seen += 1 - chase_share_above(&answers[i].samples[round], study->threshold);
    seen /= (double)(ROUNDS * layout->jobs);
    chase_free(answers, layout->jobs);
    out_share->hits = resident_correct(study, seen);
    out_share->n = (uint32_t)(layout->jobs * ROUNDS * layout->few);
    out_share->error = sqrt(seen * (1 - seen) / out_share->n);
    return 0;
}

double resident_whole(double elements, uint64_t units)
{
    double whole = (double)((WHOLE_UNITS + units - 1) / units);
    return ceil(elements / whole - ROUNDING) * whole;
}

/* If nearly all of an array stays resident, it does not fill the cache (a policy that evicts early
 * begins to miss long before that). Then the array is doubled, up to a limit. */
int resident_overflow(struct probe_context *context, const struct study *study, double elements,
                      uint64_t stride, double per_tag, double precision,
                      struct resident_layout *out_layout, struct resident_share *out_share,
                      struct err *err)
{
    for (int attempt = 0;; attempt++, elements *= 2) {
        *out_layout = resident_plan(study, elements, stride, per_tag, RESIDENT_OVERSIZE, precision);
        int rc = resident_measure_share(context, study, out_layout, out_share, err);
        if (rc || out_share->hits < FULL_SHARE || attempt == ENLARGE_MAX)
            return rc;
    }
}
