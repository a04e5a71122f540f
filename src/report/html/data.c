/* The inventory arranged for the page. */
#include "report/html/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const struct html_model *html_data_model(const struct html_data *data, const char *id)
{
    for (size_t i = 0; i < data->inventory->model_count; i++)
        if (str_equal(data->inventory->models[i].id, id))
            return &data->models[i];
    return NULL;
}

const struct html_series *html_data_series(const struct html_model *model, const char *metric)
{
    for (size_t i = 0; model && i < model->series_count; i++)
        if (str_equal(model->series[i].metric, metric))
            return &model->series[i];
    return NULL;
}

double html_quantile(const struct html_series *series, double share)
{
    if (!series->count)
        return NAN;
    double at = share * (double)(series->count - 1);
    size_t low = (size_t)at, high = low + 1 < series->count ? low + 1 : low;
    return series->sorted[low] + (at - (double)low) * (series->sorted[high] - series->sorted[low]);
}

/* The series of a metric: found at its usual index, or elsewhere, or added. */
static struct html_series *series_of(struct html_model *model, const char *metric, size_t hint)
{
    if (hint < model->series_count && strcmp(model->series[hint].metric, metric) == 0)
        return &model->series[hint];
    for (size_t i = 0; i < model->series_count; i++)
        if (strcmp(model->series[i].metric, metric) == 0)
            return &model->series[i];
    struct html_series *grown = mem_grow(model->series, &model->series_capacity,
                                         model->series_count + 1, sizeof *model->series);
    if (!grown)
        return NULL;
    model->series = grown;
    const struct measure *m = measures_get(&model->model->memory, metric);
    grown[model->series_count] = (struct html_series){.metric = metric, .unit = m ? m->unit : NULL};
    return &grown[model->series_count++];
}

