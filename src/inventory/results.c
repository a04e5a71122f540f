/* GPU results read from an inventory. */
#include "inventory/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "inventory/curves.h"
#include "inventory/link_row.h"

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
    struct index models, gpus, outliers, watch, unmeasured;
};

static int index_order(const void *a, const void *b)
{
    return strcmp(((const struct indexed_text *)a)->text, ((const struct indexed_text *)b)->text);
}

static const void *index_find(const struct index *index, const char *text)
{
    const struct indexed_text *entry =
        text ? bsearch(&(struct indexed_text){.text = text}, index->entries, index->count,
                       sizeof *index->entries, index_order)
             : NULL;
    return entry ? entry->what : NULL;
}

/* text_offset: of the text in an item; items without one are left out. */
static struct index index_make(const void *items, size_t count, size_t bytes, size_t text_offset)
{
    struct index index = {.entries = mem_array(count, sizeof *index.entries)};
    for (size_t i = 0; i < count; i++) {
        const char *item = (const char *)items + i * bytes;
        const char *text = *(char *const *)(item + text_offset);
        if (text)
            index.entries[index.count++] = (struct indexed_text){text, item};
    }
    if (index.count)
        sort_stable(index.entries, index.count, sizeof *index.entries, index_order);
    return index;
}

struct inventory_lookup *inventory_lookup_create(const struct inventory *inventory)
{
    struct inventory_lookup *lookup = mem_array(1, sizeof *lookup);
    lookup->models = index_make(inventory->models, inventory->model_count,
                                sizeof *inventory->models, offsetof(struct inventory_model, id));
    lookup->gpus = index_make(inventory->gpus, inventory->gpu_count, sizeof *inventory->gpus,
                              offsetof(struct inventory_gpu, uuid));
    lookup->outliers =
        index_make(inventory->outliers, inventory->outlier_count, sizeof *inventory->outliers,
                   offsetof(struct inventory_outlier, uuid));
    lookup->watch = index_make(inventory->watch, inventory->watch_count, sizeof *inventory->watch,
                               offsetof(struct inventory_outlier, uuid));
    lookup->unmeasured =
        index_make(inventory->unmeasured, inventory->unmeasured_count,
                   sizeof *inventory->unmeasured, offsetof(struct inventory_unmeasured, uuid));
    return lookup;
}

void inventory_lookup_destroy(struct inventory_lookup *lookup)
{
    if (!lookup)
        return;
    free(lookup->models.entries);
    free(lookup->gpus.entries);
    free(lookup->outliers.entries);
    free(lookup->watch.entries);
    free(lookup->unmeasured.entries);
    free(lookup);
}

const struct inventory_model *inventory_model_of(const struct inventory_lookup *lookup,
                                                 const struct inventory_gpu *gpu)
{
    return index_find(&lookup->models, gpu->model);
}

const struct inventory_gpu *inventory_find_gpu(const struct inventory_lookup *lookup,
                                               const char *uuid)
{
    return index_find(&lookup->gpus, uuid);
}

const struct inventory_outlier *inventory_find_outlier(const struct inventory_lookup *lookup,
                                                       const char *uuid)
{
    return index_find(&lookup->outliers, uuid);
}

const struct inventory_outlier *inventory_find_watch(const struct inventory_lookup *lookup,
                                                     const char *uuid)
{
    return index_find(&lookup->watch, uuid);
}

const struct inventory_unmeasured *inventory_find_unmeasured(const struct inventory_lookup *lookup,
                                                             const char *uuid)
{
    return index_find(&lookup->unmeasured, uuid);
}

bool inventory_uuid_matches(const char *uuid, const char *name)
{
    static const char prefix[] = "GPU-";
    const size_t length = strlen(name), skipped = sizeof prefix - 1;
    return uuid && length &&
           (strncasecmp(uuid, name, length) == 0 ||
            (strncasecmp(uuid, prefix, skipped) == 0 &&
             strncasecmp(uuid + skipped, name, length) == 0));
}

