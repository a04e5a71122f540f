/* How many GPUs each node lists, was given and had. */
#include "judge/node_census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/results.h"

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
static int fill_node(const struct inventory_gpu *const *gpus, size_t count, struct census_node *out)
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
            strbuf_printf(&models, "%s%s", i ? NODE_CENSUS_AND : "",
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
    const struct census_node *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static struct census_node *find(const struct node_census *nodes, const char *name)
{
    const struct census_node wanted = {.name = name};
    struct census_node *found =
        bsearch(&wanted, nodes->items, nodes->named, sizeof *nodes->items, name_order);
    for (size_t i = nodes->named; !found && i < nodes->count; i++)
        if (strcmp(nodes->items[i].name, name) == 0)
            found = &nodes->items[i];
    return found;
}

/* Ranks whose GPUs are not known. */
static void add_ranks(struct node_census *nodes, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->unmeasured_count; i++) {
        const struct inventory_unmeasured *rank = &inventory->unmeasured[i];
        if (rank->uuid)
            continue;
        if (rank->status == GPU_LOST || !rank->node) {
            nodes->unsure = true;
            continue;
        }
        struct census_node *node = find(nodes, rank->node);
        if (!node) {
            node = &nodes->items[nodes->count++];
            *node = (struct census_node){.name = rank->node};
        }
        node->failed = true;
        if (rank->gpus_given) {
            node->reason = rank->reason;
            node->given = rank->gpus_given;
        }
    }
}

static int add_baseline(struct node_census *nodes, const struct inventory *baseline,
                        const struct inventory *inventory)
{
    struct inventory_lookup *now = NULL;
    if (!baseline)
        return 0;
    if (inventory_lookup_create(inventory, &now))
        return -ENOMEM;
    for (size_t i = 0; i < baseline->gpu_count; i++) {
        const struct inventory_gpu *was = &baseline->gpus[i];
        struct census_node *node = was->node ? find(nodes, was->node) : NULL;
        const struct inventory_gpu *is = was->uuid ? inventory_find_gpu(now, was->uuid) : NULL;
        if (node)
            node->had += !is || str_equal(is->node, was->node);
    }
    inventory_lookup_destroy(now);
    return 0;
}

/* If a launcher's setting hides GPUs, it does so on most nodes. */
static bool is_trusted(const struct node_census *nodes)
{
    size_t kept = 0, broken = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct census_node *node = &nodes->items[i];
        kept += node->given && node->seen >= node->given;
        broken += node->given && node->seen < node->given;
    }
    return kept >= 3 && kept >= 2 * broken;
}

static int collect(const struct inventory *inventory, struct node_census *out)
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

int node_census_take(const struct inventory *inventory, const struct inventory *baseline,
                     struct node_census *out_census)
{
    struct node_census census = {0};
    if (collect(inventory, &census) || add_baseline(&census, baseline, inventory)) {
        node_census_fini(&census);
        return -ENOMEM;
    }
    *out_census = census;
    return 0;
}

void node_census_fini(struct node_census *census)
{
    for (size_t i = 0; i < census->count; i++)
        free(census->items[i].models);
    free(census->items);
    *census = (struct node_census){0};
}
