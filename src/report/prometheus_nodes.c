/* Metrics of nodes: findings about them, and results that are missing. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/prometheus_parts.h"

/* What a finding is about. */
static const char *subject(const struct inventory_node *place)
{
    if (str_equal(place->finding, inventory_bare_node))
        return "no_gpus";
    if (place->node && !place->gpu_count)
        return "fewer_gpus";
    return place->gpu_count ? "gpus" : "fleet";
}

static const char *kind_name(const struct inventory_node *place)
{
    return place->accused ? inventory_kind_name(place->kind) : "watched";
}

static int place_order(const void *left, const void *right)
{
    const struct inventory_node *a = *(struct inventory_node *const *)left;
    const struct inventory_node *b = *(struct inventory_node *const *)right;
    int order = str_order(a->node, b->node);
    if (!order)
        order = str_order(a->finding, b->finding);
    if (!order)
        order = strcmp(subject(a), subject(b));
    return order ? order : strcmp(kind_name(a), kind_name(b));
}

/* Several slots may have the same finding: duplicate samples would make Prometheus reject all. */
static void put_findings(const struct exposition *to, const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_node_finding_info";
    size_t count = inventory->node_finding_count;
    const struct inventory_node **places = mem_array(count, sizeof *places);
    if (!places) {
        to->out->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        places[i] = &inventory->node_findings[i];
    qsort(places, count, sizeof *places, place_order);
    exposition_info(to, name,
                    "Findings about nodes (no_gpus, fewer_gpus, gpus) and about the fleet.");
    for (size_t i = 0; i < count; i++) {
        if (i && !place_order(&places[i - 1], &places[i]))
            continue;
        strbuf_puts(to->out, name);
        exposition_label(to, "{Hostname=\"", places[i]->node);
        exposition_label(to, ",about=\"", subject(places[i]));
        exposition_label(to, ",kind=\"", kind_name(places[i]));
        exposition_label(to, ",finding=\"", places[i]->finding);
        exposition_value(to, "} ", 1);
    }
    free(places);
}

static int unmeasured_order(const void *left, const void *right)
{
    const struct inventory_unmeasured *a = *(struct inventory_unmeasured *const *)left;
    const struct inventory_unmeasured *b = *(struct inventory_unmeasured *const *)right;
    int order = str_order(a->node, b->node);
    return order ? order : (a->status > b->status) - (a->status < b->status);
}

static void put_unmeasured(const struct exposition *to, const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_node_unmeasured";
    size_t count = inventory->unmeasured_count;
    const struct inventory_unmeasured **all = mem_array(count, sizeof *all);
    if (!all) {
        to->out->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        all[i] = &inventory->unmeasured[i];
    qsort(all, count, sizeof *all, unmeasured_order);
    exposition_gauge(to, name, NULL,
                     "GPUs of a node that could not be measured, and ranks that told nothing.");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !unmeasured_order(&all[i], &all[end]);)
            end++;
        strbuf_puts(to->out, name);
        exposition_label(to, "{Hostname=\"", all[i]->node);
        exposition_label(to, ",status=\"", gpu_status_name(all[i]->status));
        exposition_value(to, "} ", (double)(end - i));
    }
    free(all);
}

void prometheus_put_nodes(const struct exposition *to, const struct inventory *inventory)
{
    if (inventory->node_finding_count)
        put_findings(to, inventory);
    if (inventory->unmeasured_count)
        put_unmeasured(to, inventory);
}
