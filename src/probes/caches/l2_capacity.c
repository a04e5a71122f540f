/* Fills L2 with an array and times a sample of it; and from that, how much of an oversized array L2
 * keeps, and its line. */
#include "probes/caches/l2_capacity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/portable_math.h"
#include "cpd/cpd.h"
#include "probes/method/chase.h"

/* Fills L2 with an array and times a sample of it.
 *
 * The elements of the sample are evenly spaced, so that consecutive loads share pages and the TLBs
 * cost little. The last element is timed first: a miss brings a line in and evicts an older one,
 * which was timed already or is gone anyway. */

enum {
    JOBS_MAX = 1024,
    COUNT_MIN = 4,  /* the least number of elements that a job times */
    ERROR_JOBS = 8, /* fewer jobs do not show how they scatter */
};

/* A part of the array, in elements: every `spacing`-th of the first `window`. Each job draws its
 * spacing: if it were close to a multiple of the number of sets, the sample would lie in few sets,
 * where each miss evicts the element that is timed next. */
struct sample {
    uint64_t window, spacing_min;
    size_t jobs;
};

static struct sample make_sample(const struct l2_look *look)
{
    uint64_t elements = look->sizes[0] / look->stride_bytes, most = elements / look->part;
    struct sample sample = {.window = (uint64_t)(look->window * (double)elements), .jobs = 1};
    sample.window = sample.window ? sample.window : 1;
    most = most > COUNT_MIN ? most : COUNT_MIN;
    uint64_t count = most < look->loads ? most : look->loads;
    sample.spacing_min = count < sample.window ? sample.window / count : 1;
    /* With a large array one job gives enough loads; filling it is the expensive part. */
    if (most < look->loads) {
        uint64_t jobs = look->loads * sample.spacing_min * 3 / 2 / sample.window + 1;
        sample.jobs = jobs < JOBS_MAX ? (size_t)jobs : JOBS_MAX;
    }
    return sample;
}

static uint64_t draw_spacing(struct probe_context *context, const struct sample *sample)
{
    uint64_t least = sample->spacing_min;
    return least > 1 ? number_prime_from(least + probe_seed(context) % least) : 1;
}

/* Begins at a random one of the first elements, so that all elements of the window are equally
 * likely. */
static struct device_array timed_array(const struct l2_look *look, uint64_t window,
                                       uint64_t spacing, uint64_t shift)
{
    uint64_t first = shift % (spacing < window ? spacing : window);
    uint64_t count = (window - 1 - first) / spacing + 1, stride = spacing * look->stride_bytes;
    return (struct device_array){.path = DEVICE_GLOBAL_CG,
                                 .offset_bytes = first * look->stride_bytes,
                                 .size_bytes = count * stride,
                                 .stride_bytes = stride,
                                 .order = DEVICE_DESCENDING};
}

/* Each size times other elements than the size before. */
static struct device_job l2_look_make_job(struct probe_context *context, const struct l2_look *look,
                                          const struct sample *sample)
{
    struct device_job job = chase_job();
    uint64_t spacing = draw_spacing(context, sample), filled = 0;
    uint64_t shift = probe_seed(context) >> 1;
    job.cold_l2 = true;
    job.agents[0].sm = look->sm;
    for (size_t i = 0; i < look->count; i++) {
        const struct device_array more = {.path = DEVICE_GLOBAL_CG,
                                          .offset_bytes = filled,
                                          .size_bytes = look->sizes[i] - filled,
                                          .stride_bytes = look->stride_bytes};
        const struct device_array timed = timed_array(look, sample->window, spacing, shift + i);
        chase_add(&job, DEVICE_FILL, &more, 0);
        chase_add(&job, DEVICE_CHASE, &timed, 0)->start = timed.size_bytes / timed.stride_bytes - 1;
        filled = look->sizes[i];
    }
    return job;
}

/* The error of misjudged loads is known on average, so it can be corrected. */
static double l2_look_correct(double seen, double stray, double slip)
{
    double share = (seen - stray) / (1 - stray - slip);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Standard error of a share: from the scatter of the jobs, or from the number of loads if there are
 * too few jobs. (Evenly spread samples scatter less than their number suggests if lines are evicted
 * in order.) */
static double share_error(const struct device_answer *answers, size_t jobs, size_t size,
                          double threshold)
{
    double sum = 0, squares = 0, loads = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[size];
        double share = chase_share_above(sample, threshold);
        sum += (double)sample->loads * share;
        squares += (double)sample->loads * share * share;
        loads += (double)sample->loads;
    }
    double mean = sum / loads, scatter = fmax(squares / loads - mean * mean, 0);
    return jobs < ERROR_JOBS ? sqrt(mean * (1 - mean) / loads)
                             : fmax(sqrt(scatter / (double)(jobs - 1)), 1 / loads);
}

