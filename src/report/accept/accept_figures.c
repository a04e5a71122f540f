/* Compares measured figures, and how far they lie apart, with the order. A figure meets or misses a
 * limit only if it does so with its own spread, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "judge/robust.h"
#include "markup/text.h"
#include "report/accept/accept_stages.h"

static const char too_near[] = "too near to the limit to decide: measure again";

/* The figure of one GPU, with certainty. */
struct figure_shown {
    const struct accept_gpu *gpu;
    const char *part; /* board part; NULL: not known */
    double value, spread;
};

/* One figure of one model. */
struct figure_work {
    struct accept_work *work;
    size_t model;
    const struct order_figure *order;
    struct accept_figure *summary;
    struct figure_shown *shown; /* room for all GPUs; summary->count are used */
    double *values;             /* room for all GPUs */
};

const char *accept_board_part(const struct accept_work *work, const struct accept_gpu *gpu)
{
    const struct fact *part = inventory_fact_of(work->lookup, gpu->gpu, INVENTORY_BOARD, "part");
    return part && part->kind == FACT_TEXT ? part->text : NULL;
}

static const char *figure_unit(const struct accept_gpu *gpu, const char *metric)
{
    const struct measure *measure = measures_get(&gpu->model->memory, metric);
    return measure ? measure->unit : NULL;
}

static char *figure_limits_text(const struct order_figure *order)
{
    struct strbuf text = {0};
    if (!isnan(order->at_least)) {
        strbuf_puts(&text, "at least ");
        text_put_quantity(&text, order->at_least, order->unit);
    }
    if (!isnan(order->at_most)) {
        strbuf_puts(&text, text.length ? ", at most " : "at most ");
        text_put_quantity(&text, order->at_most, order->unit);
    }
    if (!text.length)
        strbuf_puts(&text, "measured");
    return text.data;
}

/* gpu NULL: about all GPUs of the model. Takes over `found`. */
static void figure_add(const struct figure_work *field, const struct accept_gpu *gpu,
                       enum accept_class class, char *found, const char *reason)
{
    accept_add(
        field->work->accept, gpu ? gpu->gpu : NULL,
        &(struct accept_finding){.class = class,
                                 .model = field->work->accept->order->models[field->model].name,
                                 .what = field->order->metric,
                                 .ordered = figure_limits_text(field->order),
                                 .found = found,
                                 .reason = str_copy(reason)});
}

static char *figure_value_text(double value, double spread, const char *unit)
{
    struct strbuf text = {0};
    text_put_quantity(&text, value, unit);
    if (spread > 0) {
        strbuf_puts(&text, " +- ");
        text_put_quantity(&text, spread, unit);
    }
    return text.data;
}

/* Why a value is not certain. */
static void figure_add_uncertain(const struct figure_work *field, const struct accept_gpu *gpu,
                                 const struct inventory_value *value)
{
    const bool valued = value && measure_status_valued(value->status) && isfinite(value->value);
    const char *why = !value                             ? "not in the inventory"
                      : value->status != MEASURE_OK      ? measure_status_name(value->status)
                      : value->bound == MEASURE_AT_LEAST ? "only a lower bound"
                                                         : "no number";
    figure_add(field, gpu, ACCEPT_NOT_SHOWN,
               valued ? figure_value_text(value->value, value->spread,
                                          figure_unit(gpu, field->order->metric))
                      : str_copy("not measured"),
               why);
}

static void figure_compare(const struct figure_work *field, const struct accept_gpu *gpu,
                           const struct inventory_value *value)
{
    const struct order_figure *order = field->order;
    const char *unit = figure_unit(gpu, order->metric);
    const double spread = value->spread > 0 ? value->spread : 0;
    const double low = value->value - spread, high = value->value + spread;
    if (order->unit && !str_equal(order->unit, unit)) {
        char why[128];
        snprintf(why, sizeof why, "measured in \"%.40s\", ordered in \"%.40s\"",
                 unit ? unit : "an unknown unit", order->unit);
        figure_add(field, gpu, ACCEPT_NOT_SHOWN, figure_value_text(value->value, spread, unit),
                   why);
        return;
    }
    if (!(low < order->at_least) && !(high > order->at_most)) {
        field->work->accept->met++;
        return;
    }
    const bool surely = high < order->at_least || low > order->at_most;
    figure_add(field, gpu, surely ? ACCEPT_BELOW : ACCEPT_NOT_SHOWN,
               figure_value_text(value->value, spread, unit), surely ? NULL : too_near);
}

/* The GPUs of one board part, sorted by value: cards with other memory chips are as far apart as
 * faulty ones, and all of them are healthy. */
