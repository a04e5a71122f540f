/* What can be told of the structure of L2: index, policy and prefetch. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/caches/l2_capacity.h"
#include "probes/caches/replacement.h"
#include "probes/method/chase.h"
#include "probes/probe.h"

enum l2_index_kind {
    L2_INDEX_UNKNOWN,
    L2_INDEX_REGULAR,     /* lines some power of two apart evict each other */
    L2_INDEX_NOT_BY_BITS, /* lines any power of two apart stay, as any other lines do */
    L2_INDEX_IRREGULAR,   /* lines some powers of two apart evict each other, but not as by bits */
};

struct l2_index {
    enum l2_index_kind kind;
    uint64_t stride_bytes; /* regular: the smallest; not by bits: the largest */
    uint64_t lines;        /* that were loaded at each stride */
    uint32_t n;            /* timed loads */
};

/* An area is filled, more is filled, then the area is timed. */
enum l2_policy_pattern {
    L2_POLICY_PLAIN, /* the area is loaded once */
    L2_POLICY_AGAIN, /* once more before the new lines come */
    L2_POLICY_OFTEN, /* several times, and so much comes that LRU keeps nothing of it */
    L2_POLICY_PATTERNS
};

struct l2_policy {
    enum replacement_policy policy;
    double kept[L2_POLICY_PATTERNS]; /* share of the area that is still there */
    uint32_t timed_loads;            /* of the last pattern; the others have about as many */
};

enum l2_prefetch_kind {
    L2_PREFETCH_NONE,
    L2_PREFETCH_FOUND,
    L2_PREFETCH_BEYOND,    /* no miss after it began: ahead_bytes is the least that it can be */
    L2_PREFETCH_IRREGULAR, /* loads hit, but the misses between them are not evenly apart */
};

struct l2_prefetch {
    enum l2_prefetch_kind kind;
    uint64_t ahead_bytes;     /* that a miss brings beyond its own fetch unit */
    uint64_t from_bytes;      /* loaded in order before the first load that hits */
    uint64_t footprint_bytes; /* loaded in order */
    double hit_share;         /* of all first loads */
    double agreement;         /* share of the distances between misses that say the same; NONE: of
                               * the loads that missed */
    uint32_t n;               /* loads */
};

/* Whether lines a power of two apart share few sets of L2.
 *
 * Few lines, far apart: L2 holds them many times over. If bits of the address choose the set, lines
 * some power of two apart fall into few sets and evict each other. Lines nearly as far apart, but
 * not quite, use all sets; they are the control, for TLBs as well. */

enum {
    LINES_MAX = 4096,
    LINES_MIN = 16,
    FEWER = 16, /* of the lines that L2 holds, one in so many is loaded */
    WARM_PASSES = 2,
    STRIDES_MAX = 32,
    BEYOND = 4, /* the largest stride passes that at which sets run out by this factor */
};

/* Physical addresses are those of the program within a page: larger strides say nothing. */
static const uint64_t STRIDE_MAX_BYTES = 2 << 20;

/* Shares of misses: of the control, of lines that evict each other, of lines that stay. Share of
 * the lines that stay where nearly none does. */
static const double CONTROL = 0.1, CONFLICT = 0.5, STAY = 0.25, GONE = 0.1;

static struct device_job stride_job(const struct l2_study *l2, uint64_t lines, uint64_t stride)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CG, .size_bytes = lines * stride, .stride_bytes = stride};
    struct device_job job = chase_job();
    job.agents[0].sm = l2->part_sms[0];
    chase_add(&job, DEVICE_WARM, &array, WARM_PASSES * lines);
    chase_add(&job, DEVICE_CHASE, &array, lines);
    return job;
}