struct l2_shares l2_shares_of(const struct l2_study *l2, const struct device_answer *answers,
                              size_t jobs, size_t size)
{
    double missed = 0, beyond = 0, far_missed = 0;
    uint64_t loads = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct device_sample *sample = &answers[i].samples[size];
        double weight = (double)sample->loads;
        missed += weight * chase_share_above(sample, l2->miss_threshold);
        beyond += weight * chase_share_above(sample, l2->far_threshold);
        far_missed += weight * chase_share_above(sample, l2->far_miss_threshold);
        loads += sample->loads;
    }
    struct l2_shares shares = {
        .missed = l2_look_correct(missed / (double)loads, l2->hit_stray, l2->miss_slip),
        /* The home of what the near part lacks is any part; only loads that another part serves can
         * be taken for near ones. */
        .beyond_near = l2_look_correct(beyond / (double)loads, l2->near_stray,
                                       l2->far_slip * (1 - 1.0 / l2->parts)),
        .n = (uint32_t)loads,
    };
    shares.far_missed = l2->copies ? far_missed / (double)loads : shares.missed;
    shares.resident = 1 - (l2->copies ? shares.beyond_near : shares.missed);
    shares.error =
        share_error(answers, jobs, size, l2->copies ? l2->far_threshold : l2->miss_threshold);
    return shares;
}

int l2_look(struct probe_context *context, const struct l2_study *l2, const struct l2_look *look,
            struct l2_shares *out_shares, struct err *err)
{
    const struct sample sample = make_sample(look);
    struct device_job *jobs = mem_array(sample.jobs, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < sample.jobs; i++)
        jobs[i] = l2_look_make_job(context, look, &sample);
    int rc = chase_run(context, jobs, sample.jobs, 1, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < look->count; i++)
        out_shares[i] = l2_shares_of(l2, answers, sample.jobs, i);
    chase_free(answers, sample.jobs);
    return 0;
}

/* How much of an oversized array L2 keeps, and its line.
 *
 * The resident elements are counted twice. With one element per fetch unit the count gives bytes.
 * With elements so far apart that each needs its own line it gives tags. Bytes / tags is the
 * line. */

enum {
    CAPACITY_LOADS = 4096,
    CAPACITY_PART = 256, /* a miss of one fetch unit evicts a whole line */
    TAG_LOADS = 4096,
    TAG_PART = 64,
    LINE_EXPECTED_BYTES = 128, /* expected line in the first count of tags */
    TAG_ROUNDS_MAX = 10,
    LOOKS = 5,
    PAGES_MIN = 64,
    PAGES_PART = 4,
    PAGES_LOADS = 1024,
};

/* Array size over the driver's claim, and how far it is doubled while the array still fits. */
static const double OVERSIZE = 1.25, REGION_FACTOR = 8;

static const double REGION_FIRST_BYTES = 1 << 20, REGION_MAX_BYTES = 1 << 30; /* without a claim */

/* A smaller share of misses means that nearly all of the array is resident. An array of more than
 * RETRY times the capacity gives only a coarse value. */
static const double OVERFILLED_SHARE = 0.03, RETRY = 3;

/* The same for tags: elements far apart do not spread quite evenly over the sets. */
static const double TAG_OVERSIZE = 2.5, TAGS_OVERFILLED_SHARE = 0.3, TAGS_FEW_SHARE = 0.1,
                    TAGS_GROWN = 1.06;

/* Elements are a prime number of fetch units apart, so that they use all sets. If the number of
 * sets is a multiple of the prime, the tags seem so few that a line would be longer than the
 * distance, or no whole number of fetch units; then another prime is tried. */
static const uint64_t PRIMES[] = {7, 13, 17, 23, 37, 67, 131, 257};

static const uint64_t TAG_STRIDE_MIN_BYTES = 400;

static const double SHARED_TAGS = 0.82, TOSS_UP = 0.25;

/* The median of several looks, if loads cost next to nothing: it depends on chance how the spacing
 * of a sample meets the hashing of addresses. */
