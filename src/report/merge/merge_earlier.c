/* Findings of merged files that no later result of the GPU looked for. */
#include "report/merge/merge_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/results.h"
#include "report/looked_for.h"

struct earlier_view {
    const struct merge_source *sources;
    const struct merge_pool *pool;
    struct inventory_lookup **lookups; /* by source; NULL: no inventory */
};

/* The GPU in the lists of an inventory. */
struct listed {
    const struct inventory_outlier *lists[2]; /* NULL: not there */
};

static struct listed listed_of(const struct earlier_view *view, const struct merge_entry *entry)
{
    const struct inventory_lookup *lookup = view->lookups[entry->source];
    if (!lookup)
        return (struct listed){0};
    return (struct listed){
        {inventory_find_outlier(lookup, entry->uuid), inventory_find_watch(lookup, entry->uuid)}};
}

/* True if the entry says what there is to be said of the metric: its survey looked for it, or its
 * file has the finding. */
static bool entry_tells(const struct earlier_view *view, const struct merge_entry *entry,
                        const char *metric)
{
    const struct merge_source *source = &view->sources[entry->source];
    if (entry->result ? report_result_looked_for(entry->result, metric)
                      : report_looked_for(&source->inventory.gpus[entry->place], metric))
        return true;
    const struct listed listed = listed_of(view, entry);
    for (size_t i = 0; i < COUNT_OF(listed.lists); i++)
        for (size_t k = 0; listed.lists[i] && k < listed.lists[i]->evidence_count; k++)
            if (str_equal(listed.lists[i]->evidence[k].metric, metric))
                return true;
    return false;
}

/* Of the result that is used, only what an earlier merge kept: the judge finds the rest again. */
static bool earlier_is_kept(const struct earlier_view *view, size_t number,
                            const struct inventory_evidence *evidence)
{
    const struct merge_entry *entry = &view->pool->entries[number];
    if (!entry->dropped)
        return str_equal(evidence->basis, judge_basis_earlier);
    for (size_t i = number + 1; i < view->pool->count; i++) {
        const struct merge_entry *later = &view->pool->entries[i];
        if (strcmp(later->uuid, entry->uuid) != 0)
            break;
        if (entry_tells(view, later, evidence->metric))
            return false;
    }
    return true;
}

static size_t earlier_add(const struct earlier_view *view, size_t number, struct judge *judge)
{
    const struct merge_entry *entry = &view->pool->entries[number];
    const struct listed listed = listed_of(view, entry);
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(listed.lists); i++)
        for (size_t k = 0; listed.lists[i] && k < listed.lists[i]->evidence_count; k++) {
            const struct inventory_evidence *evidence = &listed.lists[i]->evidence[k];
            if (!evidence->metric || !earlier_is_kept(view, number, evidence))
                continue;
            judge_add_earlier(judge, &(struct judge_earlier){
                                         .uuid = listed.lists[i]->uuid,
                                         .stamp = view->sources[entry->source].inventory.generated,
                                         .evidence = evidence});
            count++;
        }
    return count;
}

size_t merge_add_earlier(const struct merge_source *sources, size_t count,
                         const struct merge_pool *pool, struct judge *judge)
{
    const struct earlier_view view = {sources, pool, mem_array(count, sizeof *view.lookups)};
    size_t added = 0;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind == MERGE_INVENTORY)
            view.lookups[i] = inventory_lookup_create(&sources[i].inventory);
    for (size_t i = 0; i < pool->count; i++)
        added += earlier_add(&view, i, judge);
    for (size_t i = 0; i < count; i++)
        inventory_lookup_destroy(view.lookups[i]);
    free(view.lookups);
    return added;
}
