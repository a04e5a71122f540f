/* Which outliers and places get cards, and in which order: the worst kind first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/html/data.h"

/* The text of a place ends with the cause, and has the metric before it. */
static bool tells(const struct inventory_node *place, const struct inventory_finding *finding)
{
    size_t length = finding->cause ? strlen(finding->cause) : 0;
    size_t whole = place->finding ? strlen(place->finding) : 0;
    return length && finding->metric && str_equal(finding->basis, "rule") && whole > length &&
           strcmp(place->finding + whole - length, finding->cause) == 0 &&
           strstr(place->finding, finding->metric);
}

uint64_t html_cards_told(const struct inventory_node *place,
                         const struct inventory_outlier *outlier)
{
    uint64_t told = 0;
    for (size_t i = 0; outlier && i < outlier->finding_count && i < 64; i++)
        if (tells(place, &outlier->findings[i]))
            told |= UINT64_C(1) << i;
    return told;
}

static bool all_told(const struct html_gpu *gpu)
{
    size_t count = gpu->outlier->finding_count;
    return count && count < 64 && gpu->told == (UINT64_C(1) << count) - 1;
}

static int outlier_order(const void *a, const void *b)
{
    const struct inventory_outlier *left = *(const struct inventory_outlier *const *)a;
    const struct inventory_outlier *right = *(const struct inventory_outlier *const *)b;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return (left > right) - (left < right);
}

static int place_order(const void *a, const void *b)
{
    const struct inventory_node *left = *(const struct inventory_node *const *)a;
    const struct inventory_node *right = *(const struct inventory_node *const *)b;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    return (left > right) - (left < right);
}

/* In `told`: the outliers all of whose findings a place has. */
static void fill_cards(struct html_data *data, bool *told)
{
    const struct inventory *v = data->inventory;
    for (size_t i = 0; i < v->gpu_count; i++)
        if (data->gpus[i].outlier && all_told(&data->gpus[i]))
            told[data->gpus[i].outlier - v->outliers] = true;
    for (size_t i = 0; i < v->outlier_count; i++)
        if (!told[i])
            data->cards[data->card_count++] = &v->outliers[i];
    if (data->card_count)
        qsort(data->cards, data->card_count, sizeof *data->cards, outlier_order);
    for (size_t i = 0; i < v->node_finding_count; i++)
        if (v->node_findings[i].accused)
            data->places[data->place_count++] = &v->node_findings[i];
    if (data->place_count)
        qsort(data->places, data->place_count, sizeof *data->places, place_order);
}

int html_cards_fill(struct html_data *data)
{
    const struct inventory *v = data->inventory;
    bool *shown = mem_array(v->outlier_count, sizeof *shown);
    bool *place_shown = mem_array(v->node_finding_count, sizeof *place_shown);
    data->cards = mem_array(v->outlier_count, sizeof *data->cards);
    data->places = mem_array(v->node_finding_count, sizeof *data->places);
    int rc = shown && place_shown && data->cards && data->places ? 0 : -ENOMEM;
    if (!rc) {
        fill_cards(data, shown);
        memset(shown, 0, v->outlier_count * sizeof *shown);
        for (size_t i = 0; i < data->card_count && i < HTML_CARDS_MAX; i++)
            shown[data->cards[i] - v->outliers] = true;
        for (size_t i = 0; i < data->place_count && i < HTML_CARDS_MAX; i++)
            place_shown[data->places[i] - v->node_findings] = true;
        for (size_t i = 0; i < v->gpu_count; i++) {
            struct html_gpu *gpu = &data->gpus[i];
            gpu->has_card = gpu->outlier && shown[gpu->outlier - v->outliers];
            gpu->place_has_card = gpu->place && place_shown[gpu->place - v->node_findings];
        }
    }
    free(shown);
    free(place_shown);
    return rc;
}
