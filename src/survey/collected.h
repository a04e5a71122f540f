/* The results that have come: one per GPU, and one without UUID per rank of which nothing is known.
 */
#ifndef GPUMEMTOPO_SURVEY_COLLECTED_H
#define GPUMEMTOPO_SURVEY_COLLECTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/gpu_result.h"

/* Hands each result on as it comes: the taker may let go of all but identity, status and reason. */
typedef int collected_taker(void *user, size_t gpu_total, struct gpu_result *result,
                            struct err *err);

/* Zero-initialised is empty. */
struct collected {
    struct gpu_result *results;
    bool *taken; /* per result: it was handed on */
    size_t count;
    size_t result_capacity, taken_capacity;
    collected_taker *taker; /* NULL: none */
    void *user;
};

/* Takes over a result that a rank gave, and hands it on. gpu_total: how many there will be. */
int collected_add(struct collected *collected, struct gpu_result *result, size_t gpu_total,
                  struct err *err);

/* A result that no worker gave; not handed on, since the GPU may yet be heard of. gpu: its
 * identity, of which a copy is kept, with rank, status and reason in place of its own. -ENOMEM. */
int collected_add_unmeasured(struct collected *collected, const struct gpu_result *gpu,
                             int32_t rank, enum gpu_status status, const char *reason,
                             struct err *err);

/* Takes away what was said of a rank when it was lost. */
void collected_drop_lost(struct collected *collected, int32_t rank);

void collected_fini(struct collected *collected);

#endif