/* Strides from two lines on; each has its control behind it. */
static size_t list_jobs(struct probe_context *context, const struct l2_study *l2, uint64_t lines,
                        struct device_job jobs[2 * STRIDES_MAX], uint64_t strides[STRIDES_MAX])
{
    uint64_t room = device_limits(context->device)->global_bytes / 2;
    size_t count = 0;
    for (uint64_t stride = 2 * l2->line_bytes; stride <= STRIDE_MAX_BYTES && count < STRIDES_MAX;
         stride *= 2) {
        if (room && lines * (stride + l2->line_bytes) > room)
            break;
        strides[count] = stride;
        jobs[2 * count] = stride_job(l2, lines, stride);
        jobs[2 * count + 1] = stride_job(l2, lines, stride + l2->line_bytes);
        count++;
    }
    return count;
}

/* If bits of the address choose the set, each doubling of the stride halves the sets: soon no line
 * stays. A hash may have strides that suit it badly, at which some lines stay: then nothing is
 * said. */
static void l2_index_judge(const struct l2_study *l2, const struct device_answer *answers,
                           const uint64_t *strides, size_t count, struct l2_index *index)
{
    double held = l2->near_bytes / (double)l2->line_bytes;
    double enough = BEYOND * held / (double)index->lines * (double)l2->line_bytes;
    uint64_t first_conflict = 0;
    bool stays = true, looked = false, gone = true; /* at strides far beyond the first conflict */
    for (size_t i = 0; i < count; i++) {
        const struct l2_shares apart = l2_shares_of(l2, &answers[2 * i], 1, 0);
        const struct l2_shares control = l2_shares_of(l2, &answers[2 * i + 1], 1, 0);
        index->n += apart.n;
        if (1 - control.resident > CONTROL)
            continue;
        index->stride_bytes = strides[i];
        stays = stays && 1 - apart.resident < STAY;
        if (!first_conflict && 1 - apart.resident > CONFLICT)
            first_conflict = strides[i];
        if (first_conflict && strides[i] >= BEYOND * first_conflict) {
            looked = true;
            gone = gone && apart.resident < GONE;
        }
    }
    if (looked && gone) {
        index->kind = L2_INDEX_REGULAR;
        index->stride_bytes = first_conflict;
    } else if (first_conflict) {
        index->kind = looked ? L2_INDEX_IRREGULAR : L2_INDEX_UNKNOWN;
    } else if (stays && (double)index->stride_bytes >= enough) {
        index->kind = L2_INDEX_NOT_BY_BITS;
    }
}

/* The study must have its line and its capacity. */
static int l2_measure_index(struct probe_context *context, const struct l2_study *l2,
                            struct l2_index *out_index, struct err *err)
{
    struct device_job jobs[2 * STRIDES_MAX];
    uint64_t strides[STRIDES_MAX];
    struct device_answer *answers;
    struct l2_index index = {.lines = (uint64_t)(l2->near_bytes / (double)l2->line_bytes) / FEWER};
    index.lines = index.lines < LINES_MAX ? index.lines : LINES_MAX;
    size_t count = index.lines < LINES_MIN ? 0 : list_jobs(context, l2, index.lines, jobs, strides);
    if (count) {
        int rc = chase_run(context, jobs, 2 * count, 1, &answers, err);
        if (rc)
            return rc;
        l2_index_judge(l2, answers, strides, count, &index);
        chase_free(answers, 2 * count);
    }
    *out_index = index;
    return 0;
}

/* Which lines of L2 go when new ones come.
 *
 * Sets of L2 cannot be overflowed one by one, since its size is not known to the line. But an area
 * of a fifth of it is kept or lost as a whole: LRU keeps what was used last, FIFO what came last,
 * and a policy without regard to age loses a known share. */

enum {
    JOBS_MAX = 16,
    LOADS = 512,      /* of each pattern, at least */
    SAMPLE_PART = 64, /* one job times at most one line in so many, since misses evict */
    SAMPLE_MIN = 16,
    OFTEN = 3,
};