struct resident {
    double share, error; /* 0..1, its standard error */
    uint32_t n;
};

static int resident_share(struct probe_context *context, const struct l2_study *l2, int32_t sm,
                          double elements, uint64_t stride, bool tags,
                          struct resident *out_resident, struct err *err)
{
    const struct l2_look look = {.sizes = {(uint64_t)ceil(elements) * stride},
                                 .count = 1,
                                 .stride_bytes = stride,
                                 .sm = sm,
                                 .window = 1,
                                 .part = tags ? TAG_PART : CAPACITY_PART,
                                 .loads = tags ? TAG_LOADS : CAPACITY_LOADS};
    size_t looks = device_limits(context->device)->loads_max ? 1 : LOOKS;
    double shares[LOOKS], error = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < looks; i++) {
        struct l2_shares found;
        int rc = l2_look(context, l2, &look, &found, err);
        if (rc)
            return rc;
        shares[i] = found.resident;
        error = found.error;
        n += found.n;
    }
    if (looks > 1) /* standard error of a median */
        error = CPD_MEDIAN_ERROR * CPD_MAD_SIGMA * cpd_mad(shares, looks) / sqrt((double)looks);
    *out_resident = (struct resident){cpd_median(shares, looks), error, n};
    return 0;
}

/* The share of loads that look like misses of L2 (with copies: of its near part) although they hit:
 * one line of each page in as much memory as the capacity, or the tags, were counted with. A large
 * share means that a TLB does not reach that far. NaN if there is too little memory for that. */
static int slow_pages(struct probe_context *context, const struct l2_study *l2, double span_bytes,
                      double *out_share, struct err *err)
{
    uint64_t stride = L2_PAGE_MIN_BYTES + l2->fetch_bytes;
    uint64_t room = device_limits(context->device)->global_bytes;
    if (room)
        span_bytes = fmin(span_bytes, (double)room);
    struct l2_look look = {.sizes = {(uint64_t)(span_bytes / (double)stride) * stride},
                           .count = 1,
                           .stride_bytes = stride,
                           .window = 1,
                           .part = PAGES_PART,
                           .loads = PAGES_LOADS};
    struct l2_shares found;
    *out_share = NAN;
    if (look.sizes[0] < PAGES_MIN * stride)
        return 0;
    int rc = l2_look(context, l2, &look, &found, err);
    if (!rc)
        *out_share = 1 - found.resident;
    return rc;
}

/* Bytes that the part near `sm` (without copies: all of L2) keeps of an array larger than itself.
 * claim: about how many are expected. unbounded: no array was larger. */
static int part_capacity(struct probe_context *context, struct l2_study *l2, int32_t sm,
                         double claim, double *out_bytes, double *out_error, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    double fetch = (double)l2->fetch_bytes, most = REGION_FACTOR * claim, size = OVERSIZE * claim;
    if (claim <= 0) {
        most = REGION_MAX_BYTES;
        size = REGION_FIRST_BYTES;
    }
    if (limits->global_bytes)
        most = fmin(most, (double)limits->global_bytes / 2);
    for (bool again = true; again;) {
        struct resident found;
        size = fmin(size, most);
        int rc = resident_share(context, l2, sm, size / fetch, l2->fetch_bytes, false, &found, err);
        if (rc)
            return rc;
        bool fits = found.share > 1 - OVERFILLED_SHARE;
        *out_bytes = fits ? size : found.share * size;
        *out_error = found.error * size;
        l2->resident_n = found.n;
        l2->unbounded = fits && size >= most;
        again = fits ? size < most : size > RETRY * *out_bytes;
        if (*out_bytes < fetch)
            return err_set(err, -ENODATA, "nothing stays resident in L2");
        size = fits ? 2 * size : OVERSIZE * *out_bytes;
    }
    return 0;
}

/* With copies, each part is measured from an SM near it. */
int l2_measure_capacity(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    double claim = (double)device_limits(context->device)->l2_reported_bytes;
    uint32_t parts = l2->copies ? l2->parts : 1;
    int rc =
        part_capacity(context, l2, 0, claim / parts, &l2->near_bytes, &l2->resident_error, err);
    l2->resident_bytes = l2->part_bytes[0] = l2->near_bytes;
    for (uint32_t part = 1; part < parts && !rc && !l2->unbounded; part++) {
        double bytes = 0, error = 0;
        rc = part_capacity(context, l2, l2->part_sms[part], l2->near_bytes, &bytes, &error, err);
        l2->part_bytes[part] = bytes;
        l2->resident_bytes += bytes;
        l2->resident_error = portable_hypot(l2->resident_error, error);
    }
    if (rc || l2->unbounded)
        return rc;
    return slow_pages(context, l2, OVERSIZE * l2->near_bytes, &l2->slow_pages, err);
}

