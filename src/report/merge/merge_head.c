/* Header, counts, nodes and ranks of a merged inventory. */
#include "report/merge/merge_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "inventory/build.h"

static bool merge_same_command(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 1; i < a_count && same;
         i++) /* argument 0 is the program, with or without its folder */
        same = str_equal(a[i], b[i]);
    return same;
}

static bool merge_same_inventory(const struct inventory *a, const struct inventory *b)
{
    bool same = str_equal(a->generated, b->generated) && a->total_ranks == b->total_ranks &&
                a->seed == b->seed && a->gpu_count == b->gpu_count &&
                merge_same_command(a->command, a->command_count, b->command, b->command_count);
    for (size_t i = 0; i < a->gpu_count && same; i++)
        same = str_equal(a->gpus[i].uuid, b->gpus[i].uuid);
    return same;
}

static bool inventory_has_gpu(const struct inventory *inventory, const char *uuid)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (str_equal(inventory->gpus[i].uuid, uuid))
            return true;
    return false;
}

/* True if the plan was spooled while the survey of the inventory ran, by the same command and with
 * one of its GPUs. No two surveys measure the same GPU at the same time. */
static bool source_is_plan_of(const struct merge_source *inventory, const struct merge_source *plan)
{
    enum { SLACK_MS = 2000 }; /* the time in an inventory has a resolution of seconds */
    const struct inventory *made = &inventory->inventory;
    const struct spool_survey *survey = &plan->spool.survey;
    double age_ms = (double)inventory->time_ms - (double)plan->time_ms;
    return age_ms >= -SLACK_MS && age_ms <= 1000 * fmax(made->wall_s, 0) + SLACK_MS &&
           made->total_ranks == survey->ranks && made->seed == plan->spool.origin.seed &&
           merge_same_command(made->command, made->command_count, survey->command,
                              survey->command_count) &&
           survey->expected_count && inventory_has_gpu(made, survey->expected[0].uuid);
}

/* True if `other` describes the same survey and is used instead of `source`: an inventory instead
 * of a plan, the plan of rank 0 instead of the plan of one rank, else the later file. */
static bool source_is_described_by(const struct merge_source *source,
                                   const struct merge_source *other)
{
    if (source->kind == MERGE_SURVEY && other->kind == MERGE_INVENTORY)
        return source_is_plan_of(other, source);
    if (source->kind != other->kind)
        return false;
    if (source->kind == MERGE_INVENTORY)
        return source < other && merge_same_inventory(&source->inventory, &other->inventory);
    bool apart = source->spool.survey.apart, other_apart = other->spool.survey.apart;
    return (apart == other_apart ? source < other : apart) && *source->spool.origin.survey &&
           str_equal(source->spool.origin.survey, other->spool.origin.survey);
}

void merge_find_again(struct merge_source *sources, size_t count)
{
    struct merge_source **heads = mem_array(count, sizeof *heads);
    size_t head_count = 0;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind != MERGE_GPU)
            heads[head_count++] = &sources[i];
    for (size_t i = 0; i < head_count; i++)
        for (size_t k = 0; k < head_count && !heads[i]->again; k++)
            heads[i]->again = k != i && source_is_described_by(heads[i], heads[k]);
    free(heads);
}

/* Without MPI, also marks the plans of the ranks of that survey that had no GPU. */
static void merge_mark_overtaken(struct merge_source *sources, size_t count,
                                 struct merge_source *plan)
{
    plan->again = true;
    for (size_t i = 0; i < count && plan->spool.survey.apart; i++) {
        struct merge_source *other = &sources[i];
        if (other->kind == MERGE_SURVEY && !other->spool.survey.expected_count &&
            str_equal(other->spool.origin.survey, plan->spool.origin.survey))
            other->again = true;
    }
}

