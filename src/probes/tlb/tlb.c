/* The probe of TLBs: levels, entries, sets, the size of a page, reach, what a miss costs, and which
 * SMs share them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cpd/cpd.h"
#include "probes/method/chase.h"
#include "probes/method/repeats.h"
#include "probes/tlb/tlb_levels.h"

enum { TLB_PENALTIES = 3 };

struct tlb_sharing {
    uint32_t sms; /* with SM 0; 0: not told */
};

/* What a miss of a TLB costs: the same loads over all pages, and over parts of them that fit. */

enum {
    PENALTY_JOBS = 7,
    FEW_PAGES = 256,
    FEW_PASSES = 8,
    WARM_PASSES = 2,
    RANDOM_FACTOR = 4, /* of the entries, so that nearly all pages miss under random replacement */
};

/* The pages of an array from element `first` on. */
static struct device_array penalty_part_of(const struct device_array *all, uint64_t first,
                                           uint64_t pages)
{
    struct device_array part = *all;
    part.offset_bytes += first * all->stride_bytes;
    part.size_bytes = pages * all->stride_bytes;
    return part;
}

static void add_chase(struct device_job *job, const struct device_array *array, uint64_t pages)
{
    chase_add(job, DEVICE_WARM, array, WARM_PASSES * pages);
    chase_add(job, DEVICE_CHASE, array, pages < FEW_PAGES ? FEW_PASSES * pages : 0);
}

/* What a miss adds to the same loads: all pages, and parts of them at both ends that fit. */
static int penalty_once(struct probe_context *context, uint64_t stride, uint64_t pages,
                        uint64_t part, double *out_cycles, struct err *err)
{
    struct device_job jobs[PENALTY_JOBS] = {0};
    struct device_answer *answers;
    double longer[PENALTY_JOBS];
    for (uint32_t i = 0; i < PENALTY_JOBS; i++) {
        struct device_array all = page_chase_array(stride, pages, i);
        struct device_array low = penalty_part_of(&all, 0, part);
        struct device_array high = penalty_part_of(&all, pages - part, part);
        jobs[i] = chase_job();
        jobs[i].agents[0].sm = 0;
        add_chase(&jobs[i], &all, pages);
        add_chase(&jobs[i], &low, part);
        add_chase(&jobs[i], &high, part);
    }
    int rc = chase_run(context, jobs, PENALTY_JOBS, 1, &answers, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < PENALTY_JOBS; i++) {
        const struct device_sample *s = answers[i].samples;
        longer[i] = chase_mean(&s[0]) - (chase_mean(&s[1]) + chase_mean(&s[2])) / 2;
    }
    *out_cycles = cpd_median(longer, PENALTY_JOBS);
    chase_free(answers, PENALTY_JOBS);
    return 0;
}

