/* Compares an inventory with an order: the stages, and those of outliers, unmeasured GPUs, board
 * parts and facts that the driver reports. */
#include "report/accept/accept.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "markup/text.h"
#include "report/accept/accept_stages.h"

/* A GPU that was not measured, or while another process used it, shows none of its figures. */
static void accept_measured(struct accept_work *work)
{
    struct accept *accept = work->accept;
    for (size_t i = 0; i < work->gpu_count; i++) {
        const struct accept_gpu *gpu = &work->gpus[i];
        const enum gpu_status status = gpu->gpu->status;
        const struct inventory_unmeasured *entry =
            inventory_find_unmeasured(work->lookup, gpu->gpu->uuid);
        const char *reason = entry ? entry->reason : NULL;
        accept->met += gpu->measured;
        if (gpu->measured)
            continue;
        if (!reason && status == GPU_BUSY) /* measured nevertheless: --busy measure */
            reason = "another process computed on the GPU";
        accept_add(accept, gpu->gpu,
                   &(struct accept_finding){.class = ACCEPT_NOT_SHOWN,
                                            .model = accept->order->models[gpu->ordered].name,
                                            .what = "measurement",
                                            .ordered = str_copy("measured"),
                                            .found = str_copy(gpu_status_name(status)),
                                            .reason = str_copy(reason)});
    }
}

static bool order_has_node(const struct order *order, const char *node)
{
    bool found = !order->node_count;
    for (size_t i = 0; i < order->node_count && node && !found; i++)
        found = fnmatch(order->nodes[i].names, node, 0) == 0;
    return found || !order->other_nodes_ignored;
}

/* uuid NULL: about a whole node. */
static void accept_add_fault(struct accept_work *work, const char *uuid, const char *node,
                             enum verdict verdict, const char *cause)
{
    struct accept *accept = work->accept;
    const struct inventory_gpu *gpu = uuid ? inventory_find_gpu(work->lookup, uuid) : NULL;
    const struct inventory_model *model = gpu ? inventory_model_of(work->lookup, gpu) : NULL;
    if (accept->order->outliers_allowed[verdict]) {
        accept->allowed_outliers++;
        return;
    }
    accept_add(accept, gpu,
               &(struct accept_finding){.class = ACCEPT_FAULTY,
                                        .node = node,
                                        .model = model ? model->name : NULL,
                                        .what = "health",
                                        .ordered = str_copy("no outlier"),
                                        .found = str_copy(verdict_name(verdict)),
                                        .reason = str_copy(cause)});
}

/* What the survey says about single GPUs and about whole nodes. */
static void accept_outliers(struct accept_work *work)
{
    struct accept *accept = work->accept;
    const struct inventory *inventory = accept->inventory;
    for (size_t i = 0; i < work->gpu_count; i++)
        accept->met += work->gpus[i].gpu->status == GPU_OK;
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *entry = &inventory->outliers[i];
        if (order_has_node(accept->order, entry->node))
            accept_add_fault(work, entry->uuid, entry->node, entry->verdict,
                             entry->evidence_count ? entry->evidence[0].cause : NULL);
    }
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        if (place->action >= ACTION_ALERT && order_has_node(accept->order, place->node))
            accept_add_fault(work, NULL, place->node, place->verdict, place->finding);
    }
}

/* An idle PCIe link may be slower than it is under load. */
static bool is_idle_link(const struct accept_work *work, const struct accept_gpu *gpu,
                         enum order_fact which)
{
    if (which != ORDER_PCIE_GENERATION && which != ORDER_PCIE_WIDTH)
        return false;
    const struct fact *loaded =
        inventory_fact_of(work->lookup, gpu->gpu, INVENTORY_CONFIG, "pcie_under_load");
    return !loaded || loaded->kind != FACT_BOOL || !loaded->flag;
}

/* gpu NULL: about all GPUs of the model. value NaN: not known. reason NULL: none. */
static void accept_add_fact(struct accept_work *work, const struct accept_gpu *gpu, size_t model,
                            enum order_fact which, enum accept_class class, double value,
                            const char *reason)
{
    const struct order_fact_source *source = &order_fact_sources[which];
    const struct order_model *order = &work->accept->order->models[model];
    struct strbuf ordered = {0}, found = {0};
    strbuf_puts(&ordered, "at least ");
    text_put_quantity(&ordered, order->facts[which], source->unit);
    if (isnan(value))
        strbuf_puts(&found, "not known");
    else
        text_put_quantity(&found, value, source->unit);
    accept_add(work->accept, gpu ? gpu->gpu : NULL,
               &(struct accept_finding){.class = class,
                                        .model = order->name,
                                        .what = source->name,
                                        .ordered = ordered.data,
                                        .found = found.data,
                                        .reason = str_copy(reason)});
}