/* Shares of the capacity: the area, what is filled with it, and what is filled afterwards. */
static const double AREA = 0.2, FIRST = 0.8, MORE = 0.5, MORE_OFTEN = 1.6;

/* What is kept may differ by this much from what a policy keeps. */
static const double TOLERANCE = 0.1;

struct area {
    uint64_t line, area_lines, first_lines, more_lines;
    uint64_t spacing;
};

static struct device_array lines_of(const struct area *a, uint64_t from, uint64_t count)
{
    return (struct device_array){.path = DEVICE_GLOBAL_CG,
                                 .offset_bytes = from * a->line,
                                 .size_bytes = count * a->line,
                                 .stride_bytes = a->line};
}

/* The last line is timed first: a miss evicts one that was timed already, or is gone anyway. */
static void l2_policy_add_sample(const struct area *a, uint64_t shift, struct device_job *job)
{
    uint64_t first = shift % a->spacing, count = (a->area_lines - 1 - first) / a->spacing + 1;
    const struct device_array sample = {.path = DEVICE_GLOBAL_CG,
                                        .offset_bytes = first * a->line,
                                        .size_bytes = count * a->spacing * a->line,
                                        .stride_bytes = a->spacing * a->line,
                                        .order = DEVICE_DESCENDING};
    chase_add(job, DEVICE_CHASE, &sample, 0)->start = count - 1;
}

static struct device_job l2_policy_pattern_job(struct probe_context *context,
                                               const struct l2_study *l2, const struct area *a,
                                               enum l2_policy_pattern pattern)
{
    struct device_job job = chase_job();
    const struct device_array first = lines_of(a, 0, a->first_lines);
    const struct device_array area = lines_of(a, 0, a->area_lines);
    const struct device_array more = lines_of(a, a->first_lines, a->more_lines);
    size_t again = pattern == L2_POLICY_AGAIN ? 1 : 0;
    job.cold_l2 = true;
    job.agents[0].sm = l2->part_sms[0];
    if (pattern != L2_POLICY_OFTEN)
        chase_add(&job, DEVICE_FILL, &first, 0);
    for (size_t i = 0; i < (pattern == L2_POLICY_OFTEN ? OFTEN : again); i++)
        chase_add(&job, DEVICE_FILL, &area, 0);
    chase_add(&job, DEVICE_FILL, &more, 0);
    l2_policy_add_sample(a, probe_seed(context) >> 1, &job);
    return job;
}

/* In OFTEN nothing is filled but the area before the new lines come. */
static struct area area_of(const struct l2_study *l2, enum l2_policy_pattern pattern)
{
    double lines = l2->near_bytes / (double)l2->line_bytes;
    struct area a = {.line = l2->line_bytes, .area_lines = (uint64_t)(AREA * lines)};
    a.first_lines = pattern == L2_POLICY_OFTEN ? a.area_lines : (uint64_t)(FIRST * lines);
    a.more_lines = (uint64_t)((pattern == L2_POLICY_OFTEN ? MORE_OFTEN : MORE) * lines);
    uint64_t count = a.area_lines / SAMPLE_PART;
    count = count > SAMPLE_MIN ? count : SAMPLE_MIN;
    a.spacing = a.area_lines / count | 1; /* odd: powers of two could meet few sets */
    return a;
}

static int l2_policy_look_at(struct probe_context *context, const struct l2_study *l2,
                             enum l2_policy_pattern pattern, struct l2_policy *policy,
                             struct err *err)
{
    const struct area a = area_of(l2, pattern);
    struct device_job jobs[JOBS_MAX];
    struct device_answer *answers;
    size_t count = (size_t)(LOADS * a.spacing / a.area_lines) + 1;
    count = count < JOBS_MAX ? count : JOBS_MAX;
    for (size_t i = 0; i < count; i++)
        jobs[i] = l2_policy_pattern_job(context, l2, &a, pattern);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (rc)
        return rc;
    const struct l2_shares shares = l2_shares_of(l2, answers, count, 0);
    policy->kept[pattern] = shares.resident;
    policy->timed_loads = shares.n;
    chase_free(answers, count);
    return 0;
}

