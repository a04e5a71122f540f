/* Sorts the fleet and groups its GPUs by model. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fleet.h"

bool fleet_judged(const struct fleet_gpu *gpu)
{
    return gpu->measured && !gpu->busy;
}

void fleet_find_busy(struct fleet *fleet)
{
    const struct fact_column *processes = fleet_facts(fleet, SET_HEALTH, "processes");
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_gpu *gpu = &fleet->gpus[i];
        gpu->busy = gpu->status == GPU_BUSY || fleet_fact_number(fleet, processes, (uint32_t)i) > 0;
    }
}

static int text_order(const struct fleet *fleet, uint32_t a, uint32_t b)
{
    return a == b ? 0 : str_order(fleet_text(fleet, a), fleet_text(fleet, b));
}

static int by_place(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct fleet_gpu *a = &fleet->gpus[*(const uint32_t *)left];
    const struct fleet_gpu *b = &fleet->gpus[*(const uint32_t *)right];
    int order = text_order(fleet, a->node, b->node);
    if (!order)
        order = text_order(fleet, a->pci, b->pci);
    if (!order)
        order = text_order(fleet, a->uuid, b->uuid);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static int by_model(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct group *a = left, *b = right;
    int order = text_order(fleet, a->name, b->name);
    return order ? order : text_order(fleet, a->key, b->key);
}

static int by_position(const void *left, const void *right, void *user)
{
    const struct column_head *a = left, *b = right;
    int order = (a->position > b->position) - (a->position < b->position);
    return order ? order : text_order(user, a->name, b->name);
}

static int by_name(const void *left, const void *right, void *user)
{
    const struct column_head *a = left, *b = right;
    return text_order(user, a->name, b->name);
}

/* Settings and health are sorted by name: an inventory lists only unusual ones, so that the
 * position of a key says nothing. */
static void sort_columns(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->metric_count; i++) {
        struct metric_column *column = &fleet->metrics[i];
        if (column->note_count)
            qsort_r(column->notes, column->note_count, sizeof *column->notes, by_position, fleet);
    }
    if (fleet->metric_count)
        qsort_r(fleet->metrics, fleet->metric_count, sizeof *fleet->metrics, by_position, fleet);
    for (int set = 0; set < SET_COUNT; set++) {
        struct fact_columns *columns = &fleet->facts[set];
        if (columns->count)
            qsort_r(columns->items, columns->count, sizeof *columns->items,
                    set == SET_CONFIG || set == SET_HEALTH ? by_name : by_position, fleet);
    }
}

/* "NVIDIA H200" -> "nvidia-h200". The result has only letters, digits and dashes. */
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

/* The ids in use, and the last number of each base: 2 after "x-2". */
struct ids {
    struct symbols taken, bases;
    size_t *numbers; /* by symbol of the base */
    size_t capacity;
};

static size_t *number_of(struct ids *ids, const char *base)
{
    uint32_t symbol = symbols_add(&ids->bases, base, strlen(base));
    size_t *grown =
        symbol ? mem_grow(ids->numbers, &ids->capacity, (size_t)symbol + 1, sizeof *grown) : NULL;
    if (!grown)
        return NULL;
    ids->numbers = grown;
    return &grown[symbol];
}

/* If models have the same name (other board, other MIG profile), the further ones get -2, -3, ...
 * NULL: out of memory. */
static char *unique_id(struct ids *ids, const char *name)
{
    char *base = slug(name), *id = NULL;
    size_t *number = base ? number_of(ids, base) : NULL;
    while (number && !id) {
        id = ++*number == 1 ? str_copy(base) : str_format("%s-%zu", base, *number);
        if (!id)
            break;
        if (symbols_find(&ids->taken, id)) {
            free(id);
            id = NULL;
        }
    }
    free(base);
    if (id && !symbols_add(&ids->taken, id, strlen(id))) {
        free(id);
        id = NULL;
    }
    return id;
}

static int name_groups(struct fleet *fleet)
{
    struct ids ids = {0};
    int rc = 0;
    for (size_t i = 0; i < fleet->group_count && !rc; i++) {
        fleet->groups[i].id = unique_id(&ids, fleet_text(fleet, fleet->groups[i].name));
        rc = fleet->groups[i].id ? 0 : -ENOMEM;
    }
    symbols_fini(&ids.taken);
    symbols_fini(&ids.bases);
    free(ids.numbers);
    return rc;
}

/* Adds one group per model key. by_key: per symbol; not 0 if the key has a group. */
static int add_groups(struct fleet *fleet, uint32_t *by_key)
{
    size_t capacity = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        if (!gpu->model_key || by_key[gpu->model_key])
            continue;
        struct group *grown =
            mem_grow(fleet->groups, &capacity, fleet->group_count + 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        fleet->groups = grown;
        grown[fleet->group_count++] = (struct group){.name = gpu->name, .key = gpu->model_key};
        by_key[gpu->model_key] = 1;
    }
    return 0;
}

/* A GPU of unknown model has no group. */
static int open_groups(struct fleet *fleet)
{
    uint32_t *by_key = mem_array(fleet->symbols.count, sizeof *by_key);
    if (!by_key || add_groups(fleet, by_key)) {
        free(by_key);
        return -ENOMEM;
    }
    if (fleet->group_count)
        qsort_r(fleet->groups, fleet->group_count, sizeof *fleet->groups, by_model, fleet);
    for (size_t i = 0; i < fleet->group_count; i++)
        by_key[fleet->groups[i].key] = (uint32_t)i;
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_gpu *gpu = &fleet->gpus[i];
        gpu->group = gpu->model_key ? by_key[gpu->model_key] : GROUP_NONE;
    }
    free(by_key);
    return 0;
}

static int fill_groups(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->gpus[i].group != GROUP_NONE)
            fleet->groups[fleet->gpus[i].group].count++;
    for (size_t i = 0; i < fleet->group_count; i++) {
        struct group *group = &fleet->groups[i];
        group->members = mem_array(group->count, sizeof *group->members);
        if (!group->members)
            return -ENOMEM;
        group->count = 0;
    }
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t number = fleet->gpus[fleet->order[i]].group;
        if (number != GROUP_NONE)
            fleet->groups[number].members[fleet->groups[number].count++] = fleet->order[i];
    }
    return 0;
}

int fleet_group(struct fleet *fleet)
{
    fleet->order = mem_array(fleet->count, sizeof *fleet->order);
    if (!fleet->order)
        return -ENOMEM;
    for (size_t i = 0; i < fleet->count; i++)
        fleet->order[i] = (uint32_t)i;
    if (fleet->count)
        qsort_r(fleet->order, fleet->count, sizeof *fleet->order, by_place, fleet);
    sort_columns(fleet);
    return open_groups(fleet) || name_groups(fleet) || fill_groups(fleet) ? -ENOMEM : 0;
}
