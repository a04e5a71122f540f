/* GPU results read from an inventory. */
#include "inventory/results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/link_row.h"
#include "inventory/load_curve.h"

/* Texts and their indices, sorted for look-up. */
struct indexed_text {
    const char *text;
    const void *what;
};

struct index {
    struct indexed_text *entries;
    size_t count;
};

struct inventory_lookup {
    struct index models, gpus, unmeasured;
};

static int entry_order(const void *a, const void *b)
{
    return strcmp(((const struct indexed_text *)a)->text, ((const struct indexed_text *)b)->text);
}

static const void *find(const struct index *index, const char *text)
{
    const struct indexed_text *entry =
        text ? bsearch(&(struct indexed_text){.text = text}, index->entries, index->count,
                       sizeof *index->entries, entry_order)
             : NULL;
    return entry ? entry->what : NULL;
}

static void add(struct index *index, const char *text, const void *what)
{
    if (text)
        index->entries[index->count++] = (struct indexed_text){text, what};
}

static void sort(struct index *index)
{
    if (index->count)
        qsort(index->entries, index->count, sizeof *index->entries, entry_order);
}

int inventory_lookup_create(const struct inventory *inventory, struct inventory_lookup **out_lookup)
{
    struct inventory_lookup *lookup = mem_array(1, sizeof *lookup);
    if (!lookup)
        return -ENOMEM;
    lookup->models.entries = mem_array(inventory->model_count, sizeof *lookup->models.entries);
    lookup->gpus.entries = mem_array(inventory->gpu_count, sizeof *lookup->gpus.entries);
    lookup->unmeasured.entries =
        mem_array(inventory->unmeasured_count, sizeof *lookup->unmeasured.entries);
    if (!lookup->models.entries || !lookup->gpus.entries || !lookup->unmeasured.entries) {
        inventory_lookup_destroy(lookup);
        return -ENOMEM;
    }
    for (size_t i = 0; i < inventory->model_count; i++)
        add(&lookup->models, inventory->models[i].id, &inventory->models[i]);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        add(&lookup->gpus, inventory->gpus[i].uuid, &inventory->gpus[i]);
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        add(&lookup->unmeasured, inventory->unmeasured[i].uuid, &inventory->unmeasured[i]);
    sort(&lookup->models);
    sort(&lookup->gpus);
    sort(&lookup->unmeasured);
    *out_lookup = lookup;
    return 0;
}

void inventory_lookup_destroy(struct inventory_lookup *lookup)
{
    if (!lookup)
        return;
    free(lookup->models.entries);
    free(lookup->gpus.entries);
    free(lookup->unmeasured.entries);
    free(lookup);
}

const struct inventory_model *inventory_model_of(const struct inventory_lookup *lookup,
                                                 const struct inventory_gpu *gpu)
{
    return find(&lookup->models, gpu->model);
}

const struct inventory_gpu *inventory_find_gpu(const struct inventory_lookup *lookup,
                                               const char *uuid)
{
    return find(&lookup->gpus, uuid);
}

static const struct facts *own_facts(const struct inventory_gpu *gpu, enum inventory_facts set)
{
    const struct facts *const own[] = {[INVENTORY_HARDWARE] = &gpu->hardware,
                                       [INVENTORY_BOARD] = &gpu->board,
                                       [INVENTORY_CONFIG] = &gpu->config,
                                       [INVENTORY_HEALTH] = &gpu->health};
    return own[set];
}

/* Of a GPU that was not measured, the facts of its model may not be true. */
static bool was_measured(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER ||
           (gpu->status == GPU_BUSY && gpu->value_count);
}

static const struct facts *usual_facts(const struct inventory_lookup *lookup,
                                       const struct inventory_gpu *gpu, enum inventory_facts set)
{
    const struct inventory_model *model =
        was_measured(gpu) ? inventory_model_of(lookup, gpu) : NULL;
    const struct facts *const usual[] = {[INVENTORY_HARDWARE] = model ? &model->identity : NULL,
                                         [INVENTORY_BOARD] = NULL,
                                         [INVENTORY_CONFIG] = model ? &model->config : NULL,
                                         [INVENTORY_HEALTH] = model ? &model->health : NULL};
    return usual[set];
}