/* What of the area is kept if new lines replace any line of a set of so many ways: after as many
 * misses as `beyond` times the capacity. */
static double kept_at_random(double beyond, uint32_t ways)
{
    return portable_pow(1 - 1.0 / ways, beyond * ways);
}

/* The largest difference from what a policy keeps of the area. */
static double l2_policy_distance(const struct l2_policy *policy, const double *kept)
{
    double most = 0;
    for (size_t i = 0; i < L2_POLICY_PATTERNS; i++)
        most = fmax(most, fabs(policy->kept[i] - kept[i]));
    return most;
}

static bool is_random(const struct l2_policy *policy)
{
    static const uint32_t ways[] = {2, 3, 4, 8, 16, 1024};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        double once = kept_at_random(FIRST + MORE - 1, ways[i]);
        const double kept[] = {once, once, kept_at_random(AREA + MORE_OFTEN - 1, ways[i])};
        if (l2_policy_distance(policy, kept) < TOLERANCE)
            return true;
    }
    return false;
}

/* The policy that explains what is kept. */
static void l2_judge_policy(struct l2_policy *policy)
{
    static const double lru[] = {0, 1, 0}, fifo[] = {0, 0, 0};
    policy->policy = l2_policy_distance(policy, lru) < TOLERANCE    ? REPLACEMENT_LRU
                     : l2_policy_distance(policy, fifo) < TOLERANCE ? REPLACEMENT_FIFO
                     : is_random(policy)                            ? REPLACEMENT_RANDOM
                                                                    : REPLACEMENT_NOT_LRU;
}

/* The study must have its line and its capacity. */
static int l2_measure_policy(struct probe_context *context, const struct l2_study *l2,
                             struct l2_policy *out_policy, struct err *err)
{
    struct l2_policy policy = {0};
    for (size_t i = 0; i < L2_POLICY_PATTERNS; i++) {
        int rc = l2_policy_look_at(context, l2, (enum l2_policy_pattern)i, &policy, err);
        if (rc)
            return rc;
    }
    l2_judge_policy(&policy);
    *out_policy = policy;
    return 0;
}

enum { L2_STRUCTURE_REASON_MAX = 120 };

/* Both rest on few patterns: they say what kind it is, not each detail. */
static const double CONFIDENCE = 0.95, DOUBTED = 0.5;

static const char *const METRICS[] = {"l2.index", "l2.policy"};

/* The share that stays depends on the capacity: if that is in doubt, so is what follows. */
static void l2_structure_settle(struct probe_context *context, struct measure *m, uint32_t n)
{
    const struct measure *size = measures_get(context->measures, "l2.size");
    bool sure = size && size->status == MEASURE_OK;
    m->n = n;
    m->confidence = sure ? CONFIDENCE : DOUBTED;
    if (!sure)
        measure_set_status(m, MEASURE_NOISY, "the size of L2 is not certain");
}

static int l2_structure_report_index(struct probe_context *context, struct err *err)
{
    struct l2_index index;
    int rc = l2_measure_index(context, &context->l2, &index, err);
    if (rc)
        return rc;
    if (index.kind == L2_INDEX_UNKNOWN || index.kind == L2_INDEX_IRREGULAR) {
        measures_add_missing(context->measures, "l2.index", MEASURE_FAILED,
                             index.kind == L2_INDEX_UNKNOWN
                                 ? "strides that could tell do not stay apart from those that are "
                                   "their control"
                                 : "lines some powers of two apart evict each other, but not all "
                                   "do at larger ones");
        return 0;
    }
    const char *word = index.kind == L2_INDEX_REGULAR ? "regular" : "not_by_bits";
    l2_structure_settle(context,
                        measures_add_words(context->measures, "l2.index", &word, 1,
                                           "few lines a power of two apart"),
                        index.n);
    return 0;
}

