/* Nodes with fewer GPUs than expected: by the launcher, a setting, a baseline or nodes like them.
 */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "inventory/results.h"
#include "judge/judge.h"
#include "judge/verdict.h"

/* Between the models of a node. */
static const char AND[] = " and ";

/* What is known of one node. Strings belong to the inventory, except models. */
struct census_node {
    const char *name;
    char *models;       /* of its GPUs, sorted: "nvidia-h200 and nvidia-l40" */
    uint32_t seen;      /* GPUs that were listed */
    uint32_t given;     /* GPUs that the job could use there; 0: not known */
    uint32_t had;       /* in the baseline, without those that are on another node now */
    bool parts;         /* it has MIG instances or virtual GPUs, which are no measure of its GPUs */
    bool listed;        /* there is an entry for it */
    bool failed;        /* a rank there could not list its GPUs */
    const char *reason; /* why, if the driver was to list some; NULL: not known */
};

/* How many GPUs each node lists, was given and had. */
struct node_census {
    struct census_node *items;
    size_t count;
    size_t named; /* the first ones are sorted by name */
    bool unsure;  /* a rank whose GPUs are not known was lost: any node may have more GPUs */
    bool trusted; /* most nodes list the GPUs that the job was given there */
};

static int census_gpu_order(const void *left, const void *right)
{
    const struct inventory_gpu *const *a = left, *const *b = right;
    int order = str_order((*a)->node, (*b)->node);
    return order ? order : str_order((*a)->model, (*b)->model);
}

static bool gpu_is_part(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu)
{
    const struct fact *mig = facts_get(&gpu->config, "mig");
    const struct fact *mode =
        inventory_fact_of(lookup, gpu, INVENTORY_CONFIG, gpu_kind_key(GPU_KIND_VIRTUAL));
    return (gpu->uuid && strncmp(gpu->uuid, "MIG-", 4) == 0) ||
           (mig && mig->kind == FACT_BOOL && mig->flag) ||
           (mode && mode->kind == FACT_TEXT && gpu_kind_is(GPU_KIND_VIRTUAL, mode->text));
}

/* gpus: those of one node, sorted by model. */
static void census_fill_node(const struct inventory_lookup *lookup,
                             const struct inventory_gpu *const *gpus, size_t count,
                             struct census_node *out)
{
    struct strbuf models = {0};
    out->name = gpus[0]->node;
    out->seen = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        uint32_t given = gpus[i]->run.gpus_allocated;
        out->parts |= gpu_is_part(lookup, gpus[i]);
        if (given && (!out->given || given < out->given))
            out->given = given;
        if (!i || !str_equal(gpus[i]->model, gpus[i - 1]->model))
            strbuf_printf(&models, "%s%s", i ? AND : "",
                          gpus[i]->model ? gpus[i]->model : "unknown");
    }
    out->models = models.data;
}

static int census_name_order(const void *left, const void *right)
{
    const struct census_node *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static struct census_node *census_find(const struct node_census *census, const char *name)
{
    const struct census_node wanted = {.name = name};
    struct census_node *found =
        bsearch(&wanted, census->items, census->named, sizeof *census->items, census_name_order);
    for (size_t i = census->named; !found && i < census->count; i++)
        if (strcmp(census->items[i].name, name) == 0)
            found = &census->items[i];
    return found;
}

/* Ranks whose GPUs are not known. */
static void census_add_ranks(struct node_census *census, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->unmeasured_count; i++) {
        const struct inventory_unmeasured *rank = &inventory->unmeasured[i];
        if (rank->uuid)
            continue;
        if (rank->status == GPU_LOST || !rank->node) {
            census->unsure = true;
            continue;
        }
        struct census_node *node = census_find(census, rank->node);
        if (!node) {
            node = &census->items[census->count++];
            *node = (struct census_node){.name = rank->node};
        }
        node->failed = true;
        if (rank->gpus_allocated) {
            node->reason = rank->reason;
            node->given = rank->gpus_allocated;
        }
    }
}

static void census_add_baseline(struct node_census *census, const struct inventory *baseline,
                                const struct inventory *inventory)
{
    struct inventory_lookup *now = NULL;
    now = inventory_lookup_create(inventory);
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        const struct inventory_gpu *was = &baseline->gpus[i];
        struct census_node *node = was->node ? census_find(census, was->node) : NULL;
        const struct inventory_gpu *is = was->uuid ? inventory_find_gpu(now, was->uuid) : NULL;
        if (node)
            node->had += !is || str_equal(is->node, was->node);
    }
    inventory_lookup_destroy(now);
}