void merge_find_overtaken(struct merge_source *sources, size_t count, const struct merge_pool *pool)
{
    size_t *left = mem_array(count, sizeof *left); /* GPUs of each file that no later survey has */
    for (size_t i = 0; i < pool->count; i++)
        left[pool->entries[i].source] += !pool->entries[i].overtaken;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind == MERGE_SURVEY && sources[i].spool.survey.expected_count && !left[i])
            merge_mark_overtaken(sources, count, &sources[i]);
    free(left);
}

/* A rank, and whether one of its GPUs is still missing. */
struct rank {
    int32_t number;
    bool missing;
};

/* By number; an entry with a missing GPU comes first. */
static int rank_order(const void *a, const void *b)
{
    const struct rank *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return right->missing - left->missing;
}

/* Considers the GPUs of the source with status lost. *out_silent: ranks with such a GPU that no
 * other file has. *out_recovered: ranks whose lost GPUs are all in other files. *out_all: other
 * files have every GPU of the source. */
static void merge_count_silent(const struct merge_source *sources, size_t number,
                               const struct merge_pool *pool, uint32_t *out_silent,
                               uint32_t *out_recovered, bool *out_all)
{
    struct rank *ranks = mem_array(pool->count, sizeof *ranks);
    size_t count = 0, dropped = 0, own = 0;
    for (size_t i = 0; i < pool->count; i++) {
        const struct merge_entry *entry = &pool->entries[i];
        if (entry->source != number)
            continue;
        own++;
        dropped += entry->dropped;
        const struct inventory_gpu *gpu =
            entry->result ? NULL : &sources[number].inventory.gpus[entry->place];
        if ((gpu ? gpu->status : entry->result->status) == GPU_LOST)
            ranks[count++] = (struct rank){gpu ? gpu->rank : entry->result->rank, !entry->dropped};
    }
    sort_stable(ranks, count, sizeof *ranks, rank_order);
    *out_all = own && dropped == own;
    *out_silent = *out_recovered = 0;
    for (size_t i = 0; i < count; i++) {
        bool first = !i || ranks[i].number != ranks[i - 1].number;
        *out_silent += first && ranks[i].missing;
        *out_recovered += first && !ranks[i].missing;
    }
    free(ranks);
}

/* One flag per rank of the plan: the rank has its own plan in the same survey, as ranks without MPI
 * have. Freed with free(). */
static bool *merge_own_plans(const struct merge_source *sources, size_t count,
                             const struct merge_source *plan)
{
    const uint32_t ranks = plan->spool.survey.ranks;
    bool *own = mem_array(ranks, sizeof *own);
    for (size_t i = 0; i < count; i++) {
        const struct spool_survey *other = &sources[i].spool.survey;
        if (sources[i].kind == MERGE_SURVEY && other->apart && other->rank < ranks &&
            str_equal(sources[i].spool.origin.survey, plan->spool.origin.survey))
            own[other->rank] = true;
    }
    return own;
}

/* Ranks of the survey that left nothing. plan: its only plan, or the one that is used. */
static uint32_t merge_count_planless(const struct merge_source *sources, size_t count,
                                     const struct merge_source *plan)
{
    const struct spool_survey *survey = &plan->spool.survey;
    bool *own = merge_own_plans(sources, count, plan);
    uint32_t lost = survey->apart ? 0 : survey->lost_ranks;
    for (uint32_t rank = 0; survey->apart && rank < survey->ranks; rank++)
        lost += !own[rank];
    for (size_t i = 0; !survey->apart && i < survey->unknown_count; i++) {
        const struct gpu_result *unknown = &survey->unknown[i];
        bool came =
            unknown->rank >= 0 && (uint32_t)unknown->rank < survey->ranks && own[unknown->rank];
        lost -= lost && came && unknown->status == GPU_LOST;
    }
    free(own);
    return lost;
}

