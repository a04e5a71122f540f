/* The GPUs of several files: which entry of a GPU is used. */
#include "report/merge_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

int merge_pool_add(struct merge_pool *pool, const struct merge_entry *entry)
{
    struct merge_entry *grown =
        mem_grow(pool->entries, &pool->capacity, pool->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    pool->entries = grown;
    grown[pool->count++] = *entry;
    return 0;
}

/* By GPU; those cut short first; then by time. Of equal times, the file that was added later comes
 * last. */
static int entry_order(const void *a, const void *b)
{
    const struct merge_entry *left = a, *right = b;
    int order = strcmp(left->uuid, right->uuid);
    if (!order)
        order = right->cut_short - left->cut_short;
    if (!order)
        order = (left->time_ms > right->time_ms) - (left->time_ms < right->time_ms);
    return order ? order : (left->source > right->source) - (left->source < right->source);
}

/* Drops the plan of a GPU if the same survey has a result for it. Times are ignored, since clocks
 * of nodes differ. */
static void drop_carried_out(struct merge_entry *group, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && group[i].planned && !group[i].dropped; k++)
            group[i].dropped = !group[k].planned && str_equal(group[k].survey, group[i].survey);
}

static bool is_overtaken(const struct merge_entry *entry, const struct merge_entry *kept)
{
    return entry->dropped && entry->survey && kept->survey &&
           !str_equal(entry->survey, kept->survey);
}

void merge_pool_settle(struct merge_pool *pool,
                       void (*said)(void *user, const struct merge_entry *kept,
                                    const struct merge_entry *dropped),
                       void *user)
{
    if (pool->count)
        qsort(pool->entries, pool->count, sizeof *pool->entries, entry_order);
    for (size_t from = 0, to = 0; from < pool->count; from = to) {
        struct merge_entry *kept = NULL;
        while (to < pool->count && strcmp(pool->entries[to].uuid, pool->entries[from].uuid) == 0)
            to++;
        drop_carried_out(&pool->entries[from], to - from);
        for (size_t i = from; i < to; i++)
            kept = pool->entries[i].dropped ? kept : &pool->entries[i];
        for (size_t i = from; i < to; i++) {
            struct merge_entry *entry = &pool->entries[i];
            bool second = entry != kept && !entry->dropped;
            entry->dropped |= second;
            entry->overtaken = is_overtaken(entry, kept);
            if (second && !entry->planned)
                said(user, kept, entry);
        }
    }
}

void merge_pool_fini(struct merge_pool *pool)
{
    free(pool->entries);
    memset(pool, 0, sizeof *pool);
}
