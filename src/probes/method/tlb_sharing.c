/* How many SMs share a TLB with SM 0. */
#include "probes/method/tlb_sharing.h"

#include <stdlib.h>

#include "base/mem.h"
#include "probes/method/chase.h"

enum { OWN_MAX = 8, LINES_MAX = 8, PASSES_RANDOM = 4, MANY_PAGES = 512, TRIES = 3 };

/* What evicted pages take longer, as a share of a miss, at least. */
static const double COLD_SHARE = 0.6;

/* Pages that are timed, and behind them pages that evict them. */
struct plan {
    uint64_t stride, own, others;
    uint64_t passes; /* over the others */
    uint32_t lines;  /* of each page, one after the other */
    uint64_t first;  /* so many of the others fill the levels before; 0: there are none */
};

static struct device_job make_job(const struct plan *plan, uint32_t number, int32_t helper)
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
    /* The TLBs of the helper keep pages from launch to launch. What its own ones hold does not come
     * to the level in question. */
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
static int run_jobs(struct probe_context *context, const struct plan *plan, int32_t helper,
                    double *out_longer, struct err *err)
{
    struct device_job jobs[LINES_MAX] = {0};
    struct device_answer *answers;
    double sum = 0;
    for (uint32_t i = 0; i < plan->lines; i++)
        jobs[i] = make_job(plan, i, helper);
    int rc = chase_run(context, jobs, plan->lines, 1, &answers, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < plan->lines; i++)
        sum += chase_mean(&answers[i].samples[0]) - chase_mean(&answers[i].samples[1]);
    device_answers_fini(answers, plan->lines);
    free(answers);
    *out_longer = sum / plan->lines;
    return 0;
}

/* A disturbance must not decide: most of three tries, if the first is not clear. */
static int is_shared(struct probe_context *context, const struct plan *plan, uint32_t sm,
                     double limit, bool *out_shared, struct err *err)
{
    uint32_t yes = 0, no = 0;
    for (uint32_t i = 0; i < TRIES && yes < 2 && no < 1 + (yes > 0); i++) {
        double longer;
        int rc = run_jobs(context, plan, (int32_t)sm, &longer, err);
        if (rc)
            return rc;
        *(longer < limit ? &yes : &no) += 1;
    }
    *out_shared = yes > no;
    return 0;
}

int tlb_sharing_measure(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_sets *sets, struct tlb_sharing *out_sharing,
                        struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    struct plan plan = {.stride = level->page_bytes,
                        .own = sets->entries / 2 < OWN_MAX ? (sets->entries + 1) / 2 : OWN_MAX,
                        .passes = sets->policy == TLB_OLDEST ? 1 : PASSES_RANDOM};
    uint64_t room = page_chase_room(&levels->chase, plan.stride);
    struct tlb_sharing sharing = {.sms = 1};
    double longer;
    plan.others = level->miss_pages + level->miss_pages / 8;
    room = room > 2 * plan.own + 4 ? room - plan.own - 3 : plan.own;
    plan.others = plan.others < room ? plan.others : room;
    if (number)
        plan.first = PASSES_RANDOM * levels->levels[number - 1].miss_pages;
    plan.lines = plan.others > MANY_PAGES ? 1 : LINES_MAX;
    int rc = run_jobs(context, &plan, -1, &longer, err);
    if (rc)
        return rc;
    if (longer < COLD_SHARE * level->miss_cycles)
        sharing.sms = 0;
    double limit = longer - level->miss_cycles / 2;
    for (uint32_t sm = 1; sharing.sms && sm < device_limits(context->device)->sm_count; sm++) {
        bool shared = false;
        rc = is_shared(context, &plan, sm, limit, &shared, err);
        if (rc)
            return rc;
        sharing.sms += shared;
    }
    *out_sharing = sharing;
    return 0;
}
