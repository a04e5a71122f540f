/* Sets and ways of the tags of a cache, from lines scattered at random.
 *
 * A cache may have tags for more lines than data: Hopper's L1 has tags for all of the memory that
 * it shares with shared memory. Then no single line overflows a set. But of lines drawn at random
 * some sets get more than they have ways, long before the data is full, and how many lines these
 * are depends on the number of sets and of ways only. */
#include "probes/caches/tag_scatter.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/caches/miss_counts.h"
#include "probes/method/chase.h"

enum {
    JOBS = 128, /* of each number of lines: each draws others */
    REGION = 4, /* lines of the region, at least, for each one that the cache holds */
    WAYS_MAX = 32,
    LINES_MIN = 32,
    STRIDES = 3,
    STEADY_JOBS = 32,
    STEADY_LINES = 640, /* two chases of a job are timed */
    STEADY_MISSES = 50,
};

_Static_assert((int)STEADY_LINES <= (int)DEVICE_KEEP_SEVERAL,
               "every latency of both chases is kept");

/* Numbers of lines as shares of what the cache holds. */
static const double SHARES[TAG_SCATTER_COUNTS] = {0.125, 0.25, 0.375, 0.5, 0.625, 0.75};

/* There are tags for up to so many times what the cache holds. */
static const double TAGS_MOST = 2.5;

/* The best fit must explain the points; others must be worse by DISTINCT. Sets within ALIKE of the
 * best are as good. All in chi-squared. */
static const double FITS = 24, DISTINCT = 12, ALIKE = 6;

/* Strays are known within this part, and a share within LEAST_ERROR. Shares are expected, and sets
 * known, within SPREAD_ERROR: hashing does not spread lines quite as chance does. */
static const double STRAY_ERROR = 0.2, LEAST_ERROR = 3e-4, SPREAD_ERROR = 0.02;

/* Of lines that miss in one pass so many miss in the next one as well, unless chance evicts. */
static const double STEADY = 0.9;

/* Shares of misses of lines that share a set, and of lines that do not. */
static const double CONFLICT = 0.9, APART = 0.1;

double tag_scatter_share(uint64_t region, uint64_t lines, uint64_t sets, uint64_t ways)
{
    double all = (double)region - 1, same = (double)region / (double)sets - 1;
    double drawn = (double)lines - 1, none = 0, chance, below = 0;
    if (same <= 0 || drawn <= 0)
        return 0;
    /* Hypergeometric: of the other lines drawn, `k` are in the same set. */
    none = portable_lgamma(all - same + 1) - portable_lgamma(all - same - drawn + 1) -
           portable_lgamma(all + 1) + portable_lgamma(all - drawn + 1);
    chance = portable_exp(none);
    for (uint64_t k = 0; k < ways; k++) {
        below += chance;
        chance *= (same - (double)k) * (drawn - (double)k) / ((double)k + 1) /
                  (all - same - drawn + (double)k + 1);
        chance = fmax(chance, 0);
    }
    return fmax(1 - below, 0);
}

static double misfit(uint64_t region, const struct tag_scatter_point *points, uint64_t sets,
                     uint64_t ways)
{
    double sum = 0;
    for (size_t i = 0; i < TAG_SCATTER_COUNTS; i++) {
        double expected = tag_scatter_share(region, points[i].lines, sets, ways);
        double chance = sqrt((double)ways * expected / (double)(points[i].lines * JOBS));
        double error =
            portable_hypot(portable_hypot(points[i].error, chance), SPREAD_ERROR * expected);
        sum += square((points[i].share - expected) / error);
    }
    return sum;
}

/* The best number of sets for this number of ways. */
static double best_sets(uint64_t region, uint64_t lines, const struct tag_scatter_point *points,
                        uint64_t ways, uint64_t *out_sets)
{
    double best = INFINITY;
    uint64_t most = (uint64_t)(TAGS_MOST * (double)lines / (double)ways);
    for (uint64_t sets = lines * 9 / 10 / ways; sets <= most; sets++) {
        double own = sets > 1 ? misfit(region, points, sets, ways) : INFINITY;
        if (own < best) {
            best = own;
            *out_sets = sets;
        }
    }
    return best;
}

