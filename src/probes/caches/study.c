/* The stages of a cache's study: how many SMs may measure at once, the fetch unit, the region of
 * the size, and the capacity. */
#include "probes/caches/study.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/caches/fetch.h"
#include "probes/caches/level.h"
#include "probes/caches/line.h"
#include "probes/caches/resident.h"
#include "probes/caches/sweep.h"
#include "probes/method/chase.h"

/* Checks whether spreading jobs over all SMs changes what is measured: SMs may share more than
 * L2. */

enum {
    SIZES = 8,  /* doubling; the largest ends with the path's memory or the search */
    SPARSE = 4, /* one load per this many fetch units: the check needs no detail */
    JOBS_MAX = 256,
    REPEATS = 3,
    LOADS_MIN = 128,
    SHARED_LINES = 8, /* that one SM loads and another one times: any cache holds them */
};

/* A size fits if its miss share alone is at most FITS; with other jobs it must stay below DISTURBED
 * on every SM. Sizes that do not fit vary too much under a random policy. */
static const double FITS = 0.02, DISTURBED = 0.12;

/* Fewer misses than this of lines that another SM loaded: both share the cache. */
static const double SHARED = 0.5;

/* Larger arrays are no test: they overflow the cache of every SM anyway. */
static const uint64_t LARGEST_BYTES = 256 * 1024;

static struct device_job interference_make_job(const struct study *study, size_t number)
{
    uint64_t largest = study->limit_bytes < LARGEST_BYTES ? study->limit_bytes : LARGEST_BYTES;
    uint64_t size = largest >> (number % SIZES), stride = SPARSE * study->fetch_bytes;
    const struct device_array array = {
        .path = study->path, .size_bytes = size > stride ? size : stride, .stride_bytes = stride};
    return chase_twice(&array, LOADS_MIN);
}

/* The largest miss share of each size, with this many jobs in flight. */
static int interference_measure(struct probe_context *context, const struct study *study,
                                size_t count, uint32_t at_once, double *out_shares, struct err *err)
{
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++)
        jobs[i] = interference_make_job(study, i);
    int rc = chase_run(context, jobs, count, at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t size = 0; size < SIZES; size++) {
        double worst = 0;
        for (size_t i = size; i < count; i += SIZES)
            worst = fmax(worst, chase_share_above(&answers[i].samples[0], study->threshold));
        out_shares[size] = worst;
    }
    chase_free(answers, count);
    return 0;
}

/* Sets at_once: with it, sizes measured on several SMs at once look as they do alone. */
static int study_choose_at_once(struct probe_context *context, struct study *study, struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    double alone[SIZES], together[SIZES];
    int rc = interference_measure(context, study, REPEATS * SIZES, 1, alone, err);
    for (uint32_t at_once = sms; !rc && at_once > 1; at_once /= 2) {
        size_t least = REPEATS * SIZES, count = at_once < JOBS_MAX ? at_once : JOBS_MAX;
        bool same = true;
        rc = interference_measure(context, study, count < least ? least : count, at_once, together,
                                  err);
        for (size_t i = 0; i < SIZES && !rc; i++)
            same = same && (alone[i] > study->stray_share + FITS ||
                            together[i] < study->stray_share + DISTURBED);
        if (same) {
            study->at_once = at_once == sms ? 0 : at_once;
            return rc;
        }
    }
    study->at_once = 1;
    return rc;
}

/* SM 0 loads some lines, then another SM times them: from L2, unless both share the cache. */
static struct device_job shared_job(const struct study *study, uint32_t sm)
{
    const struct device_array array = {.path = study->path,
                                       .size_bytes = SHARED_LINES * study->line_bytes,
                                       .stride_bytes = study->line_bytes};
    struct device_job job = chase_job();
    job.agents[0].sm = 0;
    job.agents[1].sm = (int32_t)sm;
    job.agent_count = 2;
    job.shared_bytes = study->shared_bytes;
    chase_add(&job, DEVICE_WARM, &array, 0);
    chase_add(&job, DEVICE_CHASE, &array, 0)->agent = 1;
    return job;
}