/* What is kept as under LRU is kept by nothing else. What is kept as under no known policy may come
 * from sets of few ways, which fill unevenly; and parts that keep lines twice have less room than
 * their size, so that LRU loses what FIFO would. */
static bool may_be_lru(const struct probe_context *context, const struct l2_policy *policy)
{
    const struct measure *parts = measures_get(context->measures, "l2.parts");
    bool one = parts && parts->status == MEASURE_OK && parts->value == 1;
    return policy->policy == REPLACEMENT_NOT_LRU || (policy->policy != REPLACEMENT_LRU && !one);
}

static int l2_structure_report_policy(struct probe_context *context, struct err *err)
{
    struct l2_policy policy;
    int rc = l2_measure_policy(context, &context->l2, &policy, err);
    if (rc)
        return rc;
    const char *word = replacement_name(policy.policy);
    struct measure *m = measures_add_words(context->measures, "l2.policy", &word, 1,
                                           "what is kept of an area, used again or not");
    l2_structure_settle(context, m, policy.timed_loads);
    if (may_be_lru(context, &policy)) {
        char reason[L2_STRUCTURE_REASON_MAX];
        snprintf(
            reason, sizeof reason,
            "%.0f, %.0f and %.0f %% of an area stay: not LRU, or few ways, or lines kept twice",
            100 * policy.kept[L2_POLICY_PLAIN], 100 * policy.kept[L2_POLICY_AGAIN],
            100 * policy.kept[L2_POLICY_OFTEN]);
        m->confidence = DOUBTED;
        measure_set_status(m, MEASURE_NOISY, reason);
    }
    return 0;
}

static int run_l2_structure(struct probe_context *context, struct err *err)
{
    const struct l2_study *l2 = &context->l2;
    int rc = l2_reach(context, L2_LINE, err);
    if (rc)
        return rc;
    if (l2->unbounded || !l2->line_bytes) {
        for (size_t i = 0; i < COUNT_OF(METRICS); i++)
            measures_add_missing(context->measures, METRICS[i], MEASURE_FAILED,
                                 l2->unbounded ? "L2 could not be overfilled"
                                               : "the line is not known");
        return rc;
    }
    rc = l2_structure_report_index(context, err);
    return rc ? rc : l2_structure_report_policy(context, err);
}

const struct probe probe_structure_l2 = {
    .description = {"structure.l2", "index and policy of L2", PROFILE_FULL},
    .depends = {"l2.size"},
    .metrics = {"l2.index", "l2.policy"},
    .run = run_l2_structure,
};

/* The prefetch of L2, by the misses of a cold chase in ascending order ([M] 4.6).
 *
 * Each fetch unit is loaded once. Without a prefetch every load misses. With one the first loads
 * miss, then one load per prefetched stretch. The chase is made three times in different memory. A
 * load hits if it did so twice, and misses for certain if it did so three times: a stray latency,
 * or the first load of a page, is slow at another place each time. */

enum {
    JOB_LOADS = 2048, /* every latency of a job is kept */
    CHASES = 3,
    HIT_MISSES_MAX = 1,
    RUN_LOADS = 16, /* as many loads decide whether the prefetch has begun */
    RUN_HITS = 6,   /* less than half of them, which a prefetch of one unit gives */
};

/* A prefetch that reaches further is only known to reach so far. [M] found two thirds of L2. */
static const uint64_t FOOTPRINT_MAX_BYTES = 8 << 20, FOOTPRINT_MIN_BYTES = 1 << 20;

/* A smaller share of hits is noise. */
static const double HITS_MIN = 0.02;

/* If fewer of the distances between misses agree, there is no pattern. */
static const double AGREEMENT_MIN = 0.6;