/* If a launcher's setting hides GPUs, it does so on most nodes. */
static bool census_is_trusted(const struct node_census *census)
{
    size_t kept = 0, broken = 0;
    for (size_t i = 0; i < census->count; i++) {
        const struct census_node *node = &census->items[i];
        kept += node->given && node->seen >= node->given;
        broken += node->given && node->seen < node->given;
    }
    return kept >= 3 && kept >= 2 * broken;
}

/* baseline NULL: none. The inventory outlives the census. The caller frees
 * the items and their models. */
static struct node_census census_take(const struct inventory *inventory,
                                      const struct inventory *baseline)
{
    const struct inventory_gpu **gpus = mem_array(inventory->gpu_count, sizeof *gpus);
    struct inventory_lookup *lookup = inventory_lookup_create(inventory);
    struct node_census census = {0};
    size_t count = 0;
    census.items =
        mem_array(inventory->gpu_count + inventory->unmeasured_count, sizeof *census.items);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (inventory->gpus[i].node)
            gpus[count++] = &inventory->gpus[i];
    if (count)
        sort_stable(gpus, count, sizeof *gpus, census_gpu_order);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && str_equal(gpus[i]->node, gpus[end]->node);)
            end++;
        census_fill_node(lookup, gpus + i, end - i, &census.items[census.count++]);
    }
    free(gpus);
    inventory_lookup_destroy(lookup);
    census.named = census.count;
    census_add_ranks(&census, inventory);
    census.trusted = census_is_trusted(&census);
    if (baseline)
        census_add_baseline(&census, baseline, inventory);
    return census;
}

/* How many GPUs most nodes with the same models have. */
struct node_majority {
    size_t nodes, votes; /* nodes of that kind; those with the usual number of GPUs */
    uint32_t usual;
};

/* Sorted by models, then by number of GPUs. */
static int census_kind_order(const void *left, const void *right)
{
    const struct census_node *a = left, *b = right;
    int order = str_order(a->models, b->models);
    return order ? order : (a->seen > b->seen) - (a->seen < b->seen);
}

/* nodes: sorted, of one kind. The most frequent number of GPUs; the larger of two. */
static struct node_majority find_node_majority(const struct census_node *nodes, size_t count)
{
    struct node_majority found = {.nodes = count};
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && nodes[i].seen == nodes[end].seen;)
            end++;
        if (end - i >= found.votes) {
            found.votes = end - i;
            found.usual = nodes[i].seen;
        }
    }
    return found;
}

/* A node may be built this way if its number of GPUs divides the usual one (4, 2 or 1 of 8), or if
 * at least three nodes and a tenth of all have that number. alike: nodes with the same number. */
static bool node_may_be_right(const struct node_majority *majority, uint32_t seen, size_t alike)
{
    return majority->usual % seen == 0 || (alike >= 3 && 10 * alike >= majority->nodes);
}

static void missing_add(const struct judge_basis *basis, struct inventory *inventory,
                        struct census_node *node, bool sure, char *text)
{
    node->listed = true;
    verdict_add_place(basis->config, inventory, sure ? EVIDENCE_GPUS_MISSING : EVIDENCE_FEWER_GPUS,
                      VERDICT_FAILING, NAN, node->name, text);
}

/* How many GPUs the setting says that this node has; 0: it does not say. */
static uint32_t gpus_by_setting(const struct judge_config *config, const struct census_node *node)
{
    for (size_t i = 0; i < config->node_size_count; i++)
        if (fnmatch(config->node_sizes[i].pattern, node->name, 0) == 0)
            return config->node_sizes[i].gpus;
    return 0;
}

/* The job could use fewer GPUs of this node than expected: none is missing for all that is known.
 */
static bool was_given_fewer(const struct census_node *node, uint32_t expected)
{
    return node->given && node->given < expected;
}

/* Expectations of this node alone. If a rank lists no GPU and the launcher promised none, there
 * need not be any for this job. */
static void missing_judge_alone(const struct judge_basis *basis, const struct node_census *census,
                                struct census_node *node, struct inventory *inventory)
{
    uint32_t setting = gpus_by_setting(basis->config, node);
    uint32_t expected = setting ? setting : node->had;
    bool sure = node->seen && !node->failed && !census->unsure;
    bool fewer = !node->parts && node->seen < expected && !was_given_fewer(node, expected);
    bool given = !node->parts && node->given && node->seen < node->given;
    if (given && !(fewer && sure))
        missing_add(basis, inventory, node, census->trusted && !census->unsure,
                    str_format("%u of %u GPUs that the job was given%s%s", node->seen, node->given,
                               node->reason ? ": " : "", node->reason ? node->reason : ""));
    else if (fewer)
        missing_add(basis, inventory, node, sure,
                    str_format("%u of %u GPUs: %s", node->seen, expected,
                               setting ? "gpus_per_node in the configuration says so"
                                       : "so many were in the baseline"));
}

