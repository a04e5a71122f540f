/* The fetch unit of L2.
 *
 * A cold chase word by word misses once per fetch unit. In ascending order a prefetch may bring the
 * next units before they are needed, and the unit seems longer; in descending order it does not.
 * The shorter of both is the unit. */
#include "probes/l2/l2_fetch.h"

#include <errno.h>
#include <stdlib.h>

#include "probes/method/chase.h"

enum {
    WORD_BYTES = 8, /* the smallest stride of a chase */
    CHASED_BYTES = 16384,
    JOBS = 6,
    DISTANCES_MAX = 1024 / WORD_BYTES + 1,
};

/* How often two misses were so many words apart. */
struct distances {
    uint32_t counts[DISTANCES_MAX], all;
    size_t best; /* the most frequent one; 0: none */
};

static void count_distances(const struct device_sample *sample, double threshold,
                            struct distances *distances)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < sample->kept_count; i++) {
        if (sample->kept[i] <= threshold)
            continue;
        if (last != SIZE_MAX && i - last < DISTANCES_MAX) {
            distances->counts[i - last]++;
            distances->all++;
        }
        last = i;
    }
}

/* A stray latency splits a few of the distances between misses, so the most frequent one counts. */
static int chase_cold(struct probe_context *context, const struct l2_study *l2,
                      enum device_order order, struct distances *out_distances, struct err *err)
{
    struct device_array words = {.path = DEVICE_GLOBAL_CG,
                                 .size_bytes = CHASED_BYTES,
                                 .stride_bytes = WORD_BYTES,
                                 .order = order};
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    bool down = order == DEVICE_DESCENDING;
    for (size_t i = 0; i < JOBS; i++) {
        words.offset_bytes =
            down ? probe_fresh_apart(context, JOBS * CHASED_BYTES) + i * CHASED_BYTES
                 : probe_fresh(context, CHASED_BYTES);
        jobs[i] = chase_job();
        jobs[i].cold_l2 = true;
        struct device_step *step = chase_add(&jobs[i], DEVICE_CHASE, &words, 0);
        step->keep = CHASED_BYTES / WORD_BYTES;
        step->start = down ? CHASED_BYTES / WORD_BYTES - 1 : 0;
    }
    int rc = chase_run(context, jobs, JOBS, 1, &answers, err);
    if (rc)
        return rc;
    struct distances found = {0};
    for (size_t i = 0; i < JOBS; i++)
        count_distances(&answers[i].samples[0], l2->miss_threshold, &found);
    for (size_t d = 0; d < DISTANCES_MAX; d++)
        if (found.counts[d] > found.counts[found.best])
            found.best = d;
    device_answers_fini(answers, JOBS);
    free(answers);
    *out_distances = found;
    return 0;
}

int l2_measure_fetch(struct probe_context *context, struct l2_study *l2, struct err *err)
{
    struct distances up, down = {0};
    int rc = chase_cold(context, l2, DEVICE_SEQUENTIAL, &up, err);
    if (rc)
        return rc;
    rc = chase_cold(context, l2, DEVICE_DESCENDING, &down, err);
    if (rc && rc != -ENOENT) /* records made before this was asked do not have it */
        return rc;
    bool shorter = down.best && (!up.best || down.best < up.best);
    const struct distances *found = shorter ? &down : &up;
    if (!found->best)
        return err_set(err, -ENODATA, "a cold word-by-word chase shows no regular misses");
    l2->fetch_bytes = found->best * WORD_BYTES;
    l2->fetch_agreement = (double)found->counts[found->best] / found->all;
    l2->fetch_n = found->all;
    return 0;
}
