/* The inventory arranged for the page. */
#include "report/html/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "catalogue/metrics.h"
#include "inventory/results.h"

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

const char *html_shade(double loss, const double steps[HTML_SHADES])
{
    static const char *const classes[] = {"", " class=w", " class=a", " class=b", " class=c"};
    size_t i = 0;
    while (i < HTML_SHADES && loss > steps[i])
        i++;
    return classes[i];
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
    model->series = mem_grow(model->series, &model->series_capacity, model->series_count + 1,
                             sizeof *model->series);
    const struct measure *m = measures_get(&model->model->memory, metric);
    struct html_series *added = &model->series[model->series_count++];
    *added = (struct html_series){.metric = metric,
                                  .unit = m ? m->unit : NULL,
                                  .is_name = metric_is_name(metric, m ? m->unit : NULL)};
    return added;
}

static void model_add_values(struct html_model *model, const struct inventory_gpu *gpu)
{
    for (size_t i = 0; i < gpu->value_count; i++) {
        struct html_series *series = series_of(model, gpu->values[i].metric, i);
        if (!isfinite(gpu->values[i].value))
            continue;
        series->sorted =
            mem_grow(series->sorted, &series->capacity, series->count + 1, sizeof *series->sorted);
        series->sorted[series->count++] = gpu->values[i].value;
    }
}