/* What a miss adds to a load whose page is in the next level, measured so many times. */
static int tlb_penalty_measure(struct probe_context *context, const struct tlb_levels *levels,
                               size_t number, const struct tlb_sets *sets,
                               double out_cycles[TLB_PENALTIES], struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    uint64_t room = page_chase_room(&levels->chase, level->span_bytes);
    /* So many that all miss, and halves of them fit. At random, many more are needed. */
    uint64_t pages =
        sets->policy == TLB_OLDEST ? sets->entries * 7 / 4 : RANDOM_FACTOR * sets->entries;
    pages = pages < level->far_pages ? pages : level->far_pages;
    pages = pages < room ? pages : room;
    pages = pages > sets->entries + sets->sets ? pages : sets->entries + sets->sets;
    uint64_t part = pages / 2 < sets->entries ? pages / 2 : (sets->entries + 1) / 2;
    for (size_t i = 0; i < TLB_PENALTIES; i++) {
        int rc =
            penalty_once(context, level->span_bytes, pages, part ? part : 1, &out_cycles[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* How many SMs share a TLB with SM 0. */

enum {
    OWN_MAX = 8,
    LINES_MAX = 8,
    PASSES_RANDOM = 4,
    MANY_PAGES = 512,
    TRIES = 3,
    TRIES_UNCLEAR = 7
};

/* What evicted pages take longer, as a share of a miss, at least; and by how much it may differ
 * from one without being measured again. */
static const double COLD_SHARE = 0.6, COLD_WITHIN = 0.2;

/* Pages that are timed, and behind them pages that evict them. */
struct plan {
    uint64_t stride, own, others;
    uint64_t passes; /* over the others */
    uint32_t lines;  /* of each page, one after the other */
    uint64_t first;  /* so many of the others fill the levels before; 0: there are none */
};

static struct device_job tlb_sharing_make_job(const struct plan *plan, uint32_t number,
                                              int32_t helper)
{
    struct device_array own = page_chase_array(plan->stride, plan->own, number);
    struct device_array others = page_chase_array(plan->stride, plan->others, number);
    struct device_job job = chase_job();
    others.offset_bytes += (plan->own + 1) * own.stride_bytes;
    job.agents[0].sm = 0;
    if (helper >= 0) {
        job.agent_count = 2;
        job.agents[1].sm = helper;
    }
    chase_add(&job, DEVICE_WARM, &own, 0);
    chase_add(&job, DEVICE_WARM, &others, plan->passes * plan->others);
    /* The TLBs of the helper keep pages from launch to launch. What its own ones hold, also those
     * that were not seen, does not come to the level in question. */
    if (helper >= 0 && plan->first)
        chase_add(&job, DEVICE_WARM, &others, plan->first)->agent = 1;
    if (helper >= 0)
        chase_add(&job, DEVICE_WARM, &own, 2 * plan->own)->agent = 1;
    chase_add(&job, DEVICE_CHASE, &own, 0);
    chase_add(&job, DEVICE_CHASE, &own, 0);
    return job;
}

/* What the first pass of SM 0 takes longer than the second, per load, after another SM has loaded
 * the pages (helper; -1: none). */
static int tlb_sharing_run_jobs(struct probe_context *context, const struct plan *plan,
                                int32_t helper, double *out_longer, struct err *err)
{
    struct device_job jobs[LINES_MAX] = {0};
    struct device_answer *answers;
    double sum = 0;
    for (uint32_t i = 0; i < plan->lines; i++)
        jobs[i] = tlb_sharing_make_job(plan, i, helper);
    int rc = chase_run(context, jobs, plan->lines, 1, &answers, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < plan->lines; i++)
        sum += chase_mean(&answers[i].samples[0]) - chase_mean(&answers[i].samples[1]);
    chase_free(answers, plan->lines);
    *out_longer = sum / plan->lines;
    return 0;
}

/* The same without a helper: all pages are evicted. A disturbance must not set the limit. */
static int tlb_sharing_run_cold(struct probe_context *context, const struct plan *plan,
                                double miss_cycles, double *out_longer, struct err *err)
{
    double longer[TRIES];
    int rc = tlb_sharing_run_jobs(context, plan, -1, &longer[0], err);
    *out_longer = longer[0];
    if (rc || fabs(longer[0] - miss_cycles) <= COLD_WITHIN * miss_cycles)
        return rc;
    for (uint32_t i = 1; i < TRIES && !rc; i++)
        rc = tlb_sharing_run_jobs(context, plan, -1, &longer[i], err);
    if (!rc)
        *out_longer = cpd_median(longer, TRIES);
    return rc;
}

/* A disturbance must not decide: two tries that are clear, or the median of many. One is enough if
 * it is what evicted pages take. */
static int tlb_sharing_is_shared(struct probe_context *context, const struct plan *plan,
                                 uint32_t sm, double limit, double clear, bool *out_shared,
                                 struct err *err)
{
    double longer[TRIES_UNCLEAR];
    uint32_t below = 0, above = 0, n = 0;
    bool evicted = false;
    while (n < TRIES_UNCLEAR && below < 2 && above < 2 && !evicted) {
        int rc = tlb_sharing_run_jobs(context, plan, (int32_t)sm, &longer[n], err);
        if (rc == -ENOENT && n) /* a record that was made when it was tried less often */
            break;
        if (rc)
            return rc;
        below += longer[n] < limit - clear;
        above += longer[n] > limit + clear;
        evicted = n == 0 && above && longer[0] < limit + 3 * clear;
        n++;
    }
    bool clearly = evicted || below == 2 || above == 2;
    *out_shared = clearly ? below == 2 : cpd_median(longer, n) < limit;
    return 0;
}

/* SM 0 fills the level with other pages, another SM loads some, and SM 0 times these: they hit
 * where the level is shared. */
static int tlb_sharing_measure(struct probe_context *context, const struct tlb_levels *levels,
                               size_t number, const struct tlb_sets *sets,
                               struct tlb_sharing *out_sharing, struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    struct plan plan = {.stride = level->span_bytes,
                        .own = sets->entries / 2 < OWN_MAX ? (sets->entries + 1) / 2 : OWN_MAX,
                        .passes = sets->policy == TLB_OLDEST ? 1 : PASSES_RANDOM};
    uint64_t room = page_chase_room(&levels->chase, plan.stride);
    struct tlb_sharing sharing = {.sms = 1};
    double longer;
    plan.others = level->miss_pages + level->miss_pages / 8;
    room = room > 2 * plan.own + 4 ? room - plan.own - 3 : plan.own;
    plan.others = plan.others < room ? plan.others : room;
    plan.first = number ? PASSES_RANDOM * levels->levels[number - 1].miss_pages : plan.others;
    plan.lines = plan.others > MANY_PAGES ? 1 : LINES_MAX;
    int rc = tlb_sharing_run_cold(context, &plan, level->miss_cycles, &longer, err);
    if (rc)
        return rc;
    if (longer < COLD_SHARE * level->miss_cycles)
        sharing.sms = 0;
    double limit = longer - level->miss_cycles / 2;
    for (uint32_t sm = 1; sharing.sms && sm < device_limits(context->device)->sm_count; sm++) {
        bool shared = false;
        rc = tlb_sharing_is_shared(context, &plan, sm, limit, level->miss_cycles / 4, &shared, err);
        if (rc == -ENOENT && !number) { /* as older records have it */
            plan.first = 0;
            rc = tlb_sharing_is_shared(context, &plan, sm, limit, level->miss_cycles / 4, &shared,
                                       err);
        }
        if (rc)
            return rc;
        sharing.sms += shared;
    }
    *out_sharing = sharing;
    return 0;
}

enum { NAME_MAX_BYTES = 48, REASON_MAX = 200 };

/* What is found of a level beyond where it begins. */
struct tlb_found {
    struct tlb_sets sets;
    double penalties[TLB_PENALTIES];
};

/* The latency may rise by this share, or so many cycles, more than a miss costs. */
static const double RISE_WITHIN = 0.15, RISE_CYCLES = 3;

/* A rise that is no clear level counts as a doubt above this share of the latency. */
static const double SURE = 0.99, DOUBTED = 0.5, UNCLEAR_SHARE = 0.05;

static const char METHOD[] = "pages that miss in a chase of one too many";

/* Adds tlb.l1.entries and the like, with the doubt if there is one. */
static void tlb_add(struct probe_context *context, size_t level, const char *what, double value,
                    const char *unit, const struct tlb_sets *sets)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.%s", level + 1, what);
    struct measure *m = measures_add(context->measures, metric, value, unit, METHOD);
    m->n = sets->n;
    m->confidence = *sets->doubt ? DOUBTED : SURE;
    if (*sets->doubt)
        measure_set_status(m, MEASURE_NOISY, sets->doubt);
}

static void tlb_add_missing(struct probe_context *context, size_t level, const char *what,
                            const char *reason)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.%s", level + 1, what);
    measures_add_missing(context->measures, metric, MEASURE_FAILED, reason);
}

static void tlb_report_sets(struct probe_context *context, size_t level,
                            const struct tlb_sets *sets)
{
    static const char *const policies[] = {
        [TLB_UNKNOWN] = "unknown", [TLB_OLDEST] = "lru_or_fifo", [TLB_RANDOM] = "random"};
    const char *reason = *sets->doubt ? sets->doubt : "not told: it does not replace the oldest";
    char metric[NAME_MAX_BYTES];
    tlb_add(context, level, "entries", (double)sets->entries, "", sets);
    if (sets->sets)
        tlb_add(context, level, "sets", (double)sets->sets, "", sets);
    else
        tlb_add_missing(context, level, "sets", reason);
    if (sets->sets)
        tlb_add(context, level, "ways", (double)sets->ways, "", sets);
    else
        tlb_add_missing(context, level, "ways", reason);
    if (sets->largest > sets->ways)
        tlb_add(context, level, "ways_largest", (double)sets->largest, "", sets);
    if (sets->policy == TLB_UNKNOWN) {
        tlb_add_missing(context, level, "policy", reason);
        return;
    }
    snprintf(metric, sizeof metric, "tlb.l%zu.policy", level + 1);
    const char *word = policies[sets->policy];
    struct measure *m = measures_add_words(context->measures, metric, &word, 1, METHOD);
    m->n = sets->n;
    m->confidence = *sets->doubt ? DOUBTED : SURE;
    if (*sets->doubt)
        measure_set_status(m, MEASURE_NOISY, sets->doubt);
}

static void tlb_report_penalty(struct probe_context *context, size_t number,
                               const struct tlb_found *found)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "tlb.l%zu.penalty", number + 1);
    struct measure *m = repeats_add(context, metric, found->penalties, TLB_PENALTIES, "cycles",
                                    "the same loads with all pages and with half of them");
    repeats_settle(m);
    if (found->sets.policy != TLB_OLDEST)
        measure_set_status(m, MEASURE_NOISY, "too low: some of the pages are always there");
    else if (*found->sets.doubt)
        measure_set_status(m, MEASURE_NOISY, found->sets.doubt);
}