/* nodes: sorted, of one kind. */
static void missing_judge_kind(const struct judge_basis *basis, const struct node_census *census,
                               struct census_node *nodes, size_t count, struct inventory *inventory)
{
    struct node_majority majority = find_node_majority(nodes, count);
    bool clear = majority.votes >= 3 && 3 * majority.votes >= 2 * count;
    for (size_t i = 0, first = 0; i < count; i++) {
        struct census_node *node = &nodes[i];
        size_t end = i + 1;
        first = nodes[first].seen == node->seen ? first : i;
        while (end < count && nodes[end].seen == node->seen)
            end++;
        missing_judge_alone(basis, census, node, inventory);
        if (node->listed || !clear || node->parts || node->failed || node->seen >= majority.usual ||
            was_given_fewer(node, majority.usual))
            continue;
        bool sure = !census->unsure && !node_may_be_right(&majority, node->seen, end - first);
        missing_add(basis, inventory, node, sure,
                    str_format("%u of %u GPUs: %zu of %zu nodes with %s have %u", node->seen,
                               majority.usual, majority.votes, count, node->models,
                               majority.usual));
    }
}

/* Where `more` begins or ends with `models`: the other models in it, *out_length letters; else
 * NULL.
 */
static const char *find_lacking_model(const char *models, const char *more, int *out_length)
{
    size_t own = models ? strlen(models) : 0, all = more ? strlen(more) : 0;
    size_t gap = strlen(AND);
    if (!own || all <= own + gap)
        return NULL;
    size_t rest = all - own - gap;
    *out_length = (int)rest;
    if (strncmp(more, models, own) == 0 && strncmp(more + own, AND, gap) == 0)
        return more + own + gap;
    bool at_end = strcmp(more + all - own, models) == 0;
    return at_end && strncmp(more + rest, AND, gap) == 0 ? more : NULL;
}

/* Nodes of one kind that have a model less than those of another. They may be built this way, so
 * none is accused. */
static void missing_judge_lacking(const struct judge_basis *basis, struct census_node *nodes,
                                  size_t count, const struct census_node *others,
                                  size_t other_count, struct inventory *inventory)
{
    const struct node_majority majority = find_node_majority(others, other_count);
    int length = 0;
    const char *model = find_lacking_model(nodes->models, others->models, &length);
    size_t all = count + other_count;
    bool rare = count < 3 || 10 * count < all;
    if (!model || !rare || other_count < 3 || 3 * other_count < 2 * all || others->parts)
        return;
    for (size_t i = 0; i < count; i++) {
        struct census_node *node = &nodes[i];
        if (node->listed || node->parts || node->failed || node->seen >= majority.usual ||
            was_given_fewer(node, majority.usual))
            continue;
        missing_add(basis, inventory, node, false,
                    str_format("%u of %u GPUs: none is %.*s, which %zu of %zu nodes with %s have",
                               node->seen, majority.usual, length, model, other_count, all,
                               node->models));
    }
}

/* The end of the nodes with the same models. */
static size_t census_kind_end(const struct node_census *census, size_t first)
{
    size_t end = first + 1;
    while (end < census->count && str_equal(census->items[first].models, census->items[end].models))
        end++;
    return end;
}

static int node_entry_order(const void *left, const void *right)
{
    const struct inventory_node *a = left, *b = right;
    return str_order(a->node, b->node);
}

void judge_missing_gpus(const struct judge_basis *basis, struct inventory *inventory)
{
    size_t first = inventory->node_finding_count;
    if (basis->drift_only)
        return;
    struct node_census census = census_take(inventory, basis->baseline);
    if (census.count)
        sort_stable(census.items, census.count, sizeof *census.items, census_kind_order);
    for (size_t i = 0, end; i < census.count; i = end) {
        end = census_kind_end(&census, i);
        missing_judge_kind(basis, &census, &census.items[i], end - i, inventory);
    }
    for (size_t i = 0, end; i < census.count; i = end) {
        end = census_kind_end(&census, i);
        for (size_t k = 0, stop; k < census.count; k = stop) {
            stop = census_kind_end(&census, k);
            missing_judge_lacking(basis, &census.items[i], end - i, &census.items[k], stop - k,
                                  inventory);
        }
    }
    if (inventory->node_finding_count > first)
        sort_stable(inventory->node_findings + first, inventory->node_finding_count - first,
                    sizeof *inventory->node_findings, node_entry_order);
    verdict_drop_places(inventory);
    for (size_t i = 0; i < census.count; i++)
        free(census.items[i].models);
    free(census.items);
}