static int add_values(struct html_model *model, const struct inventory_gpu *gpu)
{
    for (size_t i = 0; i < gpu->value_count; i++) {
        struct html_series *series = series_of(model, gpu->values[i].metric, i);
        if (!series)
            return -ENOMEM;
        if (!isfinite(gpu->values[i].value))
            continue;
        double *grown =
            mem_grow(series->sorted, &series->capacity, series->count + 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        series->sorted = grown;
        grown[series->count++] = gpu->values[i].value;
    }
    return 0;
}

static int value_order(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int fill_models(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    for (size_t i = 0; i < v->model_count; i++)
        data->models[i].model = &v->models[i];
    for (size_t i = 0; i < v->gpu_count; i++) {
        const struct html_model *model = html_data_model(data, v->gpus[i].model);
        if (model && add_values(&data->models[model - data->models], &v->gpus[i]))
            return -ENOMEM;
    }
    for (size_t i = 0; i < v->model_count; i++)
        for (size_t s = 0; s < data->models[i].series_count; s++) {
            struct html_series *series = &data->models[i].series[s];
            if (series->count)
                qsort(series->sorted, series->count, sizeof *series->sorted, value_order);
        }
    return 0;
}

static int uuid_order(const void *a, const void *b)
{
    const struct html_gpu *const *left = a, *const *right = b;
    return str_order((*left)->gpu->uuid, (*right)->gpu->uuid);
}

static struct html_gpu *find(struct html_gpu **by_uuid, size_t count, const char *uuid)
{
    const struct inventory_gpu wanted = {.uuid = (char *)uuid};
    const struct html_gpu key = {.gpu = &wanted}, *pointer = &key;
    struct html_gpu **found =
        count && uuid ? bsearch(&pointer, by_uuid, count, sizeof *by_uuid, uuid_order) : NULL;
    return found ? *found : NULL;
}

static double worst_score(const struct inventory_outlier *outlier)
{
    double worst = NAN;
    for (size_t i = 0; outlier && i < outlier->finding_count; i++) {
        double score = outlier->findings[i].score;
        if (isfinite(score) && !(fabs(score) <= fabs(worst)))
            worst = score;
    }
    return worst;
}

static enum html_oddity oddity_of(const struct html_gpu *gpu)
{
    static const double very = 20, worst = 100;
    bool failing = (gpu->outlier && gpu->outlier->kind == KIND_FAILING) ||
                   (gpu->place && gpu->place->kind == KIND_FAILING);
    if (gpu->gpu->status == GPU_OUTLIER || gpu->outlier) {
        if (failing || fabs(gpu->score) > worst)
            return HTML_WORST;
        return fabs(gpu->score) > very ? HTML_VERY_ODD : HTML_ODD;
    }
    if (gpu->gpu->status != GPU_OK)
        return HTML_UNKNOWN;
    return gpu->watch ? HTML_WATCHED : HTML_FINE;
}

/* Connects the entries of the lists with their GPUs. */
static int fill_states(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    struct html_gpu **by_uuid = mem_array(v->gpu_count, sizeof *by_uuid), *gpu;
    if (!by_uuid)
        return -ENOMEM;
    for (size_t i = 0; i < v->gpu_count; i++)
        by_uuid[i] = &data->gpus[i];
    if (v->gpu_count)
        qsort(by_uuid, v->gpu_count, sizeof *by_uuid, uuid_order);
    for (size_t i = 0; i < v->outlier_count; i++)
        if ((gpu = find(by_uuid, v->gpu_count, v->outliers[i].uuid)))
            gpu->outlier = &v->outliers[i];
    for (size_t i = 0; i < v->watch_count; i++)
        if ((gpu = find(by_uuid, v->gpu_count, v->watch[i].uuid)))
            gpu->watch = &v->watch[i];
    for (size_t i = 0; i < v->node_finding_count; i++)
        for (size_t g = 0; v->node_findings[i].accused && g < v->node_findings[i].gpu_count; g++)
            if ((gpu = find(by_uuid, v->gpu_count, v->node_findings[i].gpus[g]))) {
                if (!gpu->place || v->node_findings[i].kind < gpu->place->kind)
                    gpu->place = &v->node_findings[i];
                gpu->told |= html_cards_told(&v->node_findings[i], gpu->outlier);
            }
    free(by_uuid);
    for (size_t i = 0; i < v->gpu_count; i++) {
        gpu = &data->gpus[i];
        gpu->score = worst_score(gpu->outlier ? gpu->outlier : gpu->watch);
        gpu->oddity = oddity_of(gpu);
    }
    return html_cards_fill(data);
}

/* gpu2 before gpu10. */
static int node_order(const char *a, const char *b)
{
    return strverscmp(a ? a : "", b ? b : "");
}

static int place_order(const void *a, const void *b)
{
    const struct inventory_gpu *left = ((const struct html_gpu *)a)->gpu;
    const struct inventory_gpu *right = ((const struct html_gpu *)b)->gpu;
    int order = node_order(left->node, right->node);
    if (!order)
        order = (left->index > right->index) - (left->index < right->index);
    if (!order)
        order = str_order(left->pci, right->pci);
    return order ? order : str_order(left->uuid, right->uuid);
}

int html_data_init(struct html_data *data, const struct inventory *inventory)
{
    *data = (struct html_data){.inventory = inventory};
    data->models = mem_array(inventory->model_count, sizeof *data->models);
    data->gpus = mem_array(inventory->gpu_count, sizeof *data->gpus);
    if (!data->models || !data->gpus || fill_models(data))
        return -ENOMEM;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        data->gpus[i].gpu = &inventory->gpus[i];
    if (inventory->gpu_count)
        qsort(data->gpus, inventory->gpu_count, sizeof *data->gpus, place_order);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        data->node_count += !i || !str_equal(data->gpus[i].gpu->node, data->gpus[i - 1].gpu->node);
    return fill_states(data);
}

void html_data_fini(struct html_data *data)
{
    for (size_t i = 0; data->models && i < data->inventory->model_count; i++) {
        for (size_t s = 0; s < data->models[i].series_count; s++)
            free(data->models[i].series[s].sorted);
        free(data->models[i].series);
    }
    free(data->models);
    free(data->gpus);
    free(data->cards);
    free(data->places);
    memset(data, 0, sizeof *data);
}
