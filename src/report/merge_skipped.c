/* Files that a merge could not read, and the GPUs whose results were in them. */
#include "report/merge_skipped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

int merge_skipped_add(struct merge_skipped *skipped, const char *path)
{
    char **grown = mem_grow(skipped->paths, &skipped->capacity, skipped->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    skipped->paths = grown;
    grown[skipped->count] = NULL;
    return str_copy_to(&grown[skipped->count++], path);
}

void merge_skipped_fini(struct merge_skipped *skipped)
{
    for (size_t i = 0; i < skipped->count; i++)
        free(skipped->paths[i]);
    free(skipped->paths);
    memset(skipped, 0, sizeof *skipped);
}

static int path_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The spool file of a GPU in the folder of the plan; NULL: out of memory. */
static char *file_beside(const char *plan, const char *uuid)
{
    const char *slash = strrchr(plan, '/');
    char *folder = slash ? str_copy_n(plan, (size_t)(slash - plan)) : str_copy(".");
    char *path = folder ? spool_gpu_path(folder, uuid) : NULL;
    if (path && !slash)
        memmove(path, path + 2, strlen(path + 2) + 1);
    free(folder);
    return path;
}

int merge_skipped_blame(struct merge_skipped *skipped, struct merge_source *plan)
{
    struct spool_survey *survey = &plan->spool.survey;
    if (!skipped->count)
        return 0;
    qsort(skipped->paths, skipped->count, sizeof *skipped->paths, path_order);
    for (size_t i = 0; i < survey->expected_count; i++) {
        struct gpu_result *gpu = &survey->expected[i];
        char *path = file_beside(plan->name, gpu->uuid);
        if (!path)
            return -ENOMEM;
        bool found =
            bsearch(&path, skipped->paths, skipped->count, sizeof *skipped->paths, path_order);
        free(path);
        if (!found)
            continue;
        free(gpu->reason);
        gpu->reason = NULL;
        gpu->status = GPU_FAILED;
        if (str_copy_to(&gpu->reason, "its spool file is damaged"))
            return -ENOMEM;
    }
    return 0;
}
