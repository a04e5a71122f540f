/* Compares nodes and numbers of GPUs with the order. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/accept/accept_stages.h"

/* Something that the inventory says about a node: a GPU, a rank whose GPUs are not known (both
 * NULL if no GPU was visible there). */
struct census_entry {
    const char *node; /* NULL: not known */
    const struct inventory_gpu *gpu;
    const struct inventory_unmeasured *rank;
};

struct census {
    struct accept_work *work;
    struct census_entry *entries; /* by node */
    size_t count;
    size_t lost;     /* ranks whose GPUs are not known */
    size_t homeless; /* of them, those whose node is not known */
    size_t *found;   /* by model of the order: GPUs on the node in work */
    size_t *nodes;   /* by entry of the order's nodes: nodes found */
};

enum { NOWHERE = -1 };

static int census_order(const void *left, const void *right)
{
    const struct census_entry *a = left, *b = right;
    int order = str_order(a->node, b->node);
    if (order || !a->gpu || !b->gpu)
        return order;
    return (a->gpu->index > b->gpu->index) - (a->gpu->index < b->gpu->index);
}

static void census_collect(struct census *census)
{
    const struct inventory *v = census->work->accept->inventory;
    census->entries = mem_array(v->gpu_count + v->unmeasured_count + v->node_finding_count,
                                sizeof *census->entries);
    for (size_t i = 0; i < v->gpu_count; i++)
        census->entries[census->count++] =
            (struct census_entry){v->gpus[i].node, &v->gpus[i], NULL};
    for (size_t i = 0; i < v->unmeasured_count; i++) {
        if (v->unmeasured[i].uuid)
            continue;
        census->lost++;
        census->homeless += !v->unmeasured[i].node;
        census->entries[census->count++] =
            (struct census_entry){v->unmeasured[i].node, NULL, &v->unmeasured[i]};
    }
    for (size_t i = 0; i < v->node_finding_count; i++)
        if (str_equal(v->node_findings[i].finding, inventory_bare_node))
            census->entries[census->count++] =
                (struct census_entry){v->node_findings[i].node, NULL, NULL};
    if (census->count)
        sort_stable(census->entries, census->count, sizeof *census->entries, census_order);
}

/* The place of a model in the order; its number of models if it was not ordered. */
static size_t order_find_model(const struct order *order, const char *name)
{
    size_t m = 0;
    while (m < order->model_count && !str_equal(order->models[m].name, name))
        m++;
    return m;
}

/* Counts a GPU by model, or reports that it is of another one. nodes NULL: any node will do. */
static void census_take_gpu(struct census *census, const struct inventory_gpu *gpu,
                            const struct order_nodes *nodes)
{
    struct accept_work *work = census->work;
    const struct order *order = work->accept->order;
    const struct inventory_model *model = inventory_model_of(work->lookup, gpu);
    const char *name = model ? model->name : NULL;
    const size_t m = name ? order_find_model(order, name) : order->model_count;
    if (m == order->model_count || (nodes && !nodes->gpus[m])) {
        struct strbuf ordered = {0}; /* what the order wants there */
        for (size_t k = 0; k < order->model_count; k++)
            if (!nodes || nodes->gpus[k])
                strbuf_printf(&ordered, "%s%s", ordered.length ? " or " : "",
                              order->models[k].name);
        accept_add(work->accept, gpu,
                   &(struct accept_finding){.class = name ? ACCEPT_OTHER : ACCEPT_NOT_SHOWN,
                                            .model = name,
                                            .what = "model",
                                            .ordered = ordered.data,
                                            .found = str_copy(name ? name : "not known")});
        return;
    }
    const bool measured = gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
    census->found[m]++;
    work->gpus[work->gpu_count++] = (struct accept_gpu){gpu, model, m, measured};
    work->accept->models[m].found++;
    work->accept->models[m].measured += measured;
}

/* Fewer GPUs are missing only if every rank that could have seen them listed its GPUs. */
static void accept_count(struct accept *accept, const char *node, const char *model,
                         const char *what, size_t ordered, size_t found, size_t unknown)
{
    const bool open = found < ordered && unknown;
    if (found == ordered) {
        accept->met++;
        return;
    }
    accept_add(accept, NULL,
               &(struct accept_finding){
                   .class = open              ? ACCEPT_NOT_SHOWN
                            : found < ordered ? ACCEPT_MISSING
                                              : ACCEPT_OTHER,
                   .node = node,
                   .model = model,
                   .what = what,
                   .ordered = str_format("%zu", ordered),
                   .found = str_format("%zu", found),
                   .reason = open ? str_format("%zu rank%s did not tell which GPUs it has", unknown,
                                               unknown == 1 ? "" : "s")
                                  : NULL});
}