struct part_spread {
    const struct figure_shown *gpus;
    size_t count;
    double range;          /* (largest - smallest) / median */
    double sure, possible; /* the range that they surely have, and that they may have */
};

static int figure_shown_order(const void *left, const void *right)
{
    const struct figure_shown *a = left, *b = right;
    int order = str_order(a->part, b->part);
    return order ? order : (a->value > b->value) - (a->value < b->value);
}

static double figure_median(const struct figure_work *field, const struct figure_shown *gpus,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        field->values[i] = gpus[i].value;
    return robust_median(field->values, count);
}

static struct part_spread part_spread_find(const struct figure_work *field,
                                           const struct figure_shown *gpus, size_t count)
{
    const double scale = fabs(figure_median(field, gpus, count));
    double low_sure = INFINITY, low_possible = INFINITY;
    double high_sure = -INFINITY, high_possible = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        low_sure = fmin(low_sure, gpus[i].value + gpus[i].spread);
        low_possible = fmin(low_possible, gpus[i].value - gpus[i].spread);
        high_sure = fmax(high_sure, gpus[i].value - gpus[i].spread);
        high_possible = fmax(high_possible, gpus[i].value + gpus[i].spread);
    }
    const double ranges[] = {gpus[count - 1].value - gpus[0].value, high_sure - low_sure,
                             high_possible - low_possible};
    double shares[COUNT_OF(ranges)];
    for (size_t i = 0; i < COUNT_OF(ranges); i++)
        shares[i] = ranges[i] > 0 ? ranges[i] / scale : 0;
    return (struct part_spread){gpus, count, shares[0], shares[1], shares[2]};
}

/* "from 159.4 GB/s on demo2:3 to 320 GB/s on demo1:1", with the board part if there are several. */
static char *part_range_text(const struct figure_work *field, const struct part_spread *part)
{
    const struct figure_shown *const ends[] = {&part->gpus[0], &part->gpus[part->count - 1]};
    struct strbuf text = {0};
    if (part->count < field->summary->count)
        strbuf_printf(&text, "board part %s: ", part->gpus[0].part ? part->gpus[0].part : "?");
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        strbuf_puts(&text, i ? " to " : "from ");
        text_put_quantity(&text, ends[i]->value, field->summary->unit);
        strbuf_printf(&text, " on %s:%d", ends[i]->gpu->gpu->node ? ends[i]->gpu->gpu->node : "?",
                      (int)ends[i]->gpu->gpu->index);
    }
    return text.data;
}

/* Names the GPU of the part that is farthest from the median. Takes over `reason`. */
static void figure_add_spread(const struct figure_work *field, const struct part_spread *part,
                              double spread, enum accept_class class, char *reason)
{
    const struct figure_shown *low = &part->gpus[0], *high = &part->gpus[part->count - 1];
    const double median = figure_median(field, part->gpus, part->count);
    const bool lower = median - low->value > high->value - median;
    accept_add(field->work->accept, lower ? low->gpu->gpu : high->gpu->gpu,
               &(struct accept_finding){
                   .class = class,
                   .model = field->work->accept->order->models[field->model].name,
                   .what = field->order->metric,
                   .ordered = str_format("spread at most %.3g %%", 100 * field->order->spread),
                   .found = str_format("spread %.3g %%", 100 * spread),
                   .reason = reason});
}

/* How far the only GPU of a board part is from the nearest GPU of another one, as a share. Two
 * such GPUs do not vouch for each other. */
static double part_distance(const struct part_spread *alone, const struct part_spread *parts,
                            size_t part_count)
{
    const double value = alone->gpus[0].value;
    double nearest = INFINITY;
    for (size_t p = 0; p < part_count; p++) {
        const double low = parts[p].gpus[0].value, high = parts[p].gpus[parts[p].count - 1].value;
        if (parts[p].count > 1)
            nearest = fmin(nearest, value < low    ? (low - value) / fabs(low)
                                    : value > high ? (value - high) / fabs(high)
                                                   : 0);
    }
    return nearest;
}

