/* What a merged inventory says of the surveys behind it. */
#include "report/merge_head.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/merge_ranks.h"

/* Of one survey, by its plan or its inventory, told once; GPUs' files belong to a plan. */
static bool is_head(const struct merge_source *source)
{
    return source->kind != MERGE_GPU && !source->again;
}

static const char *survey_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? NULL : source->spool.origin.survey;
}

/* The one survey that all files are of; NULL when there are several, or none is known. */
static const struct merge_source *only_survey(const struct merge_source *sources, size_t count)
{
    const struct merge_source *head = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_head(&sources[i]) && head)
            return NULL;
        if (is_head(&sources[i]))
            head = &sources[i];
    }
    for (size_t i = 0; head && i < count; i++)
        if (sources[i].kind == MERGE_GPU && !str_equal(survey_of(&sources[i]), survey_of(head)))
            return NULL;
    return head;
}

static const char *backend_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? source->inventory.backend
                                           : source->spool.origin.backend;
}

static uint64_t seed_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? source->inventory.seed : source->spool.origin.seed;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct names {
    const char **items;
    size_t count, capacity;
};

static int add_name(struct names *names, const char *name)
{
    const char **grown = mem_grow(names->items, &names->capacity, names->count + 1, sizeof *grown);
    if (!name)
        return 0;
    if (!grown)
        return -ENOMEM;
    names->items = grown;
    grown[names->count++] = name;
    return 0;
}

static void settle_names(struct names *names)
{
    size_t kept = 0;
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, text_order);
    for (size_t i = 0; i < names->count; i++)
        if (!kept || strcmp(names->items[kept - 1], names->items[i]) != 0)
            names->items[kept++] = names->items[i];
    names->count = kept;
}

static bool has_name(const struct names *names, const char *name)
{
    return names->count &&
           bsearch(&name, names->items, names->count, sizeof *names->items, text_order);
}

static const char *node_of(const struct merge_source *sources, const struct merge_entry *entry)
{
    if (entry->result)
        return entry->result->node;
    return sources[entry->source].inventory.gpus[entry->place].node;
}

/* Nodes with GPUs. */
static int full_nodes(const struct merge_source *sources, const struct merge_pool *pool,
                      struct names *out_names)
{
    for (size_t i = 0; i < pool->count; i++)
        if (!pool->entries[i].dropped && add_name(out_names, node_of(sources, &pool->entries[i])))
            return -ENOMEM;
    settle_names(out_names);
    return 0;
}

/* Nodes that were seen without one. */
static int bare_nodes(const struct merge_source *sources, size_t count, struct names *out_names)
{
    for (size_t s = 0; s < count; s++) {
        const struct spool_survey *survey = &sources[s].spool.survey;
        const struct inventory *inventory = &sources[s].inventory;
        for (size_t i = 0; i < survey->bare_count; i++)
            if (add_name(out_names, survey->bare_nodes[i]))
                return -ENOMEM;
        for (size_t i = 0; i < inventory->node_count; i++)
            if (str_equal(inventory->node_findings[i].finding, inventory_bare_node) &&
                add_name(out_names, inventory->node_findings[i].node))
                return -ENOMEM;
    }
    settle_names(out_names);
    return 0;
}

static int fill_nodes(const struct names *full, const struct names *bare,
                      struct inventory *inventory)
{
    inventory->node_findings = mem_array(bare->count, sizeof *inventory->node_findings);
    if (!inventory->node_findings)
        return -ENOMEM;
    for (size_t i = 0; i < bare->count; i++) {
        struct inventory_node *node = &inventory->node_findings[inventory->node_count];
        if (has_name(full, bare->items[i]))
            continue;
        inventory->node_count++;
        if (str_copy_to(&node->node, bare->items[i]) ||
            str_copy_to(&node->finding, inventory_bare_node))
            return -ENOMEM;
    }
    inventory->nodes = (uint32_t)(full->count + inventory->node_count);
    return 0;
}

static int copy_command(struct inventory *inventory, char *const *words, size_t count)
{
    inventory->command = mem_array(count, sizeof *inventory->command);
    if (!inventory->command)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        char *word = str_copy(i ? words[i] : str_last_part(words[i]));
        if (!word)
            return -ENOMEM;
        inventory->command[inventory->command_count++] = word;
    }
    return 0;
}

/* From the survey's plan to the last of its results. */
static double elapsed_s(const struct merge_source *sources, size_t count,
                        const struct merge_source *plan)
{
    uint64_t last_ms = plan->time_ms;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind == MERGE_GPU && sources[i].time_ms > last_ms &&
            str_equal(survey_of(&sources[i]), survey_of(plan)))
            last_ms = sources[i].time_ms;
    return round((double)(last_ms - plan->time_ms) / 10) / 100;
}

