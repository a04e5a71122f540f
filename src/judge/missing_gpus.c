/* Nodes with fewer GPUs than expected: by the launcher, a setting, a baseline or their likes. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "judge/judge.h"
#include "judge/node_census.h"
#include "judge/place_findings.h"

/* How many GPUs most nodes with the same models have. */
struct majority {
    size_t nodes, votes; /* nodes of that kind; those with the usual number of GPUs */
    uint32_t usual;
};

/* Sorted by models, then by number of GPUs. */
static int kind_order(const void *left, const void *right)
{
    const struct census_node *a = left, *b = right;
    int order = str_order(a->models, b->models);
    return order ? order : (a->seen > b->seen) - (a->seen < b->seen);
}

/* nodes: sorted, of one kind. The most frequent number of GPUs; the larger of two. */
static struct majority find_majority(const struct census_node *nodes, size_t count)
{
    struct majority found = {.nodes = count};
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
static bool may_be_right(const struct majority *majority, uint32_t seen, size_t alike)
{
    return majority->usual % seen == 0 || (alike >= 3 && 10 * alike >= majority->nodes);
}

static int add(struct inventory *inventory, const char *node, bool accused, char *text)
{
    int rc = place_findings_add(inventory, node, text, NULL);
    if (rc)
        return rc;
    struct inventory_node *entry = &inventory->node_findings[inventory->node_finding_count - 1];
    entry->accused = accused;
    entry->kind = KIND_FAILING;
    return 0;
}

/* How many GPUs the setting says that this node has; 0: it does not say. */
static uint32_t by_setting(const struct judge_config *config, const struct census_node *node)
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

static int judge_given(const struct node_census *nodes, const struct census_node *node,
                       struct inventory *inventory)
{
    return add(inventory, node->name, nodes->trusted && !nodes->unsure,
               str_format("%u of %u GPUs that the job was given%s%s", node->seen, node->given,
                          node->reason ? ": " : "", node->reason ? node->reason : ""));
}

/* Expectations of this node alone. *out_told: there is an entry for it now. If a rank lists no GPU
 * and the launcher promised none, there need not be any for this job. */
static int judge_alone(const struct judge_basis *basis, const struct node_census *nodes,
                       const struct census_node *node, struct inventory *inventory, bool *out_told)
{
    uint32_t setting = by_setting(basis->config, node);
    uint32_t expected = setting ? setting : node->had;
    bool sure = node->seen && !node->failed && !nodes->unsure;
    bool fewer = !node->mig && node->seen < expected && !was_given_fewer(node, expected);
    bool given = !node->mig && node->given && node->seen < node->given;
    *out_told = fewer || given;
    if (!*out_told)
        return 0;
    if (given && !(fewer && sure))
        return judge_given(nodes, node, inventory);
    return add(inventory, node->name, sure,
               str_format("%u of %u GPUs: %s", node->seen, expected,
                          setting ? "gpus_per_node in the configuration says so"
                                  : "so many were in the baseline"));
}

/* nodes: sorted, of one kind. */
static int judge_kind(const struct judge_basis *basis, const struct node_census *all,
                      struct census_node *nodes, size_t count, struct inventory *inventory)
{
    struct majority majority = find_majority(nodes, count);
    bool clear = majority.votes >= 3 && 3 * majority.votes >= 2 * count;
    for (size_t i = 0, first = 0; i < count; i++) {
        struct census_node *node = &nodes[i];
        size_t end = i + 1;
        first = nodes[first].seen == node->seen ? first : i;
        while (end < count && nodes[end].seen == node->seen)
            end++;
        int rc = judge_alone(basis, all, node, inventory, &node->told);
        if (rc)
            return rc;
        if (node->told || !clear || node->mig || node->failed || node->seen >= majority.usual ||
            was_given_fewer(node, majority.usual))
            continue;
        node->told = true;
        bool accused = !all->unsure && !may_be_right(&majority, node->seen, end - first);
        rc = add(inventory, node->name, accused,
                 str_format("%u of %u GPUs: %zu of %zu nodes with %s have %u", node->seen,
                            majority.usual, majority.votes, count, node->models, majority.usual));
        if (rc)
            return rc;
    }
    return 0;
}

/* Where `more` begins or ends with `models`: the other models in it, *out_length letters; else
 * NULL.
 */
static const char *find_lacking(const char *models, const char *more, int *out_length)
{
    size_t own = models ? strlen(models) : 0, all = more ? strlen(more) : 0;
    size_t gap = strlen(NODE_CENSUS_AND);
    if (!own || all <= own + gap)
        return NULL;
    size_t rest = all - own - gap;
    *out_length = (int)rest;
    if (strncmp(more, models, own) == 0 && strncmp(more + own, NODE_CENSUS_AND, gap) == 0)
        return more + own + gap;
    bool at_end = strcmp(more + all - own, models) == 0;
    return at_end && strncmp(more + rest, NODE_CENSUS_AND, gap) == 0 ? more : NULL;
}

/* Nodes of one kind that have a model less than those of another. They may be built this way, so
 * none is accused. */
static int judge_lacking(struct census_node *nodes, size_t count, const struct census_node *others,
                         size_t other_count, struct inventory *inventory)
{
    const struct majority majority = find_majority(others, other_count);
    int length = 0;
    const char *model = find_lacking(nodes->models, others->models, &length);
    size_t all = count + other_count;
    bool rare = count < 3 || 10 * count < all;
    if (!model || !rare || other_count < 3 || 3 * other_count < 2 * all || others->mig)
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct census_node *node = &nodes[i];
        if (node->told || node->mig || node->failed || node->seen >= majority.usual ||
            was_given_fewer(node, majority.usual))
            continue;
        node->told = true;
        int rc = add(inventory, node->name, false,
                     str_format("%u of %u GPUs: none is %.*s, which %zu of %zu nodes with %s have",
                                node->seen, majority.usual, length, model, other_count, all,
                                node->models));
        if (rc)
            return rc;
    }
    return 0;
}