/* One fact of all GPUs of a model. If no measured GPU has it, that is reported once. Of a GPU that
 * was not measured only what is known is compared. */
static void accept_fact(struct accept_work *work, size_t model, enum order_fact which)
{
    const struct order_fact_source *source = &order_fact_sources[which];
    const double ordered = work->accept->order->models[model].facts[which];
    size_t known = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < work->gpu_count; i++) {
            const struct accept_gpu *gpu = &work->gpus[i];
            if (gpu->ordered != model)
                continue;
            const struct fact *fact =
                inventory_fact_of(work->lookup, gpu->gpu, source->set, source->key);
            const double value = fact_number(fact);
            if (pass == 0)
                known += !isnan(value) && gpu->measured;
            else if (isnan(value) && gpu->measured && known)
                accept_add_fact(work, gpu, model, which, ACCEPT_NOT_SHOWN, NAN,
                                fact && fact->kind == FACT_UNKNOWN ? fact->text : NULL);
            else if (value >= ordered)
                work->accept->met++;
            else if (!isnan(value) && is_idle_link(work, gpu, which))
                accept_add_fact(work, gpu, model, which, ACCEPT_NOT_SHOWN, value,
                                "read while the link was idle");
            else if (!isnan(value))
                accept_add_fact(work, gpu, model, which, ACCEPT_BELOW, value, NULL);
        }
    if (!known && work->accept->models[model].measured)
        accept_add_fact(work, NULL, model, which, ACCEPT_NOT_SHOWN, NAN,
                        "the driver tells it for no GPU of the model");
}

static void accept_part(struct accept_work *work, const struct accept_gpu *gpu)
{
    const struct order_model *order = &work->accept->order->models[gpu->ordered];
    const char *part = accept_board_part(work, gpu);
    struct strbuf ordered = {0};
    for (size_t i = 0; i < order->part_count; i++)
        if (str_equal(order->parts[i], part)) {
            work->accept->met++;
            return;
        }
    if (!order->part_count || (!part && !gpu->measured))
        return;
    for (size_t i = 0; i < order->part_count; i++)
        strbuf_printf(&ordered, "%s%s", i ? " or " : "", order->parts[i]);
    accept_add(work->accept, gpu->gpu,
               &(struct accept_finding){.class = part ? ACCEPT_OTHER : ACCEPT_NOT_SHOWN,
                                        .model = order->name,
                                        .what = "board part",
                                        .ordered = ordered.data,
                                        .found = str_copy(part ? part : "not known")});
}

/* Board parts, and facts that the driver reports. */
static void accept_facts(struct accept_work *work)
{
    const struct order *order = work->accept->order;
    for (size_t i = 0; i < work->gpu_count; i++)
        accept_part(work, &work->gpus[i]);
    for (size_t m = 0; m < order->model_count; m++)
        for (int which = 0; which < ORDER_FACT_COUNT; which++)
            if (!isnan(order->models[m].facts[which]))
                accept_fact(work, m, (enum order_fact)which);
}

static int finding_order(const void *left, const void *right)
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

static void accept_make_models(struct accept *accept)
{
    accept->models = mem_array(accept->order->model_count, sizeof *accept->models);
    for (size_t m = 0; m < accept->order->model_count; m++) {
        const struct order_model *order = &accept->order->models[m];
        accept->models[m].order = order;
        accept->models[m].figures = mem_array(order->figure_count, sizeof(struct accept_figure));
        for (size_t i = 0; i < order->figure_count; i++)
            accept->models[m].figures[i] = (struct accept_figure){.order = &order->figures[i],
                                                                  .least = NAN,
                                                                  .median = NAN,
                                                                  .most = NAN,
                                                                  .spread = NAN};
    }
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
    lookup = inventory_lookup_create(inventory);
    struct accept_work work = {.accept = &accept,
                               .lookup = lookup,
                               .gpus = mem_array(inventory->gpu_count, sizeof *work.gpus)};
    accept_make_models(&accept);
    accept_nodes(&work);
    accept_measured(&work);
    accept_outliers(&work);
    accept_facts(&work);
    accept_figures(&work);
    free(work.gpus);
    inventory_lookup_destroy(lookup);
    if (accept.finding_count)
        sort_stable(accept.findings, accept.finding_count, sizeof *accept.findings, finding_order);
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
