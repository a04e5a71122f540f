/* Whether lines a power of two apart share few sets of L2.
 *
 * Few lines, far apart: L2 holds them many times over. If bits of the address choose the set, lines
 * some power of two apart fall into few sets and evict each other. Lines nearly as far apart, but
 * not quite, use all sets; they are the control, for TLBs as well. */
#include "probes/l2/l2_index.h"

#include <stdlib.h>

#include "probes/l2/l2_look.h"
#include "probes/method/chase.h"

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

/* Shares of misses: of the control, of lines that evict each other, of lines that stay. */
static const double CONTROL = 0.1, CONFLICT = 0.5, STAY = 0.25;

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

static void judge(const struct l2_study *l2, const struct device_answer *answers,
                  const uint64_t *strides, size_t count, struct l2_index *index)
{
    double held = l2->near_bytes / (double)l2->line_bytes;
    double enough = BEYOND * held / (double)index->lines * (double)l2->line_bytes;
    bool stays = true;
    for (size_t i = 0; i < count; i++) {
        const struct l2_shares apart = l2_shares_of(l2, &answers[2 * i], 1, 0);
        const struct l2_shares control = l2_shares_of(l2, &answers[2 * i + 1], 1, 0);
        index->n += apart.n;
        if (1 - control.resident > CONTROL)
            continue;
        if (1 - apart.resident > CONFLICT) {
            index->kind = L2_INDEX_REGULAR;
            index->stride_bytes = strides[i];
            return;
        }
        stays = stays && 1 - apart.resident < STAY;
        index->stride_bytes = strides[i];
    }
    if (stays && (double)index->stride_bytes >= enough)
        index->kind = L2_INDEX_NOT_BY_BITS;
}

int l2_measure_index(struct probe_context *context, const struct l2_study *l2,
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
        judge(l2, answers, strides, count, &index);
        device_answers_fini(answers, 2 * count);
        free(answers);
    }
    *out_index = index;
    return 0;
}