/* The end of the nodes with the same models. */
static size_t kind_end(const struct node_census *nodes, size_t first)
{
    size_t end = first + 1;
    while (end < nodes->count && str_equal(nodes->items[first].models, nodes->items[end].models))
        end++;
    return end;
}

static int judge_all(const struct judge_basis *basis, struct node_census *nodes,
                     struct inventory *inventory)
{
    int rc = 0;
    if (nodes->count)
        qsort(nodes->items, nodes->count, sizeof *nodes->items, kind_order);
    for (size_t i = 0, end; i < nodes->count && !rc; i = end) {
        end = kind_end(nodes, i);
        rc = judge_kind(basis, nodes, &nodes->items[i], end - i, inventory);
    }
    for (size_t i = 0, end; i < nodes->count && !rc; i = end) {
        end = kind_end(nodes, i);
        for (size_t k = 0, stop; k < nodes->count && !rc; k = stop) {
            stop = kind_end(nodes, k);
            rc = judge_lacking(&nodes->items[i], end - i, &nodes->items[k], stop - k, inventory);
        }
    }
    return rc;
}

static int entry_order(const void *left, const void *right)
{
    const struct inventory_node *a = left, *b = right;
    return str_order(a->node, b->node);
}

int judge_missing_gpus(const struct judge_basis *basis, struct inventory *inventory,
                       struct err *err)
{
    struct node_census nodes = {0};
    size_t first = inventory->node_finding_count;
    if (basis->drift_only)
        return 0;
    int rc = node_census_take(inventory, basis->baseline, &nodes);
    if (!rc)
        rc = judge_all(basis, &nodes, inventory);
    if (inventory->node_finding_count > first)
        qsort(inventory->node_findings + first, inventory->node_finding_count - first,
              sizeof *inventory->node_findings, entry_order);
    node_census_fini(&nodes);
    return rc ? err_no_memory(err) : 0;
}

size_t judge_accused_nodes(const struct inventory *inventory)
{
    size_t count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        count += inventory->node_findings[i].accused && !inventory->node_findings[i].gpu_count;
    return count;
}
