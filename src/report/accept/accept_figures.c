/* Compares measured figures, and how far they lie apart, with the order. A figure meets or misses a
 * limit only if it does so with its own spread, too. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "judge/robust.h"
#include "markup/text.h"
#include "report/accept/accept_stages.h"

static const char too_near[] = "too near to the limit to decide: measure again";

/* One figure of one model. */
struct field {
    struct accept_work *work;
    size_t model;
    const struct order_figure *order;
    struct accept_figure *summary;
    double *values; /* room for one value of each GPU */
    const struct accept_gpu *lowest, *highest;
    double highest_sure, lowest_sure;         /* that the largest and the smallest surely reach */
    double highest_possible, lowest_possible; /* that they may reach */
};

static const struct inventory_value *value_of(const struct inventory_gpu *gpu, const char *metric)
{
    for (size_t i = 0; i < gpu->value_count; i++)
        if (str_equal(gpu->values[i].metric, metric))
            return &gpu->values[i];
    return NULL;
}

static const char *unit_of(const struct accept_gpu *gpu, const char *metric)
{
    const struct measure *measure = measures_get(&gpu->model->memory, metric);
    return measure ? measure->unit : NULL;
}

static char *limits_text(const struct order_figure *order)
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
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* gpu NULL: about all GPUs of the model. Takes over `found`. */
static int add(const struct field *field, const struct accept_gpu *gpu, enum accept_class class,
               char *found, const char *why)
{
    char *reason = NULL;
    if (str_copy_to(&reason, why)) {
        free(found);
        return -ENOMEM;
    }
    return accept_add(
        field->work->accept, gpu ? gpu->gpu : NULL,
        &(struct accept_finding){.class = class,
                                 .model = field->work->accept->order->models[field->model].name,
                                 .what = field->order->metric,
                                 .ordered = limits_text(field->order),
                                 .found = found,
                                 .reason = reason});
}