void tag_scatter_fit(uint64_t region, uint64_t lines,
                     const struct tag_scatter_point points[TAG_SCATTER_COUNTS],
                     struct tag_scatter *out_scatter)
{
    double best = INFINITY, second = INFINITY;
    struct tag_scatter found = {0};
    for (uint64_t ways = 1; ways <= WAYS_MAX && ways < lines; ways++) {
        uint64_t sets = 0;
        double own = best_sets(region, lines, points, ways, &sets);
        if (own < best) {
            second = best;
            best = own;
            found.ways = ways;
            found.sets = sets;
        } else {
            second = fmin(second, own);
        }
    }
    found.told = best < FITS && second > best + DISTINCT;
    found.sets_least = found.sets_most = found.sets;
    while (found.told && found.sets_least > 2 &&
           misfit(region, points, found.sets_least - 1, found.ways) < best + ALIKE)
        found.sets_least--;
    while (found.told && misfit(region, points, found.sets_most + 1, found.ways) < best + ALIKE)
        found.sets_most++;
    found.sets_least -= (uint64_t)(SPREAD_ERROR * (double)found.sets_least);
    found.sets_most += (uint64_t)(SPREAD_ERROR * (double)found.sets_most);
    uint64_t power = 1;
    while (power < found.sets_least)
        power *= 2;
    found.exact = found.told && power <= found.sets_most && 2 * power > found.sets_most;
    found.sets = found.exact ? power : found.sets;
    *out_scatter = found;
}

uint64_t tag_scatter_region(const struct study *study)
{
    uint64_t region = 1;
    while ((2 * region + 1) * study->line_bytes <= study->limit_bytes)
        region *= 2;
    return region;
}

struct device_array tag_scatter_lines(struct probe_context *context, const struct study *study)
{
    return (struct device_array){.path = study->path,
                                 .size_bytes = tag_scatter_region(study) * study->line_bytes,
                                 .stride_bytes = study->line_bytes,
                                 .order = DEVICE_RANDOM,
                                 .seed = probe_seed(context)};
}

struct device_array tag_scatter_other(const struct study *study)
{
    return (struct device_array){.path = study->path,
                                 .offset_bytes = tag_scatter_region(study) * study->line_bytes,
                                 .size_bytes = study->line_bytes,
                                 .stride_bytes = study->line_bytes};
}

/* Loads the same lines three times, and times the last pass. */
static struct device_job share_job(struct probe_context *context, const struct study *study,
                                   uint64_t lines)
{
    const struct device_array array = tag_scatter_lines(context, study);
    const struct device_array other = tag_scatter_other(study);
    struct device_job job = miss_counts_job(study);
    chase_add(&job, DEVICE_WARM, &array, lines);
    chase_add(&job, DEVICE_WARM, &other, 0);
    chase_add(&job, DEVICE_WARM, &array, lines);
    chase_add(&job, DEVICE_WARM, &other, 0);
    chase_add(&job, DEVICE_CHASE, &array, lines);
    return job;
}

/* The same, and keeps which lines missed in the last two passes: of many lines the first ones. */
static struct device_job steady_job(struct probe_context *context, const struct study *study,
                                    uint64_t lines)
{
    const struct device_array array = tag_scatter_lines(context, study);
    const struct device_array other = tag_scatter_other(study);
    struct device_job job = miss_counts_job(study);
    uint64_t timed = lines < STEADY_LINES ? lines : STEADY_LINES;
    chase_add(&job, DEVICE_WARM, &array, lines);
    chase_add(&job, DEVICE_WARM, &other, 0);
    miss_counts_time(&job, study, &array, timed);
    if (lines > timed) /* continues behind the timed ones */
        chase_add(&job, DEVICE_WARM, &array, lines - timed);
    chase_add(&job, DEVICE_WARM, &other, 0);
    miss_counts_time(&job, study, &array, timed);
    return job;
}

static double missed_share(const struct study *study, const struct device_answer *answer)
{
    double seen = chase_share_above(&answer->samples[0], study->threshold);
    return (seen - study->stray_share) / (1 - study->stray_share - study->slip_share);
}

static struct tag_scatter_point point_of(const struct study *study, uint64_t lines,
                                         const struct device_answer *answers)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < JOBS; i++) {
        double share = missed_share(study, &answers[i]);
        sum += share;
        squares += share * share;
    }
    double mean = sum / JOBS, scatter = fmax(squares / JOBS - mean * mean, 0);
    double least = LEAST_ERROR + STRAY_ERROR * study->stray_share;
    return (struct tag_scatter_point){lines, mean,
                                      portable_hypot(sqrt(scatter / (JOBS - 1)), least)};
}

static int look_at_points(struct probe_context *context, const struct study *study, uint64_t held,
                          struct tag_scatter_point points[TAG_SCATTER_COUNTS], uint32_t *out_n,
                          struct err *err)
{
    const size_t count = (size_t)TAG_SCATTER_COUNTS * JOBS;
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t lines = (uint64_t)(SHARES[i / JOBS] * (double)held);
        jobs[i] = share_job(context, study, lines);
        n += (uint32_t)lines;
    }
    int rc = chase_run(context, jobs, count, study->at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    for (size_t i = 0; i < TAG_SCATTER_COUNTS; i++)
        points[i] = point_of(study, (uint64_t)(SHARES[i] * (double)held), &answers[i * JOBS]);
    chase_free(answers, count);
    *out_n = n;
    return 0;
}