const struct inventory_value *inventory_value_of(const struct inventory_gpu *gpu,
                                                 const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (strcmp(gpu->values[i].metric, metric) == 0)
            return &gpu->values[i];
    return NULL;
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

void inventory_facts_of(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                        enum inventory_facts set, struct facts *out_facts)
{
    const struct facts *own = own_facts(gpu, set), *usual = usual_facts(lookup, gpu, set);
    if (usual)
        facts_copy(out_facts, usual);
    for (size_t i = 0; i < own->count; i++)
        facts_set(out_facts, &own->items[i]);
}

const struct fact *inventory_fact_of(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu, enum inventory_facts set,
                                     const char *key)
{
    const struct fact *own = facts_get(own_facts(gpu, set), key);
    const struct facts *usual = usual_facts(lookup, gpu, set);
    return own || !usual ? own : facts_get(usual, key);
}

/* Searches from *next on: a GPU's values have mostly the order of its model's measures. */
static const struct measure *result_find_measure(const struct measures *measures,
                                                 const char *metric, size_t *next)
{
    for (size_t i = 0; i < measures->count; i++) {
        size_t at = (*next + i) % measures->count;
        if (strcmp(measures->items[at].metric, metric) == 0) {
            *next = at + 1;
            return &measures->items[at];
        }
    }
    return NULL;
}

/* The model has unit and method. It lacks them if the metric is an id on which GPUs do not agree,
 * such as the number of an SM. */
static void result_add_value(const struct measure *of_model, const struct inventory_value *value,
                             struct measures *measures)
{
    const char *reason = of_model ? of_model->reason : NULL;
    struct measure *m =
        measure_status_valued(value->status)
            ? measures_add(measures, value->metric, value->value, of_model ? of_model->unit : "id",
                           of_model ? of_model->method : NULL)
            : measures_add_missing(measures, value->metric, value->status, reason);
    m->spread = value->spread;
    m->bound = value->bound;
    m->confidence = of_model ? of_model->confidence : NAN;
    m->n = of_model ? of_model->n : 0;
    measure_set_status(m, value->status, reason);
}

/* What the inventory lists by itself was notes of a measure: links, load, places of wrong results.
 */
static void result_add_notes(const struct facts *notes, const char *metric,
                             struct measures *measures)
{
    for (size_t i = 0; i < measures->count; i++) {
        struct measure *m = &measures->items[i];
        for (size_t k = 0; k < notes->count && str_equal(m->metric, metric); k++)
            facts_set(&m->notes, &notes->items[k]);
    }
}

void inventory_result(const struct inventory_lookup *lookup, const struct inventory_gpu *gpu,
                      struct gpu_result *out_result)
{
    const struct inventory_model *model = inventory_model_of(lookup, gpu);
    const struct inventory_unmeasured *unmeasured = index_find(&lookup->unmeasured, gpu->uuid);
    struct gpu_result result = {.uuid = str_copy(gpu->uuid),
                                .node = str_copy(gpu->node),
                                .pci = str_copy(gpu->pci),
                                .index = gpu->index,
                                .rank = gpu->rank,
                                .name = str_copy(model ? model->name : NULL),
                                .model_key = str_copy(model ? model->key : NULL),
                                .status = gpu->status == GPU_OUTLIER ? GPU_OK : gpu->status,
                                .reason = str_copy(unmeasured ? unmeasured->reason : NULL)};
    struct facts *const sets[] = {&result.hardware, &result.board, &result.config, &result.health};
    schema_copy(&gpu_run_schema, &result.run, &gpu->run);
    for (int set = 0; set < INVENTORY_FACTS_COUNT; set++)
        inventory_facts_of(lookup, gpu, (enum inventory_facts)set, sets[set]);
    size_t next = 0;
    for (size_t i = 0; i < gpu->value_count; i++) {
        const struct inventory_value *value = &gpu->values[i];
        result_add_value(model ? result_find_measure(&model->memory, value->metric, &next) : NULL,
                         value, &result.measures);
    }
    for (size_t i = 0; i < gpu->noted_count; i++)
        result_add_notes(&gpu->noted[i].notes, gpu->noted[i].metric, &result.measures);
    facts_copy(&result.measured_again, &gpu->measured_again);
    result_add_notes(&gpu->links, LINK_ROW_METRIC, &result.measures);
    result_add_notes(&gpu->load, LOAD_CURVE_METRIC, &result.measures);
    *out_result = result;
}