static char *value_text(double value, double spread, const char *unit)
{
    struct strbuf text = {0};
    text_put_quantity(&text, value, unit);
    if (spread > 0) {
        strbuf_puts(&text, " +- ");
        text_put_quantity(&text, spread, unit);
    }
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* Why a value is not certain. */
static int add_uncertain(const struct field *field, const struct accept_gpu *gpu,
                         const struct inventory_value *value)
{
    const bool valued = value && measure_status_valued(value->status) && isfinite(value->value);
    const char *why = !value                             ? "not in the inventory"
                      : value->status != MEASURE_OK      ? measure_status_name(value->status)
                      : value->bound == MEASURE_AT_LEAST ? "only a lower bound"
                                                         : "no number";
    return add(field, gpu, ACCEPT_NOT_SHOWN,
               valued ? value_text(value->value, value->spread, unit_of(gpu, field->order->metric))
                      : str_copy("not measured"),
               why);
}

static int compare(const struct field *field, const struct accept_gpu *gpu,
                   const struct inventory_value *value)
{
    const struct order_figure *order = field->order;
    const char *unit = unit_of(gpu, order->metric);
    const double spread = value->spread > 0 ? value->spread : 0;
    const double low = value->value - spread, high = value->value + spread;
    if (order->unit && !str_equal(order->unit, unit)) {
        char why[128];
        snprintf(why, sizeof why, "measured in \"%.40s\", ordered in \"%.40s\"",
                 unit ? unit : "an unknown unit", order->unit);
        return add(field, gpu, ACCEPT_NOT_SHOWN, value_text(value->value, spread, unit), why);
    }
    if (!(low < order->at_least) && !(high > order->at_most)) {
        field->work->accept->met++;
        return 0;
    }
    const bool surely = high < order->at_least || low > order->at_most;
    return add(field, gpu, surely ? ACCEPT_BELOW : ACCEPT_NOT_SHOWN,
               value_text(value->value, spread, unit), surely ? NULL : too_near);
}

static void take_value(struct field *field, const struct accept_gpu *gpu,
                       const struct inventory_value *value)
{
    struct accept_figure *summary = field->summary;
    const double spread = value->spread > 0 ? value->spread : 0;
    if (!summary->count || value->value < summary->least) {
        summary->least = value->value;
        field->lowest = gpu;
    }
    if (!summary->count || value->value > summary->most) {
        summary->most = value->value;
        field->highest = gpu;
    }
    field->values[summary->count++] = value->value;
    summary->unit = unit_of(gpu, field->order->metric);
    field->highest_sure = fmax(field->highest_sure, value->value - spread);
    field->highest_possible = fmax(field->highest_possible, value->value + spread);
    field->lowest_sure = fmin(field->lowest_sure, value->value + spread);
    field->lowest_possible = fmin(field->lowest_possible, value->value - spread);
}

static double share(double range, double scale)
{
    return range > 0 ? range / scale : 0;
}

/* "from 159.4 GB/s on demo2:3 to 320 GB/s on demo1:1" */
static char *range_text(const struct field *field)
{
    const struct accept_gpu *const ends[] = {field->lowest, field->highest};
    const double values[] = {field->summary->least, field->summary->most};
    struct strbuf text = {0};
    for (int i = 0; i < 2; i++) {
        strbuf_puts(&text, i ? " to " : "from ");
        text_put_quantity(&text, values[i], field->summary->unit);
        strbuf_printf(&text, " on %s:%d", ends[i]->gpu->node ? ends[i]->gpu->node : "?",
                      (int)ends[i]->gpu->index);
    }
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

/* Names the GPU that is farthest from the median. */
static int add_spread(const struct field *field, bool exceeded, char *reason)
{
    const struct accept_figure *summary = field->summary;
    const double scale = fabs(summary->median);
    const bool low = summary->median - summary->least > summary->most - summary->median;
    if (!reason)
        return -ENOMEM;
    return accept_add(
        field->work->accept, low ? field->lowest->gpu : field->highest->gpu,
        &(struct accept_finding){
            .class = exceeded ? ACCEPT_BELOW : ACCEPT_NOT_SHOWN,
            .model = field->work->accept->order->models[field->model].name,
            .what = field->order->metric,
            .ordered = str_format("spread at most %.3g %%", 100 * field->order->spread),
            .found =
                str_format("spread %.3g %%", 100 * share(summary->most - summary->least, scale)),
            .reason = reason});
}

static int check_spread(const struct field *field)
{
    const struct accept_figure *summary = field->summary;
    const struct accept_model *model = &field->work->accept->models[field->model];
    const double allowed = field->order->spread, scale = fabs(summary->median);
    const double sure = share(field->highest_sure - field->lowest_sure, scale);
    const double possible = share(field->highest_possible - field->lowest_possible, scale);
    if (isnan(allowed) || !summary->count) /* without any value the GPUs have findings */
        return 0;
    if (sure > allowed)
        return add_spread(field, true, range_text(field));
    if (summary->count < model->found || summary->count < 2)
        return add_spread(field, false,
                          str_format("%zu of %zu GPUs have it", summary->count, model->found));
    if (possible > allowed)
        return add_spread(field, false, str_copy(too_near));
    field->work->accept->met++;
    return 0;
}

/* A figure that no GPU of the model has is told once. */
static int check_figure(struct field *field)
{
    const struct accept_model *model = &field->work->accept->models[field->model];
    struct accept_figure *summary = field->summary;
    size_t present = 0;
    field->highest_sure = field->highest_possible = -INFINITY;
    field->lowest_sure = field->lowest_possible = INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < field->work->gpu_count; i++) {
            const struct accept_gpu *gpu = &field->work->gpus[i];
            const struct inventory_value *value = value_of(gpu->gpu, field->order->metric);
            if (gpu->ordered != field->model || !gpu->measured)
                continue;
            const bool good = value && inventory_value_is_good(value) && isfinite(value->value);
            if (pass == 0) {
                present += value != NULL;
                if (good)
                    take_value(field, gpu, value);
            } else if (good ? compare(field, gpu, value)
                            : present && add_uncertain(field, gpu, value))
                return -ENOMEM;
        }
    if (summary->count)
        summary->median = robust_median(field->values, summary->count);
    if (!present && model->measured)
        return add(field, NULL, ACCEPT_NOT_SHOWN, str_copy("not measured"),
                   "no GPU of the model has it: survey with a profile that measures it");
    return check_spread(field);
}

int accept_figures(struct accept_work *work)
{
    const struct order *order = work->accept->order;
    struct field field = {.work = work};
    int rc = 0;
    field.values = mem_array(work->gpu_count, sizeof *field.values);
    if (!field.values)
        return -ENOMEM;
    for (field.model = 0; field.model < order->model_count && !rc; field.model++)
        for (size_t i = 0; i < order->models[field.model].figure_count && !rc; i++) {
            field.order = &order->models[field.model].figures[i];
            field.summary = &work->accept->models[field.model].figures[i];
            rc = check_figure(&field);
        }
    free(field.values);
    return rc;
}
