/* Compares an inventory with an order: the stages, outliers, GPUs that were not measured. */
#include "report/accept/accept.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/accept/accept_stages.h"

static int by_uuid(const void *left, const void *right)
{
    const struct inventory_unmeasured *const *a = left, *const *b = right;
    return str_order((*a)->uuid, (*b)->uuid);
}

/* Why a GPU was not measured; NULL: the inventory does not say. `sorted` is by UUID. */
static const char *reason_of(const struct inventory_unmeasured **sorted, size_t count,
                             const struct inventory_gpu *gpu)
{
    const struct inventory_unmeasured key = {.uuid = gpu->uuid}, *wanted = &key;
    const struct inventory_unmeasured **found =
        count && gpu->uuid ? bsearch(&wanted, sorted, count, sizeof *sorted, by_uuid) : NULL;
    return found ? (*found)->reason : NULL;
}

static int add_unmeasured(struct accept *accept, const struct accept_gpu *gpu, const char *why)
{
    char *reason = NULL;
    if (!why && gpu->gpu->status == GPU_BUSY) /* measured nevertheless: --busy measure */
        why = "another process computed on the GPU";
    if (str_copy_to(&reason, why))
        return -ENOMEM;
    return accept_add(accept, gpu->gpu,
                      &(struct accept_finding){.class = ACCEPT_NOT_SHOWN,
                                               .model = accept->order->models[gpu->ordered].name,
                                               .what = "measurement",
                                               .ordered = str_copy("measured"),
                                               .found = str_copy(gpu_status_name(gpu->gpu->status)),
                                               .reason = reason});
}

/* A GPU that was not measured, or while another process used it, shows none of its figures. */
static int check_measured(struct accept_work *work)
{
    const struct inventory *inventory = work->accept->inventory;
    const struct inventory_unmeasured **sorted =
        mem_array(inventory->unmeasured_count, sizeof *sorted);
    int rc = sorted ? 0 : -ENOMEM;
    for (size_t i = 0; i < inventory->unmeasured_count && !rc; i++)
        sorted[i] = &inventory->unmeasured[i];
    if (!rc && inventory->unmeasured_count)
        qsort(sorted, inventory->unmeasured_count, sizeof *sorted, by_uuid);
    for (size_t i = 0; i < work->gpu_count && !rc; i++) {
        const struct accept_gpu *gpu = &work->gpus[i];
        work->accept->met += gpu->measured;
        if (!gpu->measured)
            rc = add_unmeasured(work->accept, gpu,
                                reason_of(sorted, inventory->unmeasured_count, gpu->gpu));
    }
    free(sorted);
    return rc;
}

static bool is_of_order(const struct order *order, const char *node)
{
    bool found = !order->node_count;
    for (size_t i = 0; i < order->node_count && node && !found; i++)
        found = fnmatch(order->nodes[i].names, node, 0) == 0;
    return found || !order->other_nodes_ignored;
}

/* uuid NULL: about a whole node. */
static int add_fault(struct accept_work *work, const char *uuid, const char *node,
                     enum inventory_kind kind, const char *cause)
{
    struct accept *accept = work->accept;
    const struct inventory_gpu *gpu = uuid ? inventory_find_gpu(work->lookup, uuid) : NULL;
    const struct inventory_model *model = gpu ? inventory_model_of(work->lookup, gpu) : NULL;
    char *reason = NULL;
    if (accept->order->outliers_allowed[kind]) {
        accept->allowed_outliers++;
        return 0;
    }
    if (str_copy_to(&reason, cause))
        return -ENOMEM;
    return accept_add(accept, gpu,
                      &(struct accept_finding){.class = ACCEPT_FAULTY,
                                               .node = node,
                                               .model = model ? model->name : NULL,
                                               .what = "health",
                                               .ordered = str_copy("no outlier"),
                                               .found = str_copy(inventory_kind_name(kind)),
                                               .reason = reason});
}

/* What the survey says about single GPUs and about whole nodes. */
static int check_outliers(struct accept_work *work)
{
    struct accept *accept = work->accept;
    const struct inventory *inventory = accept->inventory;
    for (size_t i = 0; i < work->gpu_count; i++)
        accept->met += work->gpus[i].gpu->status == GPU_OK;
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *entry = &inventory->outliers[i];
        const char *cause = entry->finding_count ? entry->findings[0].cause : NULL;
        if (is_of_order(accept->order, entry->node) &&
            add_fault(work, entry->uuid, entry->node, entry->kind, cause))
            return -ENOMEM;
    }
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        if (place->accused && is_of_order(accept->order, place->node) &&
            add_fault(work, NULL, place->node, place->kind, place->finding))
            return -ENOMEM;
    }
    return 0;
}

static int by_class(const void *left, const void *right)
{
    const struct accept_finding *a = left, *b = right;
    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    int order = str_order(a->node, b->node);
    if (!order)
        order = (a->index > b->index) - (a->index < b->index);
    if (!order)
        order = str_order(a->uuid, b->uuid);
    return order ? order : str_order(a->what, b->what);
}

static int make_models(struct accept *accept)
{
    accept->models = mem_array(accept->order->model_count, sizeof *accept->models);
    if (!accept->models)
        return -ENOMEM;
    for (size_t m = 0; m < accept->order->model_count; m++) {
        const struct order_model *order = &accept->order->models[m];
        accept->models[m].order = order;
        accept->models[m].figures = mem_array(order->figure_count, sizeof(struct accept_figure));
        if (!accept->models[m].figures)
            return -ENOMEM;
        for (size_t i = 0; i < order->figure_count; i++)
            accept->models[m].figures[i] = (struct accept_figure){
                .order = &order->figures[i], .least = NAN, .median = NAN, .most = NAN};
    }
    return 0;
}

int accept_compare(const struct order *order, const struct inventory *inventory,
                   struct accept *out_accept, struct err *err)
{
    struct accept accept = {.order = order, .inventory = inventory};
    struct inventory_lookup *lookup = NULL;
    if (order->node_count && inventory->anonymous)
        return err_set(err, -EINVAL,
                       "the order names nodes, but the inventory has pseudonyms: give the one that "
                       "has the names");
    struct accept_work work = {.accept = &accept};
    int rc = inventory_lookup_create(inventory, &lookup);
    work.lookup = lookup;
    work.gpus = mem_array(inventory->gpu_count, sizeof *work.gpus);
    if (rc || !work.gpus || make_models(&accept) || accept_nodes(&work) || check_measured(&work) ||
        check_outliers(&work) || accept_facts(&work) || accept_figures(&work))
        rc = err_no_memory(err);
    free(work.gpus);
    inventory_lookup_destroy(lookup);
    if (rc) {
        accept_fini(&accept);
        return rc;
    }
    if (accept.finding_count)
        qsort(accept.findings, accept.finding_count, sizeof *accept.findings, by_class);
    *out_accept = accept;
    return 0;
}

void accept_fini(struct accept *accept)
{
    for (size_t i = 0; i < accept->finding_count; i++) {
        free(accept->findings[i].ordered);
        free(accept->findings[i].found);
        free(accept->findings[i].reason);
    }
    for (size_t m = 0; accept->models && m < accept->order->model_count; m++)
        free(accept->models[m].figures);
    free(accept->findings);
    free(accept->models);
    *accept = (struct accept){0};
}