int inventory_facts_of(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                       enum inventory_facts set, struct facts *out_facts)
{
    const struct facts *own = own_facts(gpu, set), *usual = usual_facts(lookup, gpu, set);
    int rc = usual ? facts_copy(out_facts, usual) : 0;
    for (size_t i = 0; i < own->count && !rc; i++)
        rc = facts_set(out_facts, &own->items[i]);
    if (rc)
        facts_fini(out_facts);
    return rc;
}

const struct fact *inventory_fact_of(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu, enum inventory_facts set,
                                     const char *key)
{
    const struct fact *own = facts_get(own_facts(gpu, set), key);
    const struct facts *usual = usual_facts(lookup, gpu, set);
    return own || !usual ? own : facts_get(usual, key);
}

/* The model has unit and method. It lacks them if the metric is an id on which GPUs do not agree,
 * such as the number of an SM. */
static int add_value(const struct inventory_model *model, const struct inventory_value *value,
                     struct measures *measures)
{
    const struct measure *told = model ? measures_get(&model->memory, value->metric) : NULL;
    struct measure *m = measure_status_valued(value->status)
                            ? measures_add(measures, value->metric, value->value,
                                           told ? told->unit : "id", told ? told->method : NULL)
                            : measures_add_missing(measures, value->metric, value->status,
                                                   told ? told->reason : NULL);
    if (!m)
        return -ENOMEM;
    m->spread = value->spread;
    m->bound = value->bound;
    m->confidence = told ? told->confidence : 0;
    return measure_set_status(m, value->status, told ? told->reason : NULL);
}

/* model and unmeasured may be NULL. */
static int copy_texts(const struct inventory_gpu *gpu, const struct inventory_model *model,
                      const struct inventory_unmeasured *unmeasured, struct gpu_result *result)
{
    if (str_copy_to(&result->uuid, gpu->uuid) || str_copy_to(&result->node, gpu->node) ||
        str_copy_to(&result->pci, gpu->pci) ||
        str_copy_to(&result->first_reason, gpu->first_reason))
        return -ENOMEM;
    if (model &&
        (str_copy_to(&result->name, model->name) || str_copy_to(&result->model_key, model->key)))
        return -ENOMEM;
    return unmeasured ? str_copy_to(&result->reason, unmeasured->reason) : 0;
}

/* Links and load were notes of a measure. */
static int add_notes(const struct facts *notes, const char *metric, struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++) {
        struct measure *m = &measures->items[i];
        for (size_t k = 0; k < notes->count && str_equal(m->metric, metric); k++)
            if (facts_set(&m->notes, &notes->items[k]))
                return -ENOMEM;
    }
    return 0;
}

int inventory_result(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                     struct gpu_result *out_result)
{
    const struct inventory_model *model = inventory_model_of(lookup, gpu);
    const struct inventory_unmeasured *unmeasured = find(&lookup->unmeasured, gpu->uuid);
    struct gpu_result result = {.index = gpu->index,
                                .rank = gpu->rank,
                                .status = gpu->status,
                                .first_status = gpu->first_status,
                                .gpus_given = gpu->gpus_given};
    struct facts *const sets[] = {&result.hardware, &result.board, &result.config, &result.health};
    if (gpu->status == GPU_OUTLIER)
        result.status = GPU_OK;
    if (copy_texts(gpu, model, unmeasured, &result))
        goto no_memory;
    for (int set = 0; set < INVENTORY_FACTS_COUNT; set++)
        if (inventory_facts_of(lookup, gpu, (enum inventory_facts)set, sets[set]))
            goto no_memory;
    for (size_t i = 0; i < gpu->value_count; i++)
        if (add_value(model, &gpu->values[i], &result.measures))
            goto no_memory;
    if (facts_copy(&result.measured_again, &gpu->measured_again) ||
        add_notes(&gpu->links, LINK_ROW_METRIC, &result.measures) ||
        add_notes(&gpu->load, LOAD_CURVE_METRIC, &result.measures))
        goto no_memory;
    *out_result = result;
    return 0;
no_memory:
    gpu_result_fini(&result);
    return -ENOMEM;
}