static int order_find_nodes(const struct order *order, const char *node)
{
    for (size_t i = 0; node && i < order->node_count; i++)
        if (fnmatch(order->nodes[i].names, node, 0) == 0)
            return (int)i;
    return NOWHERE;
}

/* All entries of one node. */
static void census_check_node(struct census *census, const struct census_entry *entries,
                              size_t count)
{
    struct accept *accept = census->work->accept;
    const struct order *order = accept->order;
    const char *node = entries[0].node;
    const int place = order_find_nodes(order, node);
    const struct order_nodes *nodes = place == NOWHERE ? NULL : &order->nodes[place];
    size_t gpus = 0, ranks = census->homeless;
    for (size_t i = 0; i < count; i++) {
        gpus += entries[i].gpu != NULL;
        ranks += entries[i].rank != NULL && entries[i].node;
    }
    if (order->node_count && !nodes) {
        accept->ignored_nodes += order->other_nodes_ignored;
        if (!order->other_nodes_ignored && (node || gpus))
            accept_add(accept, NULL,
                       &(struct accept_finding){
                           .class = node ? ACCEPT_OTHER : ACCEPT_NOT_SHOWN,
                           .node = node,
                           .what = "node",
                           .ordered = str_copy("not ordered"),
                           .found = str_format("%zu GPU%s", gpus, gpus == 1 ? "" : "s")});
        return;
    }
    for (size_t m = 0; m < order->model_count && nodes; m++)
        census->found[m] = 0;
    for (size_t i = 0; i < count; i++)
        if (entries[i].gpu)
            census_take_gpu(census, entries[i].gpu, nodes);
    if (!nodes)
        return;
    census->nodes[place]++;
    for (size_t m = 0; m < order->model_count; m++)
        if (nodes->gpus[m])
            accept_count(accept, node, order->models[m].name, "GPUs", nodes->gpus[m],
                         census->found[m], ranks);
}

/* Adds to the last finding the name in the inventory that is nearest to a model of which no GPU was
 * found. */
static void model_hint_at_name(struct accept *accept, const struct order_model *model)
{
    const struct inventory *inventory = accept->inventory;
    struct accept_finding *last = &accept->findings[accept->finding_count - 1];
    const char **names = mem_array(inventory->model_count, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < inventory->model_count; i++)
        if (inventory->models[i].name)
            names[count++] = inventory->models[i].name;
    const char *near = str_nearest(model->name, names, count);
    if (near && !last->reason)
        last->reason = str_format("the inventory has \"%s\": is the name right?", near);
    free(names);
}

/* Numbers of nodes; without nodes in the order, numbers of GPUs. */
static void census_check_totals(struct census *census)
{
    struct accept *accept = census->work->accept;
    const struct order *order = accept->order;
    for (size_t i = 0; i < order->node_count; i++)
        accept_count(accept, order->nodes[i].names, NULL, "nodes", order->nodes[i].count,
                     census->nodes[i], census->homeless);
    for (size_t m = 0; m < order->model_count; m++) {
        const struct order_model *model = &order->models[m];
        const size_t before = accept->finding_count;
        if (!order->node_count)
            accept_count(accept, NULL, model->name, "GPUs", model->count, accept->models[m].found,
                         census->lost);
        if (accept->finding_count > before && !accept->models[m].found)
            model_hint_at_name(accept, model);
    }
}

/* A rank that did not report its GPUs may hide any fault. */
static void census_check_ranks(struct census *census)
{
    struct accept *accept = census->work->accept;
    const struct order *order = accept->order;
    for (size_t i = 0; i < census->count; i++) {
        const struct inventory_unmeasured *rank = census->entries[i].rank;
        if (!rank || (order->node_count && order->other_nodes_ignored && rank->node &&
                      order_find_nodes(order, rank->node) == NOWHERE))
            continue;
        accept_add(accept, NULL,
                   &(struct accept_finding){.class = ACCEPT_NOT_SHOWN,
                                            .node = rank->node,
                                            .what = "rank",
                                            .ordered = str_copy("measured"),
                                            .found = str_copy(gpu_status_name(rank->status)),
                                            .reason = str_copy(rank->reason)});
    }
}

void accept_nodes(struct accept_work *work)
{
    const struct order *order = work->accept->order;
    struct census census = {.work = work,
                            .found = mem_array(order->model_count, sizeof *census.found),
                            .nodes = mem_array(order->node_count, sizeof *census.nodes)};
    census_collect(&census);
    for (size_t i = 0, end; i < census.count; i = end) {
        for (end = i + 1;
             end < census.count && str_equal(census.entries[end].node, census.entries[i].node);)
            end++;
        census_check_node(&census, census.entries + i, end - i);
    }
    census_check_totals(&census);
    census_check_ranks(&census);
    free(census.entries);
    free(census.found);
    free(census.nodes);
}