/* Counts tags with elements `stride` apart; `tags` are expected. */
static int count_tags(struct probe_context *context, const struct l2_study *l2, uint64_t stride,
                      double expected, double *out_tags, struct err *err)
{
    double tags = expected, most = INFINITY;
    uint64_t room = device_limits(context->device)->global_bytes;
    if (room)
        most = (double)(room / stride) - 1;
    for (int round = 0; round < TAG_ROUNDS_MAX; round++) {
        double elements = fmin(TAG_OVERSIZE * tags, most);
        struct resident found;
        int rc = resident_share(context, l2, 0, elements, stride, true, &found, err);
        if (rc)
            return rc;
        double share = found.share, before = tags;
        tags = fmax(share * elements, 1);
        /* If nearly all elements are resident, or more than expected, there may be more tags. If
         * hardly any are, the count is coarse. */
        if (share < 1 - TAGS_OVERFILLED_SHARE && share > TAGS_FEW_SHARE &&
            tags < TAGS_GROWN * before)
            break;
        if (elements >= most)
            return err_set(err, -ENODATA, "too little memory to use up the tags of L2");
    }
    *out_tags = tags;
    return 0;
}

/* How far a line is from a whole number of fetch units. */
static double line_distance(const struct l2_study *l2, double line)
{
    double units = line / (double)l2->fetch_bytes;
    return fabs(units - fmax(round(units), 1));
}

int l2_measure_line(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    double fetch = (double)l2->fetch_bytes, doubtful = INFINITY, line = fetch;
    double expected = l2->near_bytes / fmax(fetch, LINE_EXPECTED_BYTES);
    size_t first = 0;
    while (first + 1 < COUNT_OF(PRIMES) && PRIMES[first] * l2->fetch_bytes < TAG_STRIDE_MIN_BYTES)
        first++;
    for (size_t i = first; i < COUNT_OF(PRIMES); i++) {
        uint64_t stride = PRIMES[i] * l2->fetch_bytes;
        double tags = 1;
        int rc = count_tags(context, l2, stride, expected, &tags, err);
        if (rc)
            return rc;
        line = l2->near_bytes / tags;
        l2->stride_bytes = stride;
        l2->tags = tags;
        /* Elements closer than a line share tags: the result is then their distance. */
        if (line > SHARED_TAGS * (double)stride)
            continue;
        if (isfinite(doubtful) || line_distance(l2, line) < TOSS_UP)
            break;
        doubtful = line;
    }
    l2->line_exact = fmin(line, doubtful);
    l2->line_bytes = (uint64_t)fmax(round(l2->line_exact / fetch), 1) * l2->fetch_bytes;
    double span = TAG_OVERSIZE * l2->tags * (double)l2->stride_bytes;
    return slow_pages(context, l2, span, &l2->slow_tag_pages, err);
}

int l2_confirm_line(struct probe_context *context, const struct l2_study *l2,
                    uint64_t *out_line_bytes, struct err *err)
{
    double tags, fetch = (double)l2->fetch_bytes;
    int rc = count_tags(context, l2, l2->stride_bytes, l2->tags, &tags, err);
    if (rc)
        return rc;
    *out_line_bytes = (uint64_t)fmax(round(l2->near_bytes / tags / fetch), 1) * l2->fetch_bytes;
    return 0;
}

int l2_confirm_capacity(struct probe_context *context, const struct l2_study *l2, double *out_bytes,
                        struct err *err)
{
    double fetch = (double)l2->fetch_bytes, size = OVERSIZE * l2->near_bytes, sum = 0;
    struct resident found;
    int rc = 0;
    for (uint32_t part = 0; part < (l2->copies ? l2->parts : 1) && !rc; part++) {
        rc = resident_share(context, l2, l2->part_sms[part], size / fetch, l2->fetch_bytes, false,
                            &found, err);
        sum += rc ? 0 : found.share * size;
    }
    *out_bytes = sum;
    return rc;
}
