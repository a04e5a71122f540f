/* Nodes with fewer GPUs than expected: by the launcher, a setting, a baseline or their likes. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"
#include "judge/judge.h"
#include "judge/place_findings.h"

/* What is known of one node. Strings belong to the inventory, except models. */
struct node {
    const char *name;
    char *models;       /* of its GPUs: "nvidia-h200" */
    uint32_t seen;      /* GPUs that were listed */
    uint32_t given;     /* GPUs that the job could use there; 0: not known */
    uint32_t had;       /* in the baseline, without those that are on another node now */
    bool mig;           /* its instances are no measure of its GPUs */
    bool failed;        /* a rank there could not list its GPUs */
    const char *reason; /* why, if the driver was to list some; NULL: not known */
};

struct nodes {
    struct node *items;
    size_t count;
    size_t named; /* the first ones are sorted by name */
    bool unsure;  /* a rank whose GPUs are not known was lost: any node may have more GPUs */
    bool trusted; /* most nodes list the GPUs that the job was given there */
};

/* How many GPUs most nodes with the same models have. */
struct majority {
    size_t nodes, votes; /* nodes of that kind; those with the usual number of GPUs */
    uint32_t usual;
};

static int gpu_order(const void *left, const void *right)
{
    const struct inventory_gpu *const *a = left, *const *b = right;
    int order = str_order((*a)->node, (*b)->node);
    return order ? order : str_order((*a)->model, (*b)->model);
}

static bool is_mig(const struct inventory_gpu *gpu)
{
    const struct fact *mig = facts_get(&gpu->config, "mig");
    return (gpu->uuid && strncmp(gpu->uuid, "MIG-", 4) == 0) ||
           (mig && mig->kind == FACT_BOOL && mig->flag);
}

/* gpus: those of one node, sorted by model. */
static int fill_node(const struct inventory_gpu *const *gpus, size_t count, struct node *out)
{
    struct strbuf models = {0};
    out->name = gpus[0]->node;
    out->seen = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        uint32_t given = gpus[i]->gpus_given;
        out->mig |= is_mig(gpus[i]);
        if (given && (!out->given || given < out->given))
            out->given = given;
        if (!i || !str_equal(gpus[i]->model, gpus[i - 1]->model))
            strbuf_printf(&models, "%s%s", i ? " and " : "",
                          gpus[i]->model ? gpus[i]->model : "unknown");
    }
    if (models.failed) {
        strbuf_fini(&models);
        return -ENOMEM;
    }
    out->models = models.data;
    return 0;
}

static int name_order(const void *left, const void *right)
{
    const struct node *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static struct node *find(const struct nodes *nodes, const char *name)
{
    const struct node wanted = {.name = name};
    struct node *found =
        bsearch(&wanted, nodes->items, nodes->named, sizeof *nodes->items, name_order);
    for (size_t i = nodes->named; !found && i < nodes->count; i++)
        if (strcmp(nodes->items[i].name, name) == 0)
            found = &nodes->items[i];
    return found;
}

/* Ranks whose GPUs are not known. */
static void add_ranks(struct nodes *nodes, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->unmeasured_count; i++) {
        const struct inventory_unmeasured *rank = &inventory->unmeasured[i];
        if (rank->uuid)
            continue;
        if (rank->status == GPU_LOST || !rank->node) {
            nodes->unsure = true;
            continue;
        }
        struct node *node = find(nodes, rank->node);
        if (!node) {
            node = &nodes->items[nodes->count++];
            *node = (struct node){.name = rank->node};
        }
        node->failed = true;
        if (rank->gpus_given) {
            node->reason = rank->reason;
            node->given = rank->gpus_given;
        }
    }
}

static int add_baseline(struct nodes *nodes, const struct inventory *baseline,
                        const struct inventory *inventory)
{
    struct inventory_lookup *now = NULL;
    if (!baseline)
        return 0;
    if (inventory_lookup_create(inventory, &now))
        return -ENOMEM;
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        const struct inventory_gpu *was = &baseline->gpus[i];
        struct node *node = was->node ? find(nodes, was->node) : NULL;
        const struct inventory_gpu *is = was->uuid ? inventory_find_gpu(now, was->uuid) : NULL;
        if (node)
            node->had += !is || str_equal(is->node, was->node);
    }
    inventory_lookup_destroy(now);
    return 0;
}

/* If a launcher's setting hides GPUs, it does so on most nodes. */
static bool is_trusted(const struct nodes *nodes)
{
    size_t kept = 0, broken = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node *node = &nodes->items[i];
        kept += node->given && node->seen >= node->given;
        broken += node->given && node->seen < node->given;
    }
    return kept >= 3 && kept >= 2 * broken;
}

