/* The inventory of a fleet: names and release. */
#include "inventory/inventory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inventory/names.h"

const char *const inventory_kind_names[] = {"failing", "degraded", "misconfigured", "mismatched",
                                            NULL};

const char inventory_bare_node[] = "no GPU visible on this node";

const char *inventory_kind_name(enum inventory_kind kind)
{
    return inventory_kind_names[kind];
}

bool inventory_value_is_good(const struct inventory_value *value)
{
    return value->status == MEASURE_OK && value->bound == MEASURE_EXACT && isfinite(value->value);
}

static void texts_fini(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static void model_fini(struct inventory_model *model)
{
    free(model->id);
    free(model->name);
    free(model->key);
    facts_fini(&model->identity);
    facts_fini(&model->config);
    facts_fini(&model->health);
    for (size_t i = 0; i < model->population_count; i++) {
        free(model->populations[i].by);
        free(model->populations[i].value);
        facts_fini(&model->populations[i].figures);
    }
    free(model->populations);
    measures_fini(&model->memory);
}

void inventory_gpu_fini(struct inventory_gpu *gpu)
{
    free(gpu->uuid);
    free(gpu->node);
    free(gpu->pci);
    free(gpu->model);
    free(gpu->first_reason);
    facts_fini(&gpu->board);
    facts_fini(&gpu->hardware);
    facts_fini(&gpu->config);
    facts_fini(&gpu->health);
    for (size_t i = 0; i < gpu->value_count; i++)
        free(gpu->values[i].metric);
    free(gpu->values);
    facts_fini(&gpu->measured_again);
    facts_fini(&gpu->links);
    facts_fini(&gpu->load);
}

static void outliers_fini(struct inventory_outlier *outliers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct inventory_outlier *outlier = &outliers[i];
        free(outlier->uuid);
        free(outlier->node);
        free(outlier->pci);
        free(outlier->model);
        for (size_t f = 0; f < outlier->finding_count; f++) {
            free(outlier->findings[f].metric);
            free(outlier->findings[f].unit);
            free(outlier->findings[f].basis);
            free(outlier->findings[f].cause);
            free(outlier->findings[f].confirmed);
        }
        free(outlier->findings);
    }
    free(outliers);
}

static void nodes_fini(struct inventory_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(nodes[i].node);
        free(nodes[i].finding);
        texts_fini(nodes[i].gpus, nodes[i].gpu_count);
    }
    free(nodes);
}

static void unmeasured_fini(struct inventory_unmeasured *unmeasured, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(unmeasured[i].node);
        free(unmeasured[i].uuid);
        free(unmeasured[i].reason);
    }
    free(unmeasured);
}

size_t inventory_measured_by_count(const struct inventory *inventory)
{
    return inventory->measured_by_count ? inventory->measured_by_count : 1;
}

const char *inventory_measured_by(const struct inventory *inventory, size_t number)
{
    return inventory->measured_by_count ? inventory->measured_by[number] : inventory->version;
}

void inventory_put_measured_by(const struct inventory *inventory, struct strbuf *out)
{
    for (size_t i = 0; i < inventory_measured_by_count(inventory); i++) {
        const char *version = inventory_measured_by(inventory, i);
        strbuf_printf(out, "%s%s", i ? ", " : "", version ? version : "");
    }
}

void inventory_fini(struct inventory *inventory)
{
    free(inventory->version);
    free(inventory->generated);
    texts_fini(inventory->command, inventory->command_count);
    free(inventory->backend);
    texts_fini(inventory->measured_by, inventory->measured_by_count);
    for (size_t i = 0; i < inventory->model_count; i++)
        model_fini(&inventory->models[i]);
    free(inventory->models);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        inventory_gpu_fini(&inventory->gpus[i]);
    free(inventory->gpus);
    nodes_fini(inventory->node_findings, inventory->node_finding_count);
    outliers_fini(inventory->outliers, inventory->outlier_count);
    outliers_fini(inventory->watch, inventory->watch_count);
    unmeasured_fini(inventory->unmeasured, inventory->unmeasured_count);
    memset(inventory, 0, sizeof *inventory);
}
