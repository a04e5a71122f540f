/* What a miss of a TLB costs: the same loads over all pages, and over parts of them that fit. */
#include "probes/method/tlb_penalty.h"

#include <stdlib.h>

#include "cpd/cpd.h"
#include "probes/method/chase.h"

enum {
    PENALTY_JOBS = 7,
    FEW_PAGES = 256,
    FEW_PASSES = 8,
    WARM_PASSES = 2,
    RANDOM_FACTOR = 4, /* of the entries, so that nearly all pages miss under random replacement */
};

/* The pages of an array from element `first` on. */
static struct device_array part_of(const struct device_array *all, uint64_t first, uint64_t pages)
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
        struct device_array low = part_of(&all, 0, part);
        struct device_array high = part_of(&all, pages - part, part);
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
    device_answers_fini(answers, PENALTY_JOBS);
    free(answers);
    return 0;
}

int tlb_penalty_measure(struct probe_context *context, const struct tlb_levels *levels,
                        size_t number, const struct tlb_sets *sets,
                        double out_cycles[TLB_PENALTIES], struct err *err)
{
    const struct tlb_level *level = &levels->levels[number];
    uint64_t room = page_chase_room(&levels->chase, level->page_bytes);
    /* So many that all miss, and halves of them fit. At random, many more are needed. */
    uint64_t pages =
        sets->policy == TLB_OLDEST ? sets->entries * 7 / 4 : RANDOM_FACTOR * sets->entries;
    pages = pages < level->far_pages ? pages : level->far_pages;
    pages = pages < room ? pages : room;
    pages = pages > sets->entries + sets->sets ? pages : sets->entries + sets->sets;
    uint64_t part = pages / 2 < sets->entries ? pages / 2 : (sets->entries + 1) / 2;
    for (size_t i = 0; i < TLB_PENALTIES; i++) {
        int rc =
            penalty_once(context, level->page_bytes, pages, part ? part : 1, &out_cycles[i], err);
        if (rc)
            return rc;
    }
    return 0;
}