/* Adds the ranks of source `number`, and how many of them are lost. The pool must be settled. */
static void merge_add_ranks(const struct merge_source *sources, size_t count, size_t number,
                            const struct merge_pool *pool, struct inventory *inventory)
{
    const struct merge_source *source = &sources[number];
    uint32_t silent, recovered, lost = 0;
    bool all;
    if (source->kind == MERGE_GPU)
        return;
    merge_count_silent(sources, number, pool, &silent, &recovered, &all);
    if (source->kind == MERGE_SURVEY) {
        lost = source->again ? 0 : merge_count_planless(sources, count, source);
        inventory->total_ranks += source->again ? 0 : source->spool.survey.ranks;
        inventory->total_lost_ranks += silent + lost;
        return;
    }
    lost = source->inventory.total_lost_ranks;
    uint32_t unknown = 0; /* ranks whose GPUs are not known */
    for (size_t i = 0; i < source->inventory.unmeasured_count; i++)
        unknown += !source->inventory.unmeasured[i].uuid;
    if (all) /* all GPUs are in other files, so only unknown ranks are lost */
        lost = lost < unknown ? lost : unknown;
    else
        lost -= lost < recovered ? lost : recovered;
    inventory->total_ranks += source->again ? 0 : source->inventory.total_ranks;
    inventory->total_lost_ranks += source->again ? silent : lost;
}

/* True for a plan or an inventory, if no other file describes the same survey. Files of GPUs belong
 * to a plan. */
static bool source_is_head(const struct merge_source *source)
{
    return source->kind != MERGE_GPU && !source->again;
}

static const char *survey_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? NULL : source->spool.origin.survey;
}

/* The survey, if all files are from the same one; NULL otherwise. */
static const struct merge_source *only_survey(const struct merge_source *sources, size_t count)
{
    const struct merge_source *head = NULL;
    for (size_t i = 0; i < count; i++) {
        if (source_is_head(&sources[i]) && head)
            return NULL;
        if (source_is_head(&sources[i]))
            head = &sources[i];
    }
    for (size_t i = 0; head && i < count; i++)
        if (sources[i].kind == MERGE_GPU && !str_equal(survey_of(&sources[i]), survey_of(head)))
            return NULL;
    return head;
}

static const char *merge_backend_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? source->inventory.backend
                                           : source->spool.origin.backend;
}

static uint64_t seed_of(const struct merge_source *source)
{
    return source->kind == MERGE_INVENTORY ? source->inventory.seed : source->spool.origin.seed;
}

struct names {
    const char **items;
    size_t count, capacity;
};

static void names_add(struct names *names, const char *name)
{
    if (!name)
        return;
    names->items = mem_grow(names->items, &names->capacity, names->count + 1, sizeof *names->items);
    names->items[names->count++] = name;
}

static void names_settle(struct names *names)
{
    size_t kept = 0;
    if (names->count)
        sort_stable(names->items, names->count, sizeof *names->items, str_item_order);
    for (size_t i = 0; i < names->count; i++)
        if (!kept || strcmp(names->items[kept - 1], names->items[i]) != 0)
            names->items[kept++] = names->items[i];
    names->count = kept;
}

static const char *node_of(const struct merge_source *sources, const struct merge_entry *entry)
{
    if (entry->result)
        return entry->result->node;
    return sources[entry->source].inventory.gpus[entry->place].node;
}

/* Nodes with GPUs. */
static void names_add_full(struct names *names, const struct merge_source *sources,
                           const struct merge_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        if (!pool->entries[i].dropped)
            names_add(names, node_of(sources, &pool->entries[i]));
    names_settle(names);
}

/* Nodes on which no GPU was seen. */
static void names_add_bare(struct names *names, const struct merge_source *sources, size_t count)
{
    for (size_t s = 0; s < count; s++) {
        const struct spool_survey *survey = &sources[s].spool.survey;
        const struct inventory *inventory = &sources[s].inventory;
        for (size_t i = 0; i < survey->bare_count; i++)
            names_add(names, survey->bare_nodes[i]);
        for (size_t i = 0; i < inventory->node_finding_count; i++)
            if (str_equal(inventory->node_findings[i].finding, inventory_bare_node))
                names_add(names, inventory->node_findings[i].node);
    }
    names_settle(names);
}

