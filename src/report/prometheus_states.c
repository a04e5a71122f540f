/* Metrics of the state of each GPU: its place, its status, whether and why it is an outlier. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "report/drain_reason.h"
#include "report/prometheus_parts.h"

/* One reason to accuse a GPU: a finding of its own, or the text of a finding about its node. */
struct accusation {
    const char *uuid;
    enum inventory_kind kind;
    const struct inventory_finding *finding; /* the worst of its own; NULL: there is none */
    const char *place;
};

struct accusations {
    struct accusation *items; /* by UUID, the most severe kind of each first */
    size_t count;
};

bool prometheus_was_judged(const struct inventory_gpu *gpu)
{
    return gpu->uuid && (gpu->status == GPU_OK || gpu->status == GPU_OUTLIER);
}

void prometheus_put_gpu(const struct exposition *to, const char *family,
                        const struct inventory_gpu *gpu)
{
    char index[16] = "";
    if (gpu->index >= 0)
        snprintf(index, sizeof index, "%d", (int)gpu->index);
    strbuf_puts(to->out, family);
    exposition_label(to, "{UUID=\"", gpu->uuid);
    exposition_label(to, ",Hostname=\"", gpu->node);
    exposition_label(to, ",gpu=\"", index);
    exposition_label(to, ",model=\"", gpu->model);
}

/* A finding of its own comes before one about its node. */
static int accusation_order(const void *left, const void *right)
{
    const struct accusation *a = left, *b = right;
    int order = str_order(a->uuid, b->uuid);
    if (!order)
        order = (a->kind > b->kind) - (a->kind < b->kind);
    return order ? order : (a->place != NULL) - (b->place != NULL);
}

/* items: freed with free(); false: out of memory. */
static bool collect_accusations(const struct inventory *inventory, struct accusations *out)
{
    size_t room = inventory->outlier_count;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        room += inventory->node_findings[i].gpu_count;
    out->items = mem_array(room, sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *outlier = &inventory->outliers[i];
        out->items[out->count++] =
            (struct accusation){outlier->uuid, outlier->kind,
                                outlier->finding_count ? &outlier->findings[0] : NULL, NULL};
    }
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        for (size_t g = 0; place->accused && g < place->gpu_count; g++)
            out->items[out->count++] =
                (struct accusation){place->gpus[g], place->kind, NULL, place->finding};
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, accusation_order);
    return true;
}

/* The most severe accusation of a GPU; NULL: none. */
static const struct accusation *find_accusation(const struct accusations *all, const char *uuid)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_order(all->items[middle].uuid, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return uuid && low < all->count && str_equal(all->items[low].uuid, uuid) ? &all->items[low]
                                                                             : NULL;
}

static void put_infos(const struct exposition *to, const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_gpu_info";
    static const struct {
        const char *fact, *lead;
    } boards[] = {{"serial", ",serial=\""}, {"vbios", ",vbios=\""}, {"driver", ",driver=\""}};
    exposition_info(to, name, "Where a GPU is, what it carries and how its survey ended.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!gpu->uuid)
            continue;
        prometheus_put_gpu(to, name, gpu);
        exposition_label(to, ",pci=\"", gpu->pci);
        exposition_label(to, ",status=\"", gpu_status_name(gpu->status));
        for (size_t b = 0; b < COUNT_OF(boards); b++)
            exposition_label(to, boards[b].lead, facts_text(&gpu->board, boards[b].fact));
        exposition_value(to, "} ", 1);
    }
}

/* A GPU whose worker crashed or hung twice was not measured, but it is accused. */
static void put_flags(const struct exposition *to, const struct inventory *inventory,
                      const struct accusations *accusations)
{
    static const char name[] = "gpumemtopo_gpu_outlier";
    exposition_gauge(to, name, NULL,
                     "1 for a GPU that differs from its peers, 0 for one that does not.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        bool accused = find_accusation(accusations, gpu->uuid);
        if (!prometheus_was_judged(gpu) && !accused)
            continue;
        prometheus_put_gpu(to, name, gpu);
        exposition_value(to, "} ", accused || gpu->status == GPU_OUTLIER);
    }
}

static void put_kinds(const struct exposition *to, const struct inventory *inventory,
                      const struct accusations *accusations)
{
    static const char name[] = "gpumemtopo_outlier_info";
    exposition_info(to, name,
                    "Each outlier: its most severe kind, metric and cause of the worst "
                    "finding.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        const struct accusation *accusation = find_accusation(accusations, gpu->uuid);
        char metric[DRAIN_METRIC_CHARS + 1] = "";
        struct drain_reason reason = {.deviation = NAN};
        if (!accusation)
            continue;
        if (accusation->finding) {
            reason.metric = accusation->finding->metric;
            reason.cause = accusation->finding->cause;
        } else if (accusation->place)
            drain_reason_split(accusation->place, &reason, metric);
        prometheus_put_gpu(to, name, gpu);
        exposition_label(to, ",kind=\"", inventory_kind_name(accusation->kind));
        exposition_label(to, ",metric=\"", reason.metric);
        exposition_label(to, ",cause=\"", reason.cause);
        exposition_value(to, "} ", 1);
    }
}

void prometheus_put_states(const struct exposition *to, const struct inventory *inventory)
{
    struct accusations accusations = {0};
    if (!inventory->gpu_count)
        return;
    if (!collect_accusations(inventory, &accusations))
        to->out->failed = true;
    put_infos(to, inventory);
    put_flags(to, inventory, &accusations);
    if (accusations.count)
        put_kinds(to, inventory, &accusations);
    free(accusations.items);
}