static int report_level(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_found *found, struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    const struct tlb_sets *sets = &found->sets;
    struct tlb_sharing sharing;
    tlb_report_sets(context, number, sets);
    tlb_report_penalty(context, number, found);
    tlb_add(context, number, "span", (double)level->span_bytes, "B", sets);
    tlb_add(context, number, "reach", (double)(sets->entries * level->span_bytes), "B", sets);
    int rc = tlb_sharing_measure(context, levels, number, sets, &sharing, err);
    if (rc)
        return rc;
    if (!sharing.sms) {
        tlb_add_missing(context, number, "sms",
                        "other pages did not evict those of SM 0: sharing cannot be tested");
        return 0;
    }
    tlb_add(context, number, "sms", sharing.sms, "", sets);
    return 0;
}

/* The penalty of a level is what the latency rises by, unless the rise has a further level in it.
 */
static int tlb_measure_penalty(struct probe_context *context, const struct tlb_levels *levels,
                               size_t number, struct tlb_found *found, char unclear[REASON_MAX],
                               struct err *err)
{
    double rise = found->sets.rise_cycles;
    int rc = tlb_penalty_measure(context, levels, number, &found->sets, found->penalties, err);
    if (rc || found->sets.policy != TLB_OLDEST || *found->sets.doubt)
        return rc;
    double penalty = cpd_median(found->penalties, TLB_PENALTIES);
    if (rise - penalty <= fmax(RISE_WITHIN * rise, RISE_CYCLES))
        return 0;
    snprintf(found->sets.doubt, sizeof found->sets.doubt,
             "the latency rises by %.0f cycles, a miss costs %.0f: there may be another level",
             rise, penalty);
    snprintf(unclear, REASON_MAX, "%s", found->sets.doubt);
    return 0;
}