/* Lines that missed in one pass, without strays, and those of them that missed in the next one. */
struct steadiness {
    double missed, again;
};

static int count_steady(struct probe_context *context, const struct study *study, uint64_t lines,
                        struct steadiness *out, struct err *err)
{
    struct device_job jobs[STEADY_JOBS];
    struct device_answer *answers;
    *out = (struct steadiness){0};
    for (size_t i = 0; i < STEADY_JOBS; i++)
        jobs[i] = steady_job(context, study, lines);
    int rc = chase_run(context, jobs, STEADY_JOBS, study->at_once, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < STEADY_JOBS; i++) {
        const struct device_sample *first = &answers[i].samples[0], *second = first + 1;
        for (uint32_t k = 0; k < first->kept_count && k < second->kept_count; k++) {
            out->missed += (first->kept[k] > 0) - study->stray_share;
            out->again += first->kept[k] > 0 && second->kept[k] > 0;
        }
    }
    chase_free(answers, STEADY_JOBS);
    return 0;
}

/* Whether the same lines miss in each pass. If chance evicts, fewer miss than the fit expects. Few
 * lines overflow sets of few ways only: if they do not, more lines are loaded. */
static int look_steady(struct probe_context *context, const struct study *study, uint64_t most,
                       bool *out_steady, struct err *err)
{
    struct steadiness seen;
    int rc = count_steady(context, study, most < STEADY_LINES ? most : STEADY_LINES, &seen, err);
    if (!rc && seen.missed <= STEADY_MISSES && most > STEADY_LINES)
        rc = count_steady(context, study, most, &seen, err);
    if (!rc)
        *out_steady = seen.missed > STEADY_MISSES && seen.again > STEADY * seen.missed;
    return rc;
}

/* Lines as far apart as there are sets, or some powers of two times as far: if they share a set,
 * twice as many as it has ways evict each other. */
static int look_at_strides(struct probe_context *context, const struct study *study,
                           struct tag_scatter *scatter, bool *out_clear, struct err *err)
{
    struct device_job jobs[STRIDES];
    struct device_answer *answers;
    size_t count = 0, conflicts = 0, apart = 0;
    *out_clear = false;
    for (uint64_t far = 1; count < STRIDES; far *= 2) {
        uint64_t stride = scatter->sets * far * study->line_bytes, lines = 2 * scatter->ways;
        if (lines * stride > study->limit_bytes)
            break;
        const struct device_array array = {
            .path = study->path, .size_bytes = lines * stride, .stride_bytes = stride};
        jobs[count] = miss_counts_job(study);
        chase_add(&jobs[count], DEVICE_WARM, &array, 3 * lines);
        chase_add(&jobs[count++], DEVICE_CHASE, &array, 64 * lines);
    }
    int rc = count ? chase_run(context, jobs, count, study->at_once, &answers, err) : 0;
    if (rc || !count)
        return rc;
    for (size_t i = 0; i < count; i++) {
        conflicts += missed_share(study, &answers[i]) > CONFLICT;
        apart += missed_share(study, &answers[i]) < APART;
    }
    chase_free(answers, count);
    scatter->regular = conflicts == count;
    *out_clear = conflicts == count || apart == count;
    return 0;
}

int tag_scatter_measure(struct probe_context *context, const struct study *study,
                        struct tag_scatter *out_scatter, struct err *err)
{
    struct tag_scatter_point points[TAG_SCATTER_COUNTS];
    uint64_t held = (uint64_t)(study->resident_bytes / (double)study->line_bytes);
    uint64_t region = tag_scatter_region(study);
    uint32_t n = 0;
    bool steady = false, clear = false;
    *out_scatter = (struct tag_scatter){0};
    uint64_t most = (uint64_t)(SHARES[TAG_SCATTER_COUNTS - 1] * (double)held);
    if (held < LINES_MIN || region < REGION * held || study->id == STUDY_CONSTANT_L15)
        return 0;
    int rc = look_at_points(context, study, held, points, &n, err);
    if (rc)
        return rc;
    tag_scatter_fit(region, held, points, out_scatter);
    out_scatter->n = n;
    if (!out_scatter->told)
        return 0;
    rc = look_steady(context, study, most, &steady, err);
    if (!rc && steady)
        rc = look_at_strides(context, study, out_scatter, &clear, err);
    out_scatter->told = steady && clear;
    return rc;
}
