/* Counts the ranks of a merge. */
#include "report/merge_ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

static bool same_command(char *const *a, size_t a_count, char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 1; i < a_count && same;
         i++) /* argument 0 is the program, with or without its folder */
        same = str_equal(a[i], b[i]);
    return same;
}

static bool same_inventory(const struct inventory *a, const struct inventory *b)
{
    bool same = str_equal(a->generated, b->generated) && a->total_ranks == b->total_ranks &&
                a->seed == b->seed && a->gpu_count == b->gpu_count &&
                same_command(a->command, a->command_count, b->command, b->command_count);
    for (size_t i = 0; i < a->gpu_count && same; i++)
        same = str_equal(a->gpus[i].uuid, b->gpus[i].uuid);
    return same;
}

static bool has_gpu(const struct inventory *inventory, const char *uuid)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (str_equal(inventory->gpus[i].uuid, uuid))
            return true;
    return false;
}

/* True if the plan was spooled while the survey of the inventory ran, by the same command and with
 * one of its GPUs. No two surveys measure the same GPU at the same time. */
static bool same_plan(const struct merge_source *inventory, const struct merge_source *plan)
{
    enum { SLACK_MS = 2000 }; /* the time in an inventory has a resolution of seconds */
    const struct inventory *made = &inventory->inventory;
    const struct spool_survey *survey = &plan->spool.survey;
    double age_ms = (double)inventory->time_ms - (double)plan->time_ms;
    return age_ms >= -SLACK_MS && age_ms <= 1000 * fmax(made->wall_s, 0) + SLACK_MS &&
           made->total_ranks == survey->ranks && made->seed == plan->spool.origin.seed &&
           same_command(made->command, made->command_count, survey->command,
                        survey->command_count) &&
           survey->expected_count && has_gpu(made, survey->expected[0].uuid);
}

/* True if `other` describes the same survey and is used instead of `source`: an inventory instead
 * of a plan, the plan of rank 0 instead of the plan of one rank, else the later file. */
static bool is_told_by(const struct merge_source *source, const struct merge_source *other)
{
    if (source->kind == MERGE_SURVEY && other->kind == MERGE_INVENTORY)
        return same_plan(other, source);
    if (source->kind != other->kind)
        return false;
    if (source->kind == MERGE_INVENTORY)
        return source < other && same_inventory(&source->inventory, &other->inventory);
    bool apart = source->spool.survey.apart, other_apart = other->spool.survey.apart;
    return (apart == other_apart ? source < other : apart) && *source->spool.origin.survey &&
           str_equal(source->spool.origin.survey, other->spool.origin.survey);
}

int merge_find_again(struct merge_source *sources, size_t count)
{
    struct merge_source **heads = mem_array(count, sizeof *heads);
    size_t head_count = 0;
    if (!heads)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind != MERGE_GPU)
            heads[head_count++] = &sources[i];
    for (size_t i = 0; i < head_count; i++)
        for (size_t k = 0; k < head_count && !heads[i]->again; k++)
            heads[i]->again = k != i && is_told_by(heads[i], heads[k]);
    free(heads);
    return 0;
}

/* Without MPI, also marks the plans of the ranks of that survey that had no GPU. */
static void overtake(struct merge_source *sources, size_t count, struct merge_source *plan)
{
    plan->again = true;
    for (size_t i = 0; i < count && plan->spool.survey.apart; i++) {
        struct merge_source *other = &sources[i];
        if (other->kind == MERGE_SURVEY && !other->spool.survey.expected_count &&
            str_equal(other->spool.origin.survey, plan->spool.origin.survey))
            other->again = true;
    }
}

int merge_find_overtaken(struct merge_source *sources, size_t count, const struct merge_pool *pool)
{
    size_t *left = mem_array(count, sizeof *left); /* GPUs of each file that no later survey has */
    if (!left)
        return -ENOMEM;
    for (size_t i = 0; i < pool->count; i++)
        left[pool->entries[i].source] += !pool->entries[i].overtaken;
    for (size_t i = 0; i < count; i++)
        if (sources[i].kind == MERGE_SURVEY && sources[i].spool.survey.expected_count && !left[i])
            overtake(sources, count, &sources[i]);
    free(left);
    return 0;
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
static int count_silent(const struct merge_source *sources, size_t number,
                        const struct merge_pool *pool, uint32_t *out_silent,
                        uint32_t *out_recovered, bool *out_all)
{
    struct rank *ranks = mem_array(pool->count, sizeof *ranks);
    size_t count = 0;
    if (!ranks)
        return -ENOMEM;
    size_t dropped = 0, own = 0;
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
    qsort(ranks, count, sizeof *ranks, rank_order);
    *out_all = own && dropped == own;
    *out_silent = *out_recovered = 0;
    for (size_t i = 0; i < count; i++) {
        bool first = !i || ranks[i].number != ranks[i - 1].number;
        *out_silent += first && ranks[i].missing;
        *out_recovered += first && !ranks[i].missing;
    }
    free(ranks);
    return 0;
}

/* Ranks whose GPUs are not known. */
static uint32_t count_unknown(const struct inventory *inventory)
{
    uint32_t count = 0;
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        count += !inventory->unmeasured[i].uuid;
    return count;
}

bool *merge_own_plans(const struct merge_source *sources, size_t count,
                      const struct merge_source *plan)
{
    const uint32_t ranks = plan->spool.survey.ranks;
    bool *own = mem_array(ranks, sizeof *own);
    for (size_t i = 0; own && i < count; i++) {
        const struct spool_survey *other = &sources[i].spool.survey;
        if (sources[i].kind == MERGE_SURVEY && other->apart && other->rank < ranks &&
            str_equal(sources[i].spool.origin.survey, plan->spool.origin.survey))
            own[other->rank] = true;
    }
    return own;
}

/* Ranks of the survey that left nothing. plan: its only plan, or the one that is used. */
static int count_planless(const struct merge_source *sources, size_t count,
                          const struct merge_source *plan, uint32_t *out_lost)
{
    const struct spool_survey *survey = &plan->spool.survey;
    bool *own = merge_own_plans(sources, count, plan);
    if (!own)
        return -ENOMEM;
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
    *out_lost = lost;
    return 0;
}

int merge_add_ranks(const struct merge_source *sources, size_t count, size_t number,
                    const struct merge_pool *pool, struct inventory *inventory)
{
    const struct merge_source *source = &sources[number];
    uint32_t silent, recovered, lost = 0;
    bool all;
    if (source->kind == MERGE_GPU)
        return 0;
    if (count_silent(sources, number, pool, &silent, &recovered, &all))
        return -ENOMEM;
    if (source->kind == MERGE_SURVEY) {
        if (!source->again && count_planless(sources, count, source, &lost))
            return -ENOMEM;
        inventory->total_ranks += source->again ? 0 : source->spool.survey.ranks;
        inventory->total_lost_ranks += silent + lost;
        return 0;
    }
    lost = source->inventory.total_lost_ranks;
    uint32_t unknown = count_unknown(&source->inventory);
    if (all) /* all GPUs are in other files, so only unknown ranks are lost */
        lost = lost < unknown ? lost : unknown;
    else
        lost -= lost < recovered ? lost : recovered;
    inventory->total_ranks += source->again ? 0 : source->inventory.total_ranks;
    inventory->total_lost_ranks += source->again ? silent : lost;
    return 0;
}
