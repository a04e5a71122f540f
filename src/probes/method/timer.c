/* How many cycles the timing of a single load adds, by path.
 *
 * One element is loaded repeatedly: first each load is timed by itself, then a chain of loads is
 * timed as a whole. The difference per load is what the clock reads add. It differs by path, since
 * a part of a clock read overlaps with the load. Every SM is compared with itself: SMs are not
 * equally far from a slice of L2. */
#include "probes/method/timer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/portable_math.h"
#include "probes/method/chase.h"
#include "probes/method/pool.h"

enum {
    ELEMENT_BYTES = 64,
    JOBS_MIN = 16, /* enough for quiet GPUs */
    JOBS_MAX = 4096,
    PAIRS = 2, /* short and long chains per job */
    SINGLE_LOADS = 96,
};

/* Lengths of the two chains. They are shorter if loads scatter, so that spikes are not hidden in
 * the scatter. */
struct lengths {
    uint32_t shorter, longer;
};

static const struct lengths QUIET = {16, 64}, SCATTERED = {4, 20};

/* Wanted standard error in cycles. */
static const double PRECISION = 0.12;

/* If loads scatter by more, the shorter chains are used. */
static const double SCATTERED_CYCLES = 8;

/* Standard error of one job, relative to the scatter of single loads. */
static const double QUIET_ERROR = 0.25, SCATTERED_ERROR = 0.5;

struct timing {
    double overhead;
    double sigma; /* scatter of single loads */
};

/* A chain counts by its time less that of as many single loads of the same job. */
static void timer_settle(const struct device_answer *answers, size_t jobs, struct lengths lengths,
                         struct timing *out_timing)
{
    double *shorter = mem_array(2 * PAIRS * jobs, sizeof *shorter),
           *longer = shorter + PAIRS * jobs;
    struct pool *pool = mem_array(1, sizeof *pool);
    double spikes = 0, sigma = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct device_sample *samples = answers[i].samples;
        *pool = (struct pool){0};
        pool_add(pool, &samples[0]);
        const struct pool_centre centre = pool_centre(pool);
        double single = centre.cycles;
        spikes += centre.spike_share / (double)jobs;
        /* Scatter of the readings: the step of a coarse timer scatters more than the loads. */
        double scatter = centre.step > 0 ? centre.error * sqrt((double)SINGLE_LOADS) : centre.sigma;
        sigma += scatter / (double)jobs;
        for (size_t p = 0; p < PAIRS; p++) {
            const struct device_sample *pair = &samples[1 + 2 * p];
            shorter[i * PAIRS + p] = (double)pair[0].total_cycles - lengths.shorter * single;
            longer[i * PAIRS + p] = (double)pair[1].total_cycles - lengths.longer * single;
        }
    }
    double more = chase_undisturbed(longer, PAIRS * jobs, lengths.longer, spikes) -
                  chase_undisturbed(shorter, PAIRS * jobs, lengths.shorter, spikes);
    *out_timing = (struct timing){-more / (lengths.longer - lengths.shorter), sigma};
    free(shorter);
    free(pool);
}

static int time_path(struct probe_context *context, enum device_path path, size_t count,
                     struct lengths lengths, struct timing *out_timing, struct err *err)
{
    const struct device_array array = {
        .path = path, .size_bytes = ELEMENT_BYTES, .stride_bytes = ELEMENT_BYTES};
    struct device_job *jobs = mem_array(count, sizeof *jobs);
    struct device_answer *answers;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = chase_twice(&array, SINGLE_LOADS);
        for (size_t p = 0; p < PAIRS; p++) {
            chase_add(&jobs[i], DEVICE_AVERAGE, &array, lengths.shorter);
            chase_add(&jobs[i], DEVICE_AVERAGE, &array, lengths.longer);
        }
    }
    /* SMs that load the same line of L2 at once delay each other. */
    uint32_t at_once = path == DEVICE_GLOBAL_CG ? 1 : 0;
    int rc = chase_run(context, jobs, count, at_once, &answers, err);
    free(jobs);
    if (rc)
        return rc;
    timer_settle(answers, count, lengths, out_timing);
    chase_free(answers, count);
    return rc;
}

/* Measures once more if loads scatter. The error is sigma over the square root of the jobs, times a
 * factor that was found by simulation with random loads and spikes. */
static int calibrate_path(struct probe_context *context, enum device_path path,
                          double *out_overhead, struct err *err)
{
    struct timing timing = {0};
    int rc = time_path(context, path, JOBS_MIN, QUIET, &timing, err);
    bool scattered = timing.sigma > SCATTERED_CYCLES;
    double error = (scattered ? SCATTERED_ERROR : QUIET_ERROR) * timing.sigma;
    double jobs = square(error / PRECISION);
    if (rc)
        return rc;
    *out_overhead = timing.overhead;
    if (jobs <= JOBS_MIN)
        return 0;
    rc = time_path(context, path, (size_t)fmin(jobs, JOBS_MAX), scattered ? SCATTERED : QUIET,
                   &timing, err);
    if (!rc)
        *out_overhead = timing.overhead;
    return rc;
}

int timer_calibrate(struct probe_context *context, struct err *err)
{
    /* For host memory .cg stands in: the SM treats its loads alike, and host loads scatter too
     * much. */
    static const enum device_path paths[] = {DEVICE_GLOBAL_CG, DEVICE_GLOBAL_CA, DEVICE_READ_ONLY,
                                             DEVICE_TEXTURE,   DEVICE_CONSTANT,  DEVICE_SHARED};
    double *overheads = context->timer_overheads;
    double all = device_limits(context->device)->timer_overhead_cycles;
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
        overheads[i] = all;
    probe_begin(context, "timer", 0);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct err own = {0};
        int rc = calibrate_path(context, paths[i], &overheads[paths[i]], &own);
        if (rc == -EIO) {
            *err = own;
            return rc;
        }
        if (rc) /* the GPU does not have this path, or the record ends */
            overheads[paths[i]] = overheads[DEVICE_GLOBAL_CG];
    }
    overheads[DEVICE_HOST] = overheads[DEVICE_GLOBAL_CG];
    return 0;
}

double timer_overhead(const struct probe_context *context, enum device_path path)
{
    return context->timer_overheads[path];
}
