/* GPUs and ranks without a result. */
#include "survey/root/unmeasured.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int unmeasured_add(struct unmeasured *list, const struct gpu_result *gpu, int32_t rank,
                   enum gpu_status status, const char *reason, struct err *err)
{
    struct gpu_result view = *gpu, copy = {0};
    struct gpu_result *grown =
        mem_grow(list->items, &list->capacity, list->count + 1, sizeof *grown);
    if (!grown)
        return err_no_memory(err);
    list->items = grown;
    view.rank = rank;
    view.status = status;
    view.reason = (char *)reason; /* gpu_result_copy copies it */
    if (gpu_result_copy(&copy, &view)) {
        gpu_result_fini(&copy);
        return err_no_memory(err);
    }
    grown[list->count++] = copy;
    return 0;
}

void unmeasured_drop(struct unmeasured *list, size_t at)
{
    gpu_result_fini(&list->items[at]);
    list->count--;
    memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof *list->items);
}

void unmeasured_drop_lost(struct unmeasured *list, int32_t rank)
{
    for (size_t i = list->count; i > 0; i--)
        if (list->items[i - 1].status == GPU_LOST && list->items[i - 1].rank == rank)
            unmeasured_drop(list, i - 1);
}

void unmeasured_fini(struct unmeasured *list)
{
    for (size_t i = 0; i < list->count; i++)
        gpu_result_fini(&list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}
