/* Chases over pages: one line of each page, all of them in L2, so that only the TLBs change. */
#include "probes/tlb/page_chase.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/sort.h"
#include "probes/method/chase.h"

enum {
    L2_BYTES_EACH = 512, /* bytes of L2 per line: lines stay in L2, whatever their sets */
    LINES_MIN = 1024,    /* of one figure, on different places of L2 */
    JOBS_MIN = 3,
    JOBS_MAX = 48,
    LINES_FEW = 4 * JOBS_MAX, /* of one, two and three pages, so that their error is that of four */
    APART_BYTES = 512,        /* of two lines in a page: beyond the reach of a fetch */
    TIMED_MIN = 96,           /* loads of a job */
    FEW_PAGES = 128,          /* are warmed several times: not every TLB takes a page at once */
    FEW_PASSES = 6,
    DRIFTS = PAGE_CHASE_DRIFT_LINES / 2,
};

static uint64_t page_chase_at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Only a job that reaches far shows whether all memory is to be had. */
static int try_reach(struct probe_context *context, uint64_t bytes, struct err *err)
{
    const struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                       .offset_bytes = bytes - 2 * PAGE_CHASE_LINE_BYTES,
                                       .size_bytes = PAGE_CHASE_LINE_BYTES,
                                       .stride_bytes = PAGE_CHASE_LINE_BYTES};
    struct device_job job = chase_job();
    struct device_answer *answers;
    chase_add(&job, DEVICE_CHASE, &array, 0);
    int rc = chase_run(context, &job, 1, 1, &answers, err);
    if (rc)
        return rc;
    chase_free(answers, 1);
    return 0;
}

int page_chase_open(struct probe_context *context, struct page_chase *out_chase, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    uint64_t room = limits->global_bytes;
    struct err own = {0};
    if (limits->wide_bytes > room) {
        int rc = try_reach(context, limits->wide_bytes, &own);
        if (!rc)
            room = limits->wide_bytes;
        else if (rc != -EBUSY)
            return err_set(err, rc, "%s", own.text);
    }
    if (!room || !limits->l2_reported_bytes)
        return err_set(err, -ENOTSUP, "the size of the memory or of L2 is not known");
    *out_chase =
        (struct page_chase){.room_bytes = room,
                            .pages_max = page_chase_at_most(
                                limits->l2_reported_bytes / L2_BYTES_EACH, PAGE_CHASE_PAGES_MAX)};
    return 0;
}

uint64_t page_chase_room(const struct page_chase *chase, uint64_t stride)
{
    uint64_t step = stride + PAGE_CHASE_DRIFT_LINES * PAGE_CHASE_LINE_BYTES;
    uint64_t room = chase->room_bytes / step;
    return room > 1 ? room - 1 : 0;
}

uint64_t page_chase_stride(const struct page_chase *chase, uint64_t pages)
{
    static const uint64_t sizes[] = {2 << 20, 64 << 10, 4 << 10};
    uint64_t most =
        chase->room_bytes / (pages + 1) - PAGE_CHASE_DRIFT_LINES * PAGE_CHASE_LINE_BYTES;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (most >= 3 * sizes[i]) {
            uint64_t prime = most / sizes[i];
            while (!number_is_prime(prime))
                prime--;
            return prime * sizes[i];
        }
    return most / (2 * PAGE_CHASE_LINE_BYTES) * 2 * PAGE_CHASE_LINE_BYTES;
}

struct device_array page_chase_array(uint64_t stride, uint64_t pages, uint64_t number)
{
    uint64_t drift = (1 + 2 * (number % DRIFTS)) * PAGE_CHASE_LINE_BYTES;
    /* The drift must not add up to a page. */
    uint64_t step = stride + (pages * drift < stride ? drift : PAGE_CHASE_LINE_BYTES);
    return (struct device_array){.path = DEVICE_GLOBAL_CG,
                                 .offset_bytes = number * APART_BYTES % stride,
                                 .size_bytes = pages * step,
                                 .stride_bytes = step};
}

static double mean_error(const struct pool *pool, double mean, double lines)
{
    double sum = 0;
    for (uint32_t bin = 0; bin < DEVICE_BIN_COUNT; bin++) {
        double off = pool->counts[bin] ? device_bin_cycles(bin) - mean : 0;
        sum += (double)pool->counts[bin] * off * off;
    }
    return sqrt(sum / (double)pool->all / lines);
}

static int compare_means(const void *a, const void *b)
{
    double x = chase_mean(&((const struct device_answer *)a)->samples[0]);
    double y = chase_mean(&((const struct device_answer *)b)->samples[0]);
    return (x > y) - (x < y);
}

/* The middle half of the jobs: in some, many lines may fall into one set of L2 and miss there. */
static void take_middle(struct device_answer *answers, size_t count, uint64_t pages,
                        struct page_cycles *out_cycles)
{
    size_t from = (count + 1) / 4, to = count - from;
    sort_stable(answers, count, sizeof *answers, compare_means);
    *out_cycles = (struct page_cycles){0};
    for (size_t i = from; i < to; i++)
        pool_add(&out_cycles->loads, &answers[i].samples[0]);
    out_cycles->mean = pool_mean(&out_cycles->loads);
    out_cycles->error =
        mean_error(&out_cycles->loads, out_cycles->mean, (double)((to - from) * pages));
}

int page_chase_measure(struct probe_context *context, uint64_t stride, uint64_t pages,
                       struct page_cycles *out_cycles, struct err *err)
{
    struct device_job jobs[LINES_FEW] = {0};
    struct device_answer *answers;
    size_t count = page_chase_at_most(LINES_MIN / pages + JOBS_MIN,
                                      pages < LINES_FEW / JOBS_MAX ? LINES_FEW / pages : JOBS_MAX);
    uint64_t passes = (TIMED_MIN + pages - 1) / pages;
    for (size_t i = 0; i < count; i++) {
        struct device_array array = page_chase_array(stride, pages, i);
        jobs[i] = chase_job();
        jobs[i].agents[0].sm = 0;
        chase_add(&jobs[i], DEVICE_WARM, &array, pages < FEW_PAGES ? FEW_PASSES * pages : 0);
        chase_add(&jobs[i], DEVICE_CHASE, &array, passes * pages);
    }
    int rc = chase_run(context, jobs, count, 1, &answers, err);
    if (rc)
        return rc;
    take_middle(answers, count, pages, out_cycles);
    chase_free(answers, count);
    return 0;
}
