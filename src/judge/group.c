/* The fleet in its fixed order, cut into models. */
#include "judge/group.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static int by_place(const void *left, const void *right)
{
    const struct gpu_result *a = *(const struct gpu_result *const *)left;
    const struct gpu_result *b = *(const struct gpu_result *const *)right;
    int order = str_order(a->node, b->node);
    if (!order)
        order = str_order(a->pci, b->pci);
    if (!order)
        order = str_order(a->uuid, b->uuid);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

struct keyed {
    const struct gpu_result *gpu;
    size_t place;
};

static int by_model(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    int order = str_order(a->gpu->name, b->gpu->name);
    if (!order)
        order = str_order(a->gpu->model_key, b->gpu->model_key);
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

/* "NVIDIA H200" -> "nvidia-h200"; what is left of a hostile name is letters, digits and dashes. */
static char *slug(const char *name)
{
    char *id = str_copy(name && *name ? name : "unknown");
    size_t length = 0;
    if (!id)
        return NULL;
    for (const char *at = id; *at && length < 60; at++) {
        if (isalnum((unsigned char)*at))
            id[length++] = (char)tolower((unsigned char)*at);
        else if (length && id[length - 1] != '-')
            id[length++] = '-';
    }
    while (length && id[length - 1] == '-')
        length--;
    if (!length)
        id[length++] = 'x';
    id[length] = '\0';
    return id;
}

static bool id_taken(const struct fleet *fleet, const char *id)
{
    for (size_t i = 0; i < fleet->group_count; i++)
        if (strcmp(fleet->groups[i].id, id) == 0)
            return true;
    return false;
}

/* Two models of one name (other board, other MIG profile) get -2, -3, ... */
static char *unique_id(const struct fleet *fleet, const char *name)
{
    char *base = slug(name);
    if (!base || !id_taken(fleet, base))
        return base;
    for (size_t number = 2;; number++) {
        char *id = str_format("%s-%zu", base, number);
        if (!id || !id_taken(fleet, id)) {
            free(base);
            return id;
        }
        free(id);
    }
}

static int open_group(struct fleet *fleet, const struct gpu_result *gpu, size_t room)
{
    struct group *group = &fleet->groups[fleet->group_count];
    *group = (struct group){.name = gpu->name};
    group->id = unique_id(fleet, gpu->name);
    group->members = mem_array(room, sizeof *group->members);
    if (!group->id || !group->members) {
        free(group->id);
        free(group->members);
        return -ENOMEM;
    }
    fleet->group_count++;
    return 0;
}

static int cut_groups(struct fleet *fleet)
{
    struct keyed *keyed = mem_array(fleet->count, sizeof *keyed);
    size_t known = 0, kinds = 0;
    int rc = keyed ? 0 : -ENOMEM;
    for (size_t i = 0; i < fleet->count && !rc; i++) {
        fleet->group_of[i] = SIZE_MAX;
        if (fleet->gpus[i]->model_key)
            keyed[known++] = (struct keyed){fleet->gpus[i], i};
    }
    if (!rc)
        qsort(keyed, known, sizeof *keyed, by_model);
    for (size_t i = 0; i < known; i++)
        kinds += !i || !str_equal(keyed[i].gpu->model_key, keyed[i - 1].gpu->model_key);
    fleet->groups = mem_array(kinds, sizeof *fleet->groups);
    if (!fleet->groups)
        rc = -ENOMEM;
    for (size_t i = 0; i < known && !rc;) {
        size_t end = i + 1;
        while (end < known && str_equal(keyed[end].gpu->model_key, keyed[i].gpu->model_key))
            end++;
        rc = open_group(fleet, keyed[i].gpu, end - i);
        for (; i < end && !rc; i++) {
            struct group *group = &fleet->groups[fleet->group_count - 1];
            group->members[group->count++] = keyed[i].place;
            fleet->group_of[keyed[i].place] = fleet->group_count - 1;
        }
    }
    free(keyed);
    return rc;
}

int fleet_init(struct fleet *fleet, const struct gpu_result *results, size_t count, struct err *err)
{
    *fleet = (struct fleet){.count = count};
    fleet->gpus = mem_array(count, sizeof *fleet->gpus);
    fleet->group_of = mem_array(count, sizeof *fleet->group_of);
    fleet->outlier = mem_array(count, sizeof *fleet->outlier);
    int rc = fleet->gpus && fleet->group_of && fleet->outlier ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !rc; i++)
        fleet->gpus[i] = &results[i];
    if (!rc) {
        qsort(fleet->gpus, count, sizeof *fleet->gpus, by_place);
        rc = cut_groups(fleet);
    }
    if (rc) {
        fleet_fini(fleet);
        return err_no_memory(err);
    }
    return 0;
}

void fleet_fini(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->group_count; i++) {
        free(fleet->groups[i].id);
        free(fleet->groups[i].members);
        facts_fini(&fleet->groups[i].usual);
        facts_fini(&fleet->groups[i].usual_health);
    }
    free(fleet->groups);
    free(fleet->gpus);
    free(fleet->group_of);
    free(fleet->outlier);
    *fleet = (struct fleet){0};
}

bool fleet_measured(const struct gpu_result *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
}

bool fleet_has_figures(const struct gpu_result *gpu)
{
    return fleet_measured(gpu) || (gpu->status == GPU_BUSY && gpu->measures.count);
}