static int series_value_order(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void data_fill_models(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    for (size_t i = 0; i < v->model_count; i++)
        data->models[i].model = &v->models[i];
    for (size_t i = 0; i < v->gpu_count; i++) {
        const struct html_model *model = html_data_model(data, v->gpus[i].model);
        if (model)
            model_add_values(&data->models[model - data->models], &v->gpus[i]);
    }
    for (size_t i = 0; i < v->model_count; i++)
        for (size_t s = 0; s < data->models[i].series_count; s++) {
            struct html_series *series = &data->models[i].series[s];
            if (series->count)
                sort_stable(series->sorted, series->count, sizeof *series->sorted,
                            series_value_order);
        }
}

static int gpu_uuid_order(const void *a, const void *b)
{
    const struct html_gpu *const *left = a, *const *right = b;
    return str_order((*left)->gpu->uuid, (*right)->gpu->uuid);
}

static struct html_gpu *data_find_gpu(struct html_gpu **by_uuid, size_t count, const char *uuid)
{
    const struct inventory_gpu wanted = {.uuid = (char *)uuid};
    const struct html_gpu key = {.gpu = &wanted}, *pointer = &key;
    struct html_gpu **found =
        count && uuid ? bsearch(&pointer, by_uuid, count, sizeof *by_uuid, gpu_uuid_order) : NULL;
    return found ? *found : NULL;
}

static double worst_score(const struct inventory_outlier *outlier)
{
    double worst = NAN;
    for (size_t i = 0; outlier && i < outlier->evidence_count; i++) {
        double score = outlier->evidence[i].score;
        if (isfinite(score) && !(fabs(score) <= fabs(worst)))
            worst = score;
    }
    return worst;
}

static enum html_oddity oddity_of(const struct html_gpu *gpu)
{
    enum action action = gpu->outlier ? gpu->outlier->action : ACTION_NOTHING;
    if (gpu->place && gpu->place->action > action)
        action = gpu->place->action;
    if (action >= ACTION_ALERT)
        return action == ACTION_DRAIN ? HTML_DRAINED : HTML_ALERTED;
    if (gpu->gpu->status != GPU_OK && gpu->gpu->status != GPU_OUTLIER)
        return HTML_UNKNOWN;
    return gpu->watch ? HTML_TOLD : HTML_FINE;
}

/* The text of a place ends with the cause, and has the metric before it. */
static bool place_has_finding(const struct inventory_node *place,
                              const struct inventory_evidence *finding)
{
    size_t length = finding->cause ? strlen(finding->cause) : 0;
    size_t whole = place->finding ? strlen(place->finding) : 0;
    return length && finding->metric && str_equal(finding->basis, "rule") && whole > length &&
           strcmp(place->finding + whole - length, finding->cause) == 0 &&
           strstr(place->finding, finding->metric);
}

/* The findings of the outlier (NULL: none) that the place has as well, as in html_gpu.shared. */
static uint64_t shared_findings(const struct inventory_node *place,
                                const struct inventory_outlier *outlier)
{
    uint64_t shared = 0;
    for (size_t i = 0; outlier && i < outlier->evidence_count && i < 64; i++)
        if (place_has_finding(place, &outlier->evidence[i]))
            shared |= UINT64_C(1) << i;
    return shared;
}

static bool place_is_worse(const struct inventory_node *a, const struct inventory_node *b)
{
    return a->action != b->action ? a->action > b->action : a->verdict < b->verdict;
}

/* Connects the entries of the lists with their GPUs. */
static void data_fill_states(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    struct html_gpu **by_uuid = mem_array(v->gpu_count, sizeof *by_uuid), *gpu;
    for (size_t i = 0; i < v->gpu_count; i++)
        by_uuid[i] = &data->gpus[i];
    if (v->gpu_count)
        sort_stable(by_uuid, v->gpu_count, sizeof *by_uuid, gpu_uuid_order);
    for (size_t i = 0; i < v->outlier_count; i++)
        if ((gpu = data_find_gpu(by_uuid, v->gpu_count, v->outliers[i].uuid)))
            gpu->outlier = &v->outliers[i];
    for (size_t i = 0; i < v->watch_count; i++)
        if ((gpu = data_find_gpu(by_uuid, v->gpu_count, v->watch[i].uuid)))
            gpu->watch = &v->watch[i];
    for (size_t i = 0; i < v->node_finding_count; i++)
        for (size_t g = 0;
             v->node_findings[i].action >= ACTION_ALERT && g < v->node_findings[i].gpu_count; g++)
            if ((gpu = data_find_gpu(by_uuid, v->gpu_count, v->node_findings[i].gpus[g]))) {
                if (!gpu->place || place_is_worse(&v->node_findings[i], gpu->place))
                    gpu->place = &v->node_findings[i];
                gpu->shared |= shared_findings(&v->node_findings[i], gpu->outlier);
            }
    free(by_uuid);
    for (size_t i = 0; i < v->gpu_count; i++) {
        gpu = &data->gpus[i];
        gpu->score = worst_score(gpu->outlier ? gpu->outlier : gpu->watch);
        gpu->oddity = oddity_of(gpu);
    }
}

static int outlier_card_order(const void *a, const void *b)
{
    const struct inventory_outlier *left = *(const struct inventory_outlier *const *)a;
    const struct inventory_outlier *right = *(const struct inventory_outlier *const *)b;
    if (left->action != right->action)
        return left->action > right->action ? -1 : 1;
    if (left->verdict != right->verdict)
        return left->verdict < right->verdict ? -1 : 1;
    return (left > right) - (left < right);
}

static int place_card_order(const void *a, const void *b)
{
    const struct inventory_node *left = *(const struct inventory_node *const *)a;
    const struct inventory_node *right = *(const struct inventory_node *const *)b;
    if (left->action != right->action)
        return left->action > right->action ? -1 : 1;
    if (left->verdict != right->verdict)
        return left->verdict < right->verdict ? -1 : 1;
    return (left > right) - (left < right);
}

/* Which outliers and places get cards, the strongest action first. An outlier of which a place has
 * all findings gets none. */
static void data_fill_cards(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    bool *covered = mem_array(v->outlier_count, sizeof *covered);
    data->cards = mem_array(v->outlier_count, sizeof *data->cards);
    data->places = mem_array(v->node_finding_count, sizeof *data->places);
    for (size_t i = 0; i < v->gpu_count; i++) {
        const struct inventory_outlier *outlier = data->gpus[i].outlier;
        const size_t count = outlier ? outlier->evidence_count : 0;
        if (count && count < 64 && data->gpus[i].shared == (UINT64_C(1) << count) - 1)
            covered[outlier - v->outliers] = true;
    }
    for (size_t i = 0; i < v->outlier_count; i++)
        if (!covered[i])
            data->cards[data->card_count++] = &v->outliers[i];
    if (data->card_count)
        sort_stable(data->cards, data->card_count, sizeof *data->cards, outlier_card_order);
    for (size_t i = 0; i < v->node_finding_count; i++)
        if (v->node_findings[i].action >= ACTION_ALERT)
            data->places[data->place_count++] = &v->node_findings[i];
    if (data->place_count)
        sort_stable(data->places, data->place_count, sizeof *data->places, place_card_order);
    free(covered);
}

/* Marks the GPUs to whose card the map can lead. */
static void data_mark_cards(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    bool *shown = mem_array(v->outlier_count, sizeof *shown);
    bool *place_shown = mem_array(v->node_finding_count, sizeof *place_shown);
    for (size_t i = 0; i < data->card_count && i < HTML_CARDS_MAX; i++)
        shown[data->cards[i] - v->outliers] = true;
    for (size_t i = 0; i < data->place_count && i < HTML_CARDS_MAX; i++)
        place_shown[data->places[i] - v->node_findings] = true;
    for (size_t i = 0; i < v->gpu_count; i++) {
        struct html_gpu *gpu = &data->gpus[i];
        gpu->has_card = gpu->outlier && shown[gpu->outlier - v->outliers];
        gpu->place_has_card = gpu->place && place_shown[gpu->place - v->node_findings];
    }
    free(shown);
    free(place_shown);
}

static int html_gpu_place_order(const void *a, const void *b)
{
    const struct inventory_gpu *left = ((const struct html_gpu *)a)->gpu;
    const struct inventory_gpu *right = ((const struct html_gpu *)b)->gpu;
    /* gpu2 before gpu10 */
    int order = strverscmp(left->node ? left->node : "", right->node ? right->node : "");
    if (!order)
        order = (left->index > right->index) - (left->index < right->index);
    if (!order)
        order = str_order(left->pci, right->pci);
    return order ? order : str_order(left->uuid, right->uuid);
}

void html_data_init(struct html_data *data, const struct inventory *inventory)
{
    *data = (struct html_data){.inventory = inventory};
    data->models = mem_array(inventory->model_count, sizeof *data->models);
    data->gpus = mem_array(inventory->gpu_count, sizeof *data->gpus);
    data_fill_models(data);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        data->gpus[i].gpu = &inventory->gpus[i];
    if (inventory->gpu_count)
        sort_stable(data->gpus, inventory->gpu_count, sizeof *data->gpus, html_gpu_place_order);
    for (size_t i = 0; i < inventory->gpu_count; i++)
        data->node_count += !i || !str_equal(data->gpus[i].gpu->node, data->gpus[i - 1].gpu->node);
    data_fill_states(data);
    data_fill_cards(data);
    data_mark_cards(data);
}

size_t html_data_node_end(const struct html_data *data, size_t first)
{
    size_t last = first;
    while (last < data->inventory->gpu_count &&
           str_equal(data->gpus[last].gpu->node, data->gpus[first].gpu->node))
        last++;
    return last;
}

double html_data_value(const struct inventory_gpu *gpu, const char *metric)
{
    const struct inventory_value *value = inventory_value_of(gpu, metric);
    return value ? value->value : NAN;
}

void html_data_fini(struct html_data *data)
{
    for (size_t i = 0; i < data->inventory->model_count; i++) {
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
