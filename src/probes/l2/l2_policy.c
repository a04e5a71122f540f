/* Which lines of L2 go when new ones come.
 *
 * Sets of L2 cannot be overflowed one by one, since its size is not known to the line. But an area
 * of a fifth of it is kept or lost as a whole: LRU keeps what was used last, FIFO what came last,
 * and a policy without regard to age loses a known share. */
#include "probes/l2/l2_policy.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probes/l2/l2_look.h"
#include "probes/method/chase.h"

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
static void add_sample(const struct area *a, uint64_t shift, struct device_job *job)
{
    uint64_t first = shift % a->spacing, count = (a->area_lines - 1 - first) / a->spacing + 1;
    const struct device_array sample = {.path = DEVICE_GLOBAL_CG,
                                        .offset_bytes = first * a->line,
                                        .size_bytes = count * a->spacing * a->line,
                                        .stride_bytes = a->spacing * a->line,
                                        .order = DEVICE_DESCENDING};
    chase_add(job, DEVICE_CHASE, &sample, 0)->start = count - 1;
}

static struct device_job pattern_job(struct probe_context *context, const struct l2_study *l2,
                                     const struct area *a, enum l2_policy_pattern pattern)
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
    add_sample(a, probe_seed(context) >> 1, &job);
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

static int look_at(struct probe_context *context, const struct l2_study *l2,
                   enum l2_policy_pattern pattern, struct l2_policy *policy, struct err *err)
{
    const struct area a = area_of(l2, pattern);
    struct device_job jobs[JOBS_MAX];
    struct device_answer *answers;
    size_t count = (size_t)(LOADS * a.spacing / a.area_lines) + 1;
    count = count < JOBS_MAX ? count : JOBS_MAX;
    for (size_t i = 0; i < count; i++)
        jobs[i] = pattern_job(context, l2, &a, pattern);
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (rc)
        return rc;
    const struct l2_shares shares = l2_shares_of(l2, answers, count, 0);
    policy->kept[pattern] = shares.resident;
    policy->timed_loads = shares.n;
    device_answers_fini(answers, count);
    free(answers);
    return 0;
}

/* What of the area is kept if new lines replace any line of a set of so many ways: after as many
 * misses as `beyond` times the capacity. */
static double kept_at_random(double beyond, uint32_t ways)
{
    return pow(1 - 1.0 / ways, beyond * ways);
}

/* The largest difference from what a policy keeps of the area. */
static double distance(const struct l2_policy *policy, const double *kept)
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
        if (distance(policy, kept) < TOLERANCE)
            return true;
    }
    return false;
}

void l2_judge_policy(struct l2_policy *policy)
{
    static const double lru[] = {0, 1, 0}, fifo[] = {0, 0, 0};
    policy->policy = distance(policy, lru) < TOLERANCE    ? REPLACEMENT_LRU
                     : distance(policy, fifo) < TOLERANCE ? REPLACEMENT_FIFO
                     : is_random(policy)                  ? REPLACEMENT_RANDOM
                                                          : REPLACEMENT_NOT_LRU;
}

int l2_measure_policy(struct probe_context *context, const struct l2_study *l2,
                      struct l2_policy *out_policy, struct err *err)
{
    struct l2_policy policy = {0};
    for (size_t i = 0; i < L2_POLICY_PATTERNS; i++) {
        int rc = look_at(context, l2, (enum l2_policy_pattern)i, &policy, err);
        if (rc)
            return rc;
    }
    l2_judge_policy(&policy);
    *out_policy = policy;
    return 0;
}