/* Distance between the chases beyond their length, so that pages begin at other loads in each. */
static const uint64_t SHIFT_BYTES = 160 << 10;

static uint64_t count_units(const struct probe_context *context, const struct l2_study *l2)
{
    uint64_t bytes = 2 * device_limits(context->device)->l2_reported_bytes;
    bytes = bytes < FOOTPRINT_MIN_BYTES ? FOOTPRINT_MIN_BYTES : bytes;
    bytes = bytes > FOOTPRINT_MAX_BYTES ? FOOTPRINT_MAX_BYTES : bytes;
    uint64_t jobs = bytes / l2->fetch_bytes / JOB_LOADS;
    return (jobs ? jobs : 1) * JOB_LOADS;
}

/* Adds 1 to each unit that missed. The jobs load one stretch after the other; only the first one
 * finds L2 flushed. */
static int chase_units(struct probe_context *context, const struct l2_study *l2, uint64_t units,
                       uint8_t *misses, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CG,
        .offset_bytes = probe_fresh(context, units * l2->fetch_bytes + SHIFT_BYTES),
        .size_bytes = units * l2->fetch_bytes,
        .stride_bytes = l2->fetch_bytes};
    size_t count = units / JOB_LOADS;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers = NULL;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = chase_job();
        jobs[i].cold_l2 = i == 0;
        if (i) /* the TLBs of the SM may be empty when a job begins */
            chase_add(&jobs[i], DEVICE_WARM, &array, 1)->start = i * JOB_LOADS - 1;
        struct device_step *step = chase_add(&jobs[i], DEVICE_CHASE, &array, JOB_LOADS);
        step->start = i * JOB_LOADS;
        step->keep = JOB_LOADS;
        step->split_cycles = (uint32_t)l2->miss_threshold;
    }
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    for (size_t i = 0; i < count && !rc; i++)
        for (size_t k = 0; k < answers[i].samples[0].kept_count && k < JOB_LOADS; k++)
            misses[i * JOB_LOADS + k] += answers[i].samples[0].kept[k] > 0;
    if (answers)
        chase_free(answers, count);
    free(jobs);
    return rc;
}

static bool l2_prefetch_is_hit(const uint8_t *misses, uint64_t unit)
{
    return misses[unit] <= HIT_MISSES_MAX;
}

/* The first of many hits; `units`: there is none. */
static uint64_t find_begin(const uint8_t *misses, uint64_t units)
{
    for (uint64_t i = 0; i + RUN_LOADS <= units; i++) {
        uint32_t hits = 0;
        for (uint64_t k = 0; k < RUN_LOADS; k++)
            hits += l2_prefetch_is_hit(misses, i + k);
        if (l2_prefetch_is_hit(misses, i) && hits >= RUN_HITS)
            return i;
    }
    return units;
}

/* The most frequent distance between two misses from `begin` on, except of neighbours: a stream
 * that is found anew begins with a few of these. 0: there are not two misses. */
static void find_distance(const uint8_t *misses, uint64_t begin, uint64_t units,
                          uint64_t *out_distance, double *out_agreement)
{
    uint32_t *counts = mem_array(units + 1, sizeof *counts), all = 0;
    uint64_t last = units, best = 0;
    for (uint64_t i = begin; i < units; i++) {
        if (misses[i] < CHASES)
            continue;
        if (last < units && i - last > 1) {
            all++;
            counts[i - last]++;
            if (counts[i - last] > counts[best])
                best = i - last;
        }
        last = i;
    }
    *out_distance = best;
    *out_agreement = all ? (double)counts[best] / all : 1;
    free(counts);
}