int study_find_sharing(struct probe_context *context, const struct study *study, bool *out_shared,
                       struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    struct device_job *jobs = sms > 1 ? mem_array(sms - 1, sizeof *jobs) : NULL;
    struct device_answer *answers;
    bool shared = false;
    *out_shared = false;
    if (sms < 2)
        return 0;
    for (uint32_t sm = 1; sm < sms; sm++)
        jobs[sm - 1] = shared_job(study, sm);
    int rc = chase_run(context, jobs, sms - 1, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (uint32_t i = 0; i + 1 < sms; i++)
        shared |= chase_share_above(&answers[i].samples[0], study->threshold) < SHARED;
    chase_free(answers, sms - 1);
    *out_shared = shared;
    return 0;
}

/* The capacity of a cache: how much stays resident of an array that is touched once per line. */

/* A count of lines whose standard error is below this is rounded. */
static const double SNAP_LINES = 0.12;

/* Wanted standard errors, as shares of the value: well within the 2 % by which a size may be
 * wrong. */
static const double SIZE_PRECISION = 0.003, QUICK_PRECISION = 0.0056;

/* How much stays resident of an array that is touched once per line, or more often if the line is
 * not certain. */
static int measure_capacity(struct probe_context *context, const struct study *study,
                            double precision, double *out_bytes, double *out_error, uint32_t *out_n,
                            struct err *err)
{
    double touch = (double)study->touch_bytes, fetch = (double)study->fetch_bytes;
    double line = (double)(study->line_bytes ? study->line_bytes : study->guess_bytes);
    struct line_observation o = {.units = study->touch_bytes / study->fetch_bytes};
    double elements = RESIDENT_OVERSIZE * study->resident_bytes / touch;
    if (!study->line_bytes)
        elements = resident_whole(elements, o.units);
    int rc = resident_overflow(context, study, elements, study->touch_bytes, line / touch,
                               precision, &o.layout, &o.share, err);
    if (rc)
        return rc;
    double bytes = line_span_of(&o, (struct line_hypothesis){line / fetch, false}, 0).units * fetch;
    double error = o.share.error * (double)o.layout.elements;
    /* No cache holds half a line: a count of lines that is this certain is a whole number. */
    bool snap = error < SNAP_LINES && study->touch_bytes == study->line_bytes;
    *out_bytes = snap ? round(bytes / line) * line : bytes;
    *out_error = error * touch;
    *out_n = o.share.n;
    return 0;
}

/* Stage STUDY_RESIDENT: resident_bytes, line_bytes and touch_bytes of the study. */
static int study_measure_resident(struct probe_context *context, struct study *study,
                                  struct err *err)
{
    int rc = line_measure(context, study, err);
    if (rc)
        return rc;
    return measure_capacity(context, study, SIZE_PRECISION, &study->resident_bytes,
                            &study->resident_error, &study->resident_n, err);
}

int study_capacity_again(struct probe_context *context, const struct study *study, double precision,
                         double *out_bytes, double *out_error, struct err *err)
{
    uint32_t n;
    return measure_capacity(context, study, precision, out_bytes, out_error, &n, err);
}

int study_capacity_quick(struct probe_context *context, struct study *study, double *out_bytes,
                         double *out_error, struct err *err)
{
    int rc = study->touch_bytes ? 0 : line_guess(context, study, err);
    uint32_t n;
    if (rc)
        return rc;
    return measure_capacity(context, study, QUICK_PRECISION, out_bytes, out_error, &n, err);
}

enum {
    WORD_BYTES = 8, /* the smallest stride: chases follow stored 64-bit pointers */
    FETCH_JOBS = 4,
    FETCH_BYTES = 16 * 1024, /* chased word by word, cold */
    REGION_ROUND = 16,       /* sizes per round of the narrowing search */
    REGION_ROUNDS = 2,
    REGION_QUICK = 5, /* sizes of the only round: the resident share needs no smaller region */
    FLOOR_FACTOR = 2, /* constant L1.5: arrays of this many times L1 */
};

/* The search by doubling ends here: no L1 of any GPU is this large. */
static const uint64_t REGION_MAX_BYTES = 4 * 1024 * 1024;

/* A size does not fit if more than this share of its loads misses, without strays. */
static const double OVER_SHARE = 0.02;

/* Of the loads of an array that constant L1.5 is said to hold, so many must have passed L1. */
static const double PASSED_MIN = 0.9;

/* A cold chase word by word misses once per fetch unit. The memory is already in L2, so that all
 * misses are alike: earlier launches brought constant memory there, a first pass past the cache
 * global memory. */
static struct device_job fetch_job(const struct probe_context *context, const struct study *study)
{
    const struct device_array words = {
        .path = study->path, .size_bytes = FETCH_BYTES, .stride_bytes = WORD_BYTES};
    struct device_array before = words;
    struct device_job job = chase_job();
    before.path = DEVICE_GLOBAL_CG;
    if (study->path == DEVICE_CONSTANT)
        level_prime_constant(context, &job, 0);
    else
        chase_add(&job, DEVICE_WARM, &before, 0);
    chase_add(&job, DEVICE_CHASE, &words, 0)->keep = FETCH_BYTES / WORD_BYTES;
    return job;
}

static int measure_fetch(struct probe_context *context, struct study *study, struct err *err)
{
    enum { WORDS = FETCH_BYTES / WORD_BYTES, UNIT_MAX_BYTES = 1024 };
    uint32_t misses[WORDS] = {0};
    struct device_job jobs[FETCH_JOBS];
    for (size_t i = 0; i < FETCH_JOBS; i++)
        jobs[i] = fetch_job(context, study);
    struct device_answer *answers;
    int rc = chase_run(context, jobs, FETCH_JOBS, 1, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < FETCH_JOBS; i++)
        for (size_t k = 0; k < WORDS && k < answers[i].samples[0].kept_count; k++)
            misses[k] += answers[i].samples[0].kept[k] > study->threshold;
    chase_free(answers, FETCH_JOBS);
    const struct fetch_row row = {
        .stride_bytes = WORD_BYTES, .loads = WORDS, .passes = FETCH_JOBS, .misses = misses};
    const struct fetch_unit unit = fetch_judge(&row, 1, FETCH_IN_ORDER, WORD_BYTES, UNIT_MAX_BYTES);
    study->fetch_contrast = unit.contrast;
    if (unit.bytes)
        study->fetch_bytes = unit.bytes;
    if (study->fetch_contrast < FETCH_CLEAR)
        return err_set(err, -ENODATA, "a word-by-word chase shows no regular misses");
    return 0;
}

/* Doubling (thesis 3.2): all powers of two in a group of octaves at once, one size per SM. */
static int search_octave(struct probe_context *context, struct study *study, double limit,
                         struct err *err)
{
    enum { GROUP = 6 };
    bool behind = study->id == STUDY_CONSTANT_L15;
    const struct study *before = behind ? &context->studies[STUDY_CONSTANT_L1] : NULL;
    double passed[GROUP];
    size_t last = 0;
    uint64_t highest = study->limit_bytes / study->fetch_bytes * study->fetch_bytes;
    uint64_t size = study->floor_bytes ? study->floor_bytes : 4 * study->fetch_bytes;
    study->region_low_bytes = study->floor_bytes ? study->floor_bytes / 2 : study->fetch_bytes;
    for (bool more = true; more;) {
        uint64_t sizes[GROUP];
        double shares[GROUP];
        size_t count = 0;
        for (; count < GROUP && more; size *= 2) {
            more = size < highest; /* the last size is the largest possible */
            sizes[count++] = more ? size : highest;
        }
        int rc = sweep_sizes_behind(context, study, sizes, count, study->fetch_bytes, before,
                                    shares, passed, err);
        if (rc)
            return rc;
        size_t over = sweep_first_over(shares, count, limit);
        last = count - 1;
        if (over > 0)
            study->region_low_bytes = sizes[over - 1];
        if (over < count) {
            study->region_high_bytes = sizes[over];
            return 0;
        }
    }
    study->region_high_bytes = study->region_low_bytes;
    study->unbounded = true;
    study->hidden = behind && passed[last] < PASSED_MIN;
    return 0;
}

/* The binary search of the thesis, but with as many parts as a round has sizes. */
static int narrow_region(struct probe_context *context, struct study *study, double limit,
                         struct err *err)
{
    bool quick = context->options->profile == PROFILE_QUICK;
    for (int round = 0; round < (quick ? 1 : REGION_ROUNDS); round++) {
        uint64_t unit = study->fetch_bytes;
        uint64_t units = (study->region_high_bytes - study->region_low_bytes) / unit;
        uint64_t sizes[REGION_ROUND];
        double shares[REGION_ROUND];
        size_t most = quick ? REGION_QUICK : REGION_ROUND;
        size_t count = units - 1 < most ? (size_t)(units - 1) : most;
        if (units < 2)
            break;
        for (size_t i = 0; i < count; i++)
            sizes[i] = study->region_low_bytes + (i + 1) * units / (count + 1) * unit;
        int rc = sweep_sizes(context, study, sizes, count, unit, shares, err);
        if (rc)
            return rc;
        size_t over = sweep_first_over(shares, count, limit);
        if (over < count)
            study->region_high_bytes = sizes[over];
        if (over > 0)
            study->region_low_bytes = sizes[over - 1];
    }
    return 0;
}

static int measure_region(struct probe_context *context, struct study *study, struct err *err)
{
    double limit = study->stray_share + OVER_SHARE;
    int rc = search_octave(context, study, limit, err);
    return rc || study->unbounded ? rc : narrow_region(context, study, limit, err);
}

static void study_init(struct probe_context *context, enum study_id id, struct study *study)
{
    static const enum device_path paths[] = {
        [STUDY_L1_DATA] = DEVICE_GLOBAL_CA,     [STUDY_TEXTURE] = DEVICE_TEXTURE,
        [STUDY_READ_ONLY] = DEVICE_READ_ONLY,   [STUDY_CONSTANT_L1] = DEVICE_CONSTANT,
        [STUDY_CONSTANT_L15] = DEVICE_CONSTANT,
    };
    const struct device_limits *limits = device_limits(context->device);
    study->id = id;
    study->path = paths[id];
    study->limit_bytes = study->path == DEVICE_CONSTANT ? limits->constant_bytes : REGION_MAX_BYTES;
    study->loads_are_expensive = limits->loads_max != 0;
}

const char *study_name(enum study_id id)
{
    static const char *const names[] = {
        [STUDY_L1_DATA] = "l1_data",           [STUDY_TEXTURE] = "texture",
        [STUDY_READ_ONLY] = "read_only",       [STUDY_CONSTANT_L1] = "constant_l1",
        [STUDY_CONSTANT_L15] = "constant_l15",
    };
    return names[id];
}

/* Sizes of L1.5 are searched above what constant L1 can hold. */
static int set_floor(struct probe_context *context, struct study *study, struct err *err)
{
    const struct study *before = &context->studies[STUDY_CONSTANT_L1];
    int rc = study_reach(context, STUDY_CONSTANT_L1, STUDY_REGION, err);
    if (rc)
        return rc;
    study->floor_bytes =
        FLOOR_FACTOR * before->region_high_bytes / study->fetch_bytes * study->fetch_bytes;
    return 0;
}

static int measure_level(struct probe_context *context, struct study *study, struct err *err)
{
    struct err own = {0};
    int rc;
    if (study->id == STUDY_CONSTANT_L1)
        rc = level_measure_constant(context, &own);
    else if (study->id == STUDY_CONSTANT_L15) /* measured together with L1 */
        rc = study_reach(context, STUDY_CONSTANT_L1, STUDY_LEVEL, &own);
    else
        rc = level_measure_global(context, study, &own);
    if (rc == -ENOTSUP) { /* the GPU has no such path: a result, not an error */
        study->supported = false;
        return 0;
    }
    if (rc)
        *err = own;
    return rc;
}

static int measure_region_stage(struct probe_context *context, struct study *study, struct err *err)
{
    int rc = 0;
    if (study->id == STUDY_CONSTANT_L15) {
        rc = set_floor(context, study, err);
        if (rc)
            return rc;
        study->at_once = 1; /* SMs share it, and all load the same memory */
    } else if (!study->alone) {
        rc = study_choose_at_once(context, study, err);
        if (rc)
            return rc;
    }
    return measure_region(context, study, err);
}

static int measure_stage(struct probe_context *context, struct study *study, enum study_stage stage,
                         struct err *err)
{
    switch (stage) {
    case STUDY_LEVEL:
        return measure_level(context, study, err);
    case STUDY_FETCH:
        return measure_fetch(context, study, err);
    case STUDY_REGION:
        return measure_region_stage(context, study, err);
    case STUDY_RESIDENT:
        return study_measure_resident(context, study, err);
    default:
        return 0;
    }
}

int study_reach(struct probe_context *context, enum study_id id, enum study_stage stage,
                struct err *err)
{
    struct study *study = &context->studies[id];
    if (study->stage == STUDY_NOTHING)
        study_init(context, id, study);
    while (study->stage < stage) {
        bool ended = (study->stage >= STUDY_LEVEL && !study->supported) ||
                     (study->stage >= STUDY_REGION && study->unbounded);
        if (ended)
            return 0;
        int rc = measure_stage(context, study, study->stage + 1, err);
        if (rc)
            return rc;
        study->stage++;
    }
    return 0;
}

void study_begin_alone(struct study *study)
{
    study->stage = STUDY_FETCH;
    study->at_once = 1;
    study->alone = true;
    study->unbounded = false;
    study->touch_bytes = 0;
}