/* Surveys of several partitions: their ranks add up, and the longest counts. */
static int add_counts(const struct merge_source *sources, size_t count,
                      const struct merge_pool *pool, struct inventory *inventory)
{
    for (size_t i = 0; i < count; i++) {
        const struct merge_source *source = &sources[i];
        double wall_s = source->kind == MERGE_INVENTORY ? source->inventory.wall_s
                        : source->kind == MERGE_SURVEY  ? elapsed_s(sources, count, source)
                                                        : 0;
        if (merge_add_ranks(sources, i, pool, inventory))
            return -ENOMEM;
        if (wall_s > inventory->wall_s)
            inventory->wall_s = wall_s;
    }
    return 0;
}

static int fill_origin(const struct merge_source *sources, size_t count,
                       const struct merge_source *only, struct inventory *inventory)
{
    const char *backend = count ? backend_of(&sources[0]) : "";
    inventory->seed = count ? seed_of(&sources[0]) : 0;
    for (size_t i = 1; i < count; i++) {
        if (!str_equal(backend, backend_of(&sources[i])))
            backend = "mixed";
        if (inventory->seed != seed_of(&sources[i]))
            inventory->seed = 0;
    }
    if (only && only->kind == MERGE_INVENTORY)
        inventory->nodes = only->inventory.nodes;
    if (only && only->kind == MERGE_SURVEY)
        inventory->nodes = only->spool.survey.nodes;
    return str_copy_to(&inventory->backend, backend);
}

int merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
               const struct report_merge_request *request, struct inventory *inventory)
{
    const struct merge_source *only = only_survey(sources, count);
    struct names full = {0}, bare = {0};
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(0, stamp);
    int rc = full_nodes(sources, pool, &full);
    if (!rc)
        rc = bare_nodes(sources, count, &bare);
    if (!rc)
        rc = fill_nodes(&full, &bare, inventory);
    if (!rc)
        rc = fill_origin(sources, count, only, inventory);
    free(full.items);
    free(bare.items);
    if (!rc)
        rc = add_counts(sources, count, pool, inventory);
    if (rc || str_copy_to(&inventory->version, request->version) ||
        str_copy_to(&inventory->generated, stamp))
        return -ENOMEM;
    if (only && only->kind == MERGE_INVENTORY)
        return copy_command(inventory, only->inventory.command, only->inventory.command_count);
    if (only)
        return copy_command(inventory, only->spool.survey.command,
                            only->spool.survey.command_count);
    return copy_command(inventory, request->command, request->command_count);
}

static int unknown_order(const void *a, const void *b)
{
    const struct inventory_unmeasured *left = a, *right = b;
    int order = str_order(left->node, right->node);
    return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static int add_unknown(struct inventory *inventory, size_t *capacity,
                       const struct inventory_unmeasured *from)
{
    struct inventory_unmeasured *grown =
        mem_grow(inventory->unmeasured, capacity, inventory->unmeasured_length + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    inventory->unmeasured = grown;
    struct inventory_unmeasured *out = &grown[inventory->unmeasured_length++];
    *out = (struct inventory_unmeasured){.rank = from->rank, .status = from->status};
    return str_copy_to(&out->node, from->node) || str_copy_to(&out->reason, from->reason) ? -ENOMEM
                                                                                          : 0;
}

int merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory)
{
    size_t known = inventory->unmeasured_length, capacity = known;
    int rc = 0;
    for (size_t s = 0; s < count && !rc; s++) {
        const struct spool_survey *survey = &sources[s].spool.survey;
        const struct inventory *other = &sources[s].inventory;
        if (sources[s].again)
            continue;
        for (size_t i = 0; i < survey->unknown_count && !rc; i++) {
            const struct gpu_result *rank = &survey->unknown[i];
            const struct inventory_unmeasured entry = {
                .node = rank->node,
                .rank = rank->rank,
                .status = rank->status,
                .reason = rank->reason,
            };
            rc = add_unknown(inventory, &capacity, &entry);
        }
        for (size_t i = 0; i < other->unmeasured_length && !rc; i++)
            if (!other->unmeasured[i].uuid)
                rc = add_unknown(inventory, &capacity, &other->unmeasured[i]);
    }
    if (inventory->unmeasured_length > known)
        qsort(&inventory->unmeasured[known], inventory->unmeasured_length - known,
              sizeof *inventory->unmeasured, unknown_order);
    inventory->unmeasured_count = (uint32_t)inventory->unmeasured_length;
    return rc;
}