static void l2_prefetch_analyse(const struct l2_study *l2, const uint8_t *misses, uint64_t units,
                                struct l2_prefetch *found)
{
    uint64_t hits = 0, begin = find_begin(misses, units), distance = 0;
    for (uint64_t i = 0; i < units; i++)
        hits += l2_prefetch_is_hit(misses, i);
    found->hit_share = (double)hits / (double)units;
    found->from_bytes = begin * l2->fetch_bytes;
    if (found->hit_share < HITS_MIN) {
        found->kind = L2_PREFETCH_NONE;
        found->agreement = 1 - found->hit_share;
        found->from_bytes = 0;
        return;
    }
    /* The last miss before the hits brought the first of them. */
    uint64_t first = begin ? begin - 1 : 0;
    find_distance(misses, first, units, &distance, &found->agreement);
    found->kind = begin == units || found->agreement < AGREEMENT_MIN ? L2_PREFETCH_IRREGULAR
                  : distance                                         ? L2_PREFETCH_FOUND
                                                                     : L2_PREFETCH_BEYOND;
    found->ahead_bytes = ((distance ? distance : units - begin + 1) - 1) * l2->fetch_bytes;
}

/* After the stage L2_FETCH. */
static int l2_measure_prefetch(struct probe_context *context, const struct l2_study *l2,
                               struct l2_prefetch *out_prefetch, struct err *err)
{
    uint64_t units = count_units(context, l2);
    struct l2_prefetch found = {.footprint_bytes = units * l2->fetch_bytes,
                                .n = (uint32_t)(CHASES * units)};
    uint8_t *misses = mem_array(units, sizeof *misses);
    int rc = 0;
    for (size_t i = 0; i < CHASES && !rc; i++)
        rc = chase_units(context, l2, units, misses, err);
    if (!rc)
        l2_prefetch_analyse(l2, misses, units, &found);
    free(misses);
    if (!rc)
        *out_prefetch = found;
    return rc;
}

enum { L2_PREFETCH_REASON_MAX = 160 };

static const char METHOD[] = "cold chase in ascending order, distance between misses";

static void report_bytes(struct probe_context *context, const char *metric, uint64_t bytes,
                         bool at_least, const struct l2_prefetch *found)
{
    struct measure *m = measures_add(context->measures, metric, (double)bytes, "B", METHOD);
    m->bound = at_least ? MEASURE_AT_LEAST : MEASURE_EXACT;
    m->n = found->n;
    m->confidence = found->agreement;
    facts_set_int(&m->notes, "footprint", (int64_t)found->footprint_bytes);
}

static int run_prefetch(struct probe_context *context, struct err *err)
{
    struct l2_prefetch found = {0};
    int rc = l2_reach(context, L2_FETCH, err);
    if (rc)
        return rc;
    rc = l2_measure_prefetch(context, &context->l2, &found, err);
    if (rc)
        return rc;
    if (found.kind == L2_PREFETCH_IRREGULAR) {
        char reason[L2_PREFETCH_REASON_MAX];
        snprintf(reason, sizeof reason,
                 "%.0f %% of first loads in ascending order hit, but misses are not evenly apart",
                 100 * found.hit_share);
        measures_add_missing(context->measures, "l2.prefetch", MEASURE_FAILED, reason);
        measures_add_missing(context->measures, "l2.prefetch_from", MEASURE_FAILED, reason);
        return 0;
    }
    report_bytes(context, "l2.prefetch", found.ahead_bytes, found.kind == L2_PREFETCH_BEYOND,
                 &found);
    if (found.kind == L2_PREFETCH_NONE) {
        measures_add_missing(context->measures, "l2.prefetch_from", MEASURE_UNSUPPORTED,
                             "L2 does not prefetch from main memory");
        return 0;
    }
    report_bytes(context, "l2.prefetch_from", found.from_bytes, false, &found);
    return 0;
}

const struct probe probe_l2_prefetch = {
    .description = {"l2.prefetch", "prefetch from main memory into L2", PROFILE_FULL},
    .depends = {"l2.line"},
    .metrics = {"l2.prefetch", "l2.prefetch_from"},
    .run = run_prefetch,
};
