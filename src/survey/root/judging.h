/* Judges results as they arrive, and asks for those of GPUs that look bad again. Rank 0 frees what
 * the judge has taken, so that it keeps little memory per GPU. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_JUDGING_H
#define GPUMEMTOPO_SURVEY_ROOT_JUDGING_H

#include "base/err.h"
#include "device/record/record.h"
#include "inventory/gpu_result.h"
#include "judge/judge.h"
#include "survey/root/root.h"

/* Zero-initialised, except the first two. */
struct judging {
    const struct judge_basis *basis;
    const struct record *replayed; /* NULL: measured */
    struct judge *judge;           /* made with the first result */
    bool compared;                 /* judging_compare was called */
    struct gpu_result slowest;     /* identity and timings of the GPU that took longest */
};

/* A root_taker whose user is a struct judging. Takes a result of a fleet of at most `capacity`
 * GPUs. `result` keeps its identity, status and reason. session 1: the GPU was measured again.
 * First results that come after judging_compare are ignored. */
int judging_take(void *user, size_t capacity, uint32_t session, struct gpu_result *result,
                 struct err *err);

/* Adds the GPUs that were not measured, and compares all. Does nothing when called again. */
int judging_compare(struct judging *judging, const struct gpu_result *unmeasured, size_t count,
                    struct err *err);

/* GPUs that look bad are measured again before they are flagged: asks for the probes behind every
 * figure by which a GPU would be flagged. Returns how many GPUs these are. To be called after
 * judging_compare. */
size_t judging_measure_again(const struct judging *judging, struct root *root);

/* Fills the judged parts of the inventory. Call it once, after judging_compare. */
void judging_finish(struct judging *judging, struct inventory *inventory);
void judging_fini(struct judging *judging);

#endif