/* A node without a GPU in one survey may have one in another. */
static void merge_fill_nodes(const struct merge_source *sources, size_t count,
                             const struct merge_pool *pool, struct inventory *inventory)
{
    struct names full = {0}, bare = {0};
    size_t kept = 0;
    names_add_full(&full, sources, pool);
    names_add_bare(&bare, sources, count);
    for (size_t i = 0; i < bare.count; i++)
        if (!full.count ||
            !bsearch(&bare.items[i], full.items, full.count, sizeof *full.items, str_item_order))
            bare.items[kept++] = bare.items[i];
    inventory->total_nodes = (uint32_t)(full.count + kept);
    inventory_add_bare(inventory, bare.items, kept);
    free(full.items);
    free(bare.items);
}

/* From the plan of the survey to its last result. */
static double elapsed_s(const struct merge_source *sources, size_t count,
                        const struct merge_source *plan, bool ends_now)
{
    uint64_t last_ms = ends_now ? clock_utc_ms() : plan->time_ms;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind == MERGE_GPU && sources[i].time_ms > last_ms &&
            str_equal(survey_of(&sources[i]), survey_of(plan)))
            last_ms = sources[i].time_ms;
    return last_ms > plan->time_ms ? round((double)(last_ms - plan->time_ms) / 10) / 100 : 0;
}

/* Merged surveys may be from several partitions: their ranks are added, and the longest time is
 * used. */
static void merge_add_counts(const struct merge_source *sources, size_t count,
                             const struct merge_pool *pool, bool ends_now,
                             struct inventory *inventory)
{
    for (size_t i = 0; i < count; i++) {
        const struct merge_source *source = &sources[i];
        double wall_s = source->kind == MERGE_INVENTORY ? source->inventory.wall_s
                        : source->kind == MERGE_SURVEY ? elapsed_s(sources, count, source, ends_now)
                                                       : 0;
        merge_add_ranks(sources, count, i, pool, inventory);
        if (wall_s > inventory->wall_s)
            inventory->wall_s = wall_s;
    }
}

/* The value, if it is the same in all files; NULL otherwise. */
static const char *common_origin(const struct merge_source *sources, size_t count,
                                 uint64_t *out_seed)
{
    const char *backend = count ? merge_backend_of(&sources[0]) : "";
    *out_seed = count ? seed_of(&sources[0]) : 0;
    for (size_t i = 1; i < count; i++) {
        if (!str_equal(backend, merge_backend_of(&sources[i])))
            backend = "mixed";
        if (*out_seed != seed_of(&sources[i]))
            *out_seed = 0;
    }
    return backend;
}

/* The time of the newest result: results do not become newer when they are merged. */
static void merge_set_time(const struct merge_source *sources, size_t count,
                           struct inventory *inventory)
{
    char stamp[CLOCK_STAMP_MAX];
    uint64_t newest_ms = 0;
    for (size_t i = 0; i < count; i++)
        newest_ms = sources[i].time_ms > newest_ms ? sources[i].time_ms : newest_ms;
    if (!newest_ms)
        return;
    clock_stamp_of(newest_ms, stamp);
    free(inventory->generated);
    inventory->generated = str_copy(stamp);
}

/* Uses the command of the only survey, or of the merge. */
static void merge_fill_head(const struct merge_source *sources, size_t count,
                            const struct report_merge_request *request, struct inventory *inventory)
{
    const struct merge_source *only = only_survey(sources, count);
    const char *backend = common_origin(sources, count, &inventory->seed);
    char *const *command = request->command;
    size_t command_count = request->command_count;
    if (only && only->kind == MERGE_INVENTORY) {
        inventory->total_nodes = only->inventory.total_nodes;
        command = only->inventory.command;
        command_count = only->inventory.command_count;
    } else if (only) {
        const struct spool_survey *survey = &only->spool.survey;
        inventory->total_nodes = survey->apart ? inventory->total_nodes : survey->nodes;
        command = survey->command;
        command_count = survey->command_count;
    }
    for (size_t i = 0; i < count; i++)
        inventory->anonymous |=
            sources[i].kind == MERGE_INVENTORY && sources[i].inventory.anonymous;
    inventory_set_head(inventory, request->version, backend, command, command_count);
    merge_set_time(sources, count, inventory);
}