static void figure_check_spread(const struct figure_work *field)
{
    struct accept_figure *summary = field->summary;
    const struct accept_model *model = &field->work->accept->models[field->model];
    const double allowed = field->order->spread;
    if (!summary->count) /* the GPUs have findings */
        return;
    sort_stable(field->shown, summary->count, sizeof *field->shown, figure_shown_order);
    struct part_spread *parts = mem_array(summary->count, sizeof *parts);
    size_t part_count = 0, widest = 0, several = 0, findings = 0;
    for (size_t from = 0, to; from < summary->count; from = to) {
        for (to = from + 1;
             to < summary->count && str_equal(field->shown[from].part, field->shown[to].part);)
            to++;
        parts[part_count++] = part_spread_find(field, &field->shown[from], to - from);
        several += to - from > 1;
    }
    if (!several) { /* each GPU has its own board part: compare them nevertheless */
        for (size_t i = 0; i < summary->count; i++)
            field->shown[i].part = NULL;
        sort_stable(field->shown, summary->count, sizeof *field->shown, figure_shown_order);
        parts[0] = part_spread_find(field, field->shown, summary->count);
        part_count = 1;
    }
    for (size_t p = 0; p < part_count; p++)
        widest = parts[p].range > parts[widest].range ? p : widest;
    summary->spread = summary->median != 0 ? parts[widest].range : NAN;
    for (size_t p = 0; p < part_count; p++) {
        if (parts[p].sure > allowed) {
            figure_add_spread(field, &parts[p], parts[p].range, ACCEPT_BELOW,
                              part_range_text(field, &parts[p]));
            findings++;
        }
    }
    if (!isnan(allowed) && !findings && (summary->count < model->found || summary->count < 2)) {
        figure_add_spread(field, &parts[widest], parts[widest].range, ACCEPT_NOT_SHOWN,
                          str_format("%zu of %zu GPUs have it", summary->count, model->found));
        findings++;
    }
    for (size_t p = 0; p < part_count && !findings; p++) {
        const double apart =
            parts[p].count == 1 && several ? part_distance(&parts[p], parts, part_count) : 0;
        if (parts[p].possible > allowed && parts[p].count > 1) {
            figure_add_spread(field, &parts[p], parts[p].range, ACCEPT_NOT_SHOWN,
                              str_copy(too_near));
            findings++;
        } else if (apart > allowed) {
            figure_add_spread(
                field, &parts[p], apart, ACCEPT_NOT_SHOWN,
                str_format("the only GPU with board part %s, and unlike the others",
                           parts[p].gpus[0].part ? parts[p].gpus[0].part : "not known"));
            findings++;
        }
    }
    field->work->accept->met += !isnan(allowed) && !findings;
    free(parts);
}

static void figure_take_value(struct figure_work *field, const struct accept_gpu *gpu,
                              const struct inventory_value *value)
{
    struct accept_figure *summary = field->summary;
    summary->least = summary->count ? fmin(summary->least, value->value) : value->value;
    summary->most = summary->count ? fmax(summary->most, value->value) : value->value;
    summary->unit = figure_unit(gpu, field->order->metric);
    field->shown[summary->count++] =
        (struct figure_shown){.gpu = gpu,
                              .part = accept_board_part(field->work, gpu),
                              .value = value->value,
                              .spread = value->spread > 0 ? value->spread : 0};
}

/* A figure that no GPU of the model has is reported once. */
static void figure_check(struct figure_work *field)
{
    const struct accept_model *model = &field->work->accept->models[field->model];
    struct accept_figure *summary = field->summary;
    size_t present = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < field->work->gpu_count; i++) {
            const struct accept_gpu *gpu = &field->work->gpus[i];
            const struct inventory_value *value =
                inventory_value_of(gpu->gpu, field->order->metric);
            if (gpu->ordered != field->model || !gpu->measured)
                continue;
            const bool good = value && inventory_value_is_good(value) && isfinite(value->value);
            if (pass == 0) {
                present += value != NULL;
                if (good)
                    figure_take_value(field, gpu, value);
            } else if (good)
                figure_compare(field, gpu, value);
            else if (present)
                figure_add_uncertain(field, gpu, value);
        }
    if (summary->count)
        summary->median = figure_median(field, field->shown, summary->count);
    if (!present && model->measured)
        figure_add(field, NULL, ACCEPT_NOT_SHOWN, str_copy("not measured"),
                   "no GPU of the model has it: survey with a profile that measures it");
    else
        figure_check_spread(field);
}

void accept_figures(struct accept_work *work)
{
    const struct order *order = work->accept->order;
    struct figure_work field = {.work = work,
                                .shown = mem_array(work->gpu_count, sizeof *field.shown),
                                .values = mem_array(work->gpu_count, sizeof *field.values)};
    for (field.model = 0; field.model < order->model_count; field.model++)
        for (size_t i = 0; i < order->models[field.model].figure_count; i++) {
            field.order = &order->models[field.model].figures[i];
            field.summary = &work->accept->models[field.model].figures[i];
            figure_check(&field);
        }
    free(field.shown);
    free(field.values);
}