static int collect(const struct inventory *inventory, struct nodes *out)
{
    const struct inventory_gpu **gpus = mem_array(inventory->gpu_count, sizeof *gpus);
    out->items = mem_array(inventory->gpu_count + inventory->unmeasured_count, sizeof *out->items);
    int rc = gpus && out->items ? 0 : -ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < inventory->gpu_count && !rc; i++)
        if (inventory->gpus[i].node)
            gpus[count++] = &inventory->gpus[i];
    if (count)
        qsort(gpus, count, sizeof *gpus, gpu_order);
    for (size_t i = 0, end; i < count && !rc; i = end) {
        for (end = i + 1; end < count && str_equal(gpus[i]->node, gpus[end]->node);)
            end++;
        rc = fill_node(gpus + i, end - i, &out->items[out->count++]);
    }
    out->named = out->count;
    if (!rc)
        add_ranks(out, inventory);
    out->trusted = is_trusted(out);
    free(gpus);
    return rc;
}

/* Sorted by models, then by number of GPUs. */
static int kind_order(const void *left, const void *right)
{
    const struct node *a = left, *b = right;
    int order = str_order(a->models, b->models);
    return order ? order : (a->seen > b->seen) - (a->seen < b->seen);
}

/* nodes: sorted, of one kind. The most frequent number of GPUs; the larger of two. */
static struct majority find_majority(const struct node *nodes, size_t count)
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
static uint32_t by_setting(const struct judge_config *config, const struct node *node)
{
    for (size_t i = 0; i < config->node_size_count; i++)
        if (fnmatch(config->node_sizes[i].pattern, node->name, 0) == 0)
            return config->node_sizes[i].gpus;
    return 0;
}

/* The job could use fewer GPUs of this node than expected: none is missing for all that is known.
 */
static bool was_given_fewer(const struct node *node, uint32_t expected)
{
    return node->given && node->given < expected;
}

static int judge_given(const struct nodes *nodes, const struct node *node,
                       struct inventory *inventory)
{
    return add(inventory, node->name, nodes->trusted && !nodes->unsure,
               str_format("%u of %u GPUs that the job was given%s%s", node->seen, node->given,
                          node->reason ? ": " : "", node->reason ? node->reason : ""));
}

/* Expectations of this node alone. *out_told: there is an entry for it now. If a rank lists no GPU
 * and the launcher promised none, there need not be any for this job. */
static int judge_alone(const struct judge_basis *basis, const struct nodes *nodes,
                       const struct node *node, struct inventory *inventory, bool *out_told)
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
static int judge_kind(const struct judge_basis *basis, const struct nodes *all,
                      const struct node *nodes, size_t count, struct inventory *inventory)
{
    struct majority majority = find_majority(nodes, count);
    bool clear = majority.votes >= 3 && 3 * majority.votes >= 2 * count;
    for (size_t i = 0, first = 0; i < count; i++) {
        const struct node *node = &nodes[i];
        size_t end = i + 1;
        bool told;
        first = nodes[first].seen == node->seen ? first : i;
        while (end < count && nodes[end].seen == node->seen)
            end++;
        int rc = judge_alone(basis, all, node, inventory, &told);
        if (rc)
            return rc;
        if (told || !clear || node->mig || node->failed || node->seen >= majority.usual ||
            was_given_fewer(node, majority.usual))
            continue;
        bool accused = !all->unsure && !may_be_right(&majority, node->seen, end - first);
        rc = add(inventory, node->name, accused,
                 str_format("%u of %u GPUs: %zu of %zu nodes with %s have %u", node->seen,
                            majority.usual, majority.votes, count, node->models, majority.usual));
        if (rc)
            return rc;
    }
    return 0;
}

static int judge_all(const struct judge_basis *basis, struct nodes *nodes,
                     struct inventory *inventory)
{
    int rc = 0;
    if (nodes->count)
        qsort(nodes->items, nodes->count, sizeof *nodes->items, kind_order);
    for (size_t i = 0, end; i < nodes->count && !rc; i = end) {
        for (end = i + 1;
             end < nodes->count && str_equal(nodes->items[i].models, nodes->items[end].models);)
            end++;
        rc = judge_kind(basis, nodes, &nodes->items[i], end - i, inventory);
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
    struct nodes nodes = {0};
    size_t first = inventory->node_finding_count;
    int rc = basis->drift_only ? 0 : collect(inventory, &nodes);
    if (!rc)
        rc = add_baseline(&nodes, basis->baseline, inventory);
    if (!rc)
        rc = judge_all(basis, &nodes, inventory);
    if (inventory->node_finding_count > first)
        qsort(inventory->node_findings + first, inventory->node_finding_count - first,
              sizeof *inventory->node_findings, entry_order);
    for (size_t i = 0; i < nodes.count; i++)
        free(nodes.items[i].models);
    free(nodes.items);
    return rc ? err_no_memory(err) : 0;
}

size_t judge_accused_nodes(const struct inventory *inventory)
{
    size_t count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        count += inventory->node_findings[i].accused && !inventory->node_findings[i].gpu_count;
    return count;
}