/* The versions that measured what is used, unless it is the version of this program alone. */
static void merge_fill_measured_by(const struct merge_source *sources,
                                   const struct merge_pool *pool, const char *version,
                                   struct inventory *inventory)
{
    struct names versions = {0};
    for (size_t i = 0; i < pool->count; i++) {
        const struct merge_source *source = &sources[pool->entries[i].source];
        if (pool->entries[i].dropped || pool->entries[i].planned)
            continue;
        if (source->kind != MERGE_INVENTORY)
            names_add(&versions, source->spool.origin.version);
        else
            for (size_t k = 0; k < inventory_measured_by_count(&source->inventory); k++)
                names_add(&versions, inventory_measured_by(&source->inventory, k));
    }
    names_settle(&versions);
    if (versions.count > 1 || (versions.count == 1 && strcmp(versions.items[0], version) != 0)) {
        inventory->measured_by = mem_array(versions.count, sizeof *inventory->measured_by);
        for (size_t i = 0; i < versions.count; i++)
            inventory->measured_by[inventory->measured_by_count++] = str_copy(versions.items[i]);
    }
    free(versions.items);
}

void merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
                const struct report_merge_request *request, struct inventory *inventory)
{
    merge_fill_nodes(sources, count, pool, inventory);
    merge_fill_head(sources, count, request, inventory);
    merge_fill_measured_by(sources, pool, request->version, inventory);
    merge_add_counts(sources, count, pool, request->ends_now, inventory);
}

/* Without MPI each rank writes a plan, so a rank without a plan left nothing. */
static void merge_add_planless(struct inventory *inventory, const bool *own, uint32_t ranks)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        char reason[96];
        const struct inventory_unmeasured entry = {
            .rank = (int32_t)rank, .status = GPU_LOST, .reason = reason};
        snprintf(reason, sizeof reason,
                 "rank %u did not start, or ended before it had listed its GPUs", rank);
        if (!own[rank])
            inventory_add_unknown(inventory, &entry);
    }
}

/* Skips ranks that rank 0 called lost, but that later measured without MPI. */
static void merge_add_unknown(struct inventory *inventory, const struct merge_source *sources,
                              size_t count, const struct merge_source *source)
{
    const struct spool_survey *survey = &source->spool.survey;
    if (source->kind != MERGE_SURVEY || (source->again && !survey->apart))
        return;
    bool *own = merge_own_plans(sources, count, source);
    for (size_t i = 0; i < survey->unknown_count; i++) {
        const struct gpu_result *rank = &survey->unknown[i];
        const struct inventory_unmeasured entry = {
            .node = rank->node,
            .rank = rank->rank,
            .status = rank->status,
            .reason = rank->reason,
            .gpus_allocated = rank->run.gpus_allocated,
        };
        bool counts = survey->apart || rank->rank < 0 || (uint32_t)rank->rank >= survey->ranks ||
                      !own[rank->rank];
        if (counts)
            inventory_add_unknown(inventory, &entry);
    }
    if (survey->apart && !source->again)
        merge_add_planless(inventory, own, survey->ranks);
    free(own);
}

void merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory)
{
    size_t known = inventory->unmeasured_count;
    for (size_t s = 0; s < count; s++) {
        const struct inventory *other = &sources[s].inventory;
        merge_add_unknown(inventory, sources, count, &sources[s]);
        for (size_t i = 0; i < other->unmeasured_count && !sources[s].again; i++)
            if (!other->unmeasured[i].uuid)
                inventory_add_unknown(inventory, &other->unmeasured[i]);
    }
    inventory_settle_unknown(inventory, known);
}
