/* The results that have come. */
#include "survey/collected.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Takes over the result. */
static int append(struct collected *collected, struct gpu_result *result, struct err *err)
{
    size_t needed = collected->count + 1;
    struct gpu_result *grown = mem_grow(collected->results, &collected->result_capacity, needed,
                                        sizeof *collected->results);
    bool *taken =
        mem_grow(collected->taken, &collected->taken_capacity, needed, sizeof *collected->taken);
    collected->results = grown ? grown : collected->results;
    collected->taken = taken ? taken : collected->taken;
    if (!grown || !taken) {
        gpu_result_fini(result);
        return err_no_memory(err);
    }
    collected->taken[collected->count] = false;
    collected->results[collected->count++] = *result;
    return 0;
}

int collected_add(struct collected *collected, struct gpu_result *result, size_t gpu_total,
                  struct err *err)
{
    int rc = append(collected, result, err);
    if (rc || !collected->taker)
        return rc;
    size_t last = collected->count - 1;
    collected->taken[last] = true;
    return collected->taker(collected->user, gpu_total, &collected->results[last], err);
}

int collected_add_unmeasured(struct collected *collected, const struct gpu_result *gpu,
                             int32_t rank, enum gpu_status status, const char *reason,
                             struct err *err)
{
    struct gpu_result view = *gpu, result = {0};
    view.rank = rank;
    view.status = status;
    view.reason = (char *)reason; /* is copied */
    if (gpu_result_copy(&result, &view)) {
        gpu_result_fini(&result);
        return err_no_memory(err);
    }
    return append(collected, &result, err);
}

void collected_drop_lost(struct collected *collected, int32_t rank)
{
    size_t kept = 0;
    for (size_t i = 0; i < collected->count; i++) {
        struct gpu_result *result = &collected->results[i];
        if (!collected->taken[i] && result->status == GPU_LOST && result->rank == rank) {
            gpu_result_fini(result);
            continue;
        }
        collected->taken[kept] = collected->taken[i];
        collected->results[kept++] = *result;
    }
    collected->count = kept;
}

void collected_fini(struct collected *collected)
{
    for (size_t i = 0; i < collected->count; i++)
        gpu_result_fini(&collected->results[i]);
    free(collected->results);
    free(collected->taken);
    memset(collected, 0, sizeof *collected);
}