/* Rises that are no clear level are left out, and those that neighbouring pages do not show. The
 * last large one of these is remembered; of small ones, how large they are. */
static int tlb_measure_sets(struct probe_context *context, struct tlb_levels *levels,
                            struct tlb_found *found, char unclear[REASON_MAX], struct err *err)
{
    size_t count = levels->count;
    bool in_order = true; /* the levels before replace their oldest page */
    levels->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tlb_level level = levels->levels[i];
        struct tlb_sets *own = &found[levels->count].sets;
        *own = (struct tlb_sets){0};
        int rc = level.span_bytes ? tlb_sets_measure(context, levels, i, own, err) : 0;
        if (rc)
            return rc;
        if (!in_order && own->shown && !*own->doubt)
            snprintf(own->doubt, sizeof own->doubt, "the level before keeps pages in no order");
        in_order = in_order && (own->policy == TLB_OLDEST || !own->shown);
        bool large = level.miss_cycles > UNCLEAR_SHARE * level.base_cycles;
        if (own->policy != TLB_OLDEST && own->shown)
            snprintf(unclear, REASON_MAX, "a level that rises slowly may hide another one");
        if (own->clear || (large && own->shown))
            levels->levels[levels->count++] = level;
        else if (large)
            snprintf(unclear, REASON_MAX,
                     "a rise by %.0f cycles between %llu and %llu pages is no clear level",
                     level.miss_cycles, (unsigned long long)level.hit_pages,
                     (unsigned long long)level.miss_pages);
        else
            levels->smallest_cycles = fmax(levels->smallest_cycles, level.miss_cycles);
    }
    return 0;
}

/* A lower bound: a level that reaches beyond the memory cannot be seen. The notes say how far it
 * was looked. */
static void tlb_report_count(struct probe_context *context, const struct tlb_levels *levels,
                             const char *unclear)
{
    struct measure *m = measures_add(context->measures, "tlb.levels", (double)levels->count, "",
                                     "rises of the latency with the number of pages");
    m->bound = MEASURE_AT_LEAST;
    facts_set_int(&m->notes, "memory", (int64_t)levels->chase.room_bytes);
    facts_set_int(&m->notes, "pages", (int64_t)levels->pages);
    facts_set_real(&m->notes, "smallest_rise", levels->smallest_cycles);
    m->confidence = *unclear ? DOUBTED : SURE;
    if (*unclear)
        measure_set_status(m, MEASURE_NOISY, unclear);
}

static int tlb_run(struct probe_context *context, struct err *err)
{
    struct tlb_levels levels;
    struct tlb_found found[TLB_LEVELS_MAX];
    char unclear[REASON_MAX] = "";
    struct err own = {0};
    int rc = tlb_levels_find(context, &levels, &own);
    if (!rc)
        rc = tlb_measure_sets(context, &levels, found, unclear, &own);
    for (size_t i = 0; i < levels.count && !rc; i++)
        rc = tlb_measure_penalty(context, &levels, i, &found[i], unclear, &own);
    if (rc)
        return repeats_end(context, "tlb.levels", rc, &own, err);
    tlb_report_count(context, &levels, unclear);
    for (size_t i = 0; i < levels.count && !rc; i++)
        rc = report_level(context, &levels, i, &found[i], err);
    return rc;
}

const struct probe probe_tlb = {
    .description = {"tlb", "TLBs: levels, entries, ways, span, reach, penalty", PROFILE_FULL},
    .metrics = {"tlb.levels", "tlb.*"},
    .last = true, /* it takes all memory */
    .run = tlb_run,
};
