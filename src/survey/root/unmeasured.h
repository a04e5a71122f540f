/* GPUs without a result, and ranks whose GPUs are not known. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_UNMEASURED_H
#define GPUMEMTOPO_SURVEY_ROOT_UNMEASURED_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/gpu_result.h"

/* Zero-initialised is empty. */
struct unmeasured {
    struct gpu_result *items; /* identity (uuid NULL: a rank), rank, status and reason */
    size_t count, capacity;
};

/* Keeps a copy of gpu's identity, with the given rank, status and reason. -ENOMEM. */
int unmeasured_add(struct unmeasured *list, const struct gpu_result *gpu, int32_t rank,
                   enum gpu_status status, const char *reason, struct err *err);

void unmeasured_drop(struct unmeasured *list, size_t at);

/* Drops the entries that were added when the rank was lost. */
void unmeasured_drop_lost(struct unmeasured *list, int32_t rank);
void unmeasured_fini(struct unmeasured *list);

#endif
