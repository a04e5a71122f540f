/* Compares board parts and facts that the driver reports with the order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "markup/text.h"
#include "report/accept/accept_stages.h"

static char *quantity(double value, const char *unit)
{
    struct strbuf text = {0};
    text_put_quantity(&text, value, unit);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static char *at_least(double value, const char *unit)
{
    char *limit = quantity(value, unit);
    char *text = limit ? str_format("at least %s", limit) : NULL;
    free(limit);
    return text;
}

/* An idle PCIe link may be slower than it is under load. */
static bool is_idle_link(const struct accept_work *work, const struct accept_gpu *gpu,
                         enum order_fact which)
{
    if (which != ORDER_PCIE_GENERATION && which != ORDER_PCIE_WIDTH)
        return false;
    const struct fact *loaded =
        inventory_fact_of(work->lookup, gpu->gpu, INVENTORY_CONFIG, "pcie_under_load");
    return !loaded || loaded->kind != FACT_BOOL || !loaded->flag;
}

/* gpu NULL: about all GPUs of the model. */
static int add_unknown(struct accept_work *work, const struct accept_gpu *gpu, size_t model,
                       enum order_fact which, const char *why)
{
    const struct order_fact_source *source = &order_fact_sources[which];
    const struct order_model *order = &work->accept->order->models[model];
    char *reason = NULL;
    if (str_copy_to(&reason, why))
        return -ENOMEM;
    return accept_add(
        work->accept, gpu ? gpu->gpu : NULL,
        &(struct accept_finding){.class = ACCEPT_NOT_SHOWN,
                                 .model = order->name,
                                 .what = source->name,
                                 .ordered = at_least(order->facts[which], source->unit),
                                 .found = str_copy("not known"),
                                 .reason = reason});
}

static int compare_fact(struct accept_work *work, const struct accept_gpu *gpu,
                        enum order_fact which, const struct fact *fact)
{
    const struct order_fact_source *source = &order_fact_sources[which];
    const struct order_model *order = &work->accept->order->models[gpu->ordered];
    const double value = fact_number(fact);
    char *reason = NULL;
    if (value >= order->facts[which]) {
        work->accept->met++;
        return 0;
    }
    const bool idle = is_idle_link(work, gpu, which);
    if (idle && !(reason = str_copy("read while the link was idle")))
        return -ENOMEM;
    return accept_add(
        work->accept, gpu->gpu,
        &(struct accept_finding){.class = idle ? ACCEPT_NOT_SHOWN : ACCEPT_BELOW,
                                 .model = order->name,
                                 .what = source->name,
                                 .ordered = at_least(order->facts[which], source->unit),
                                 .found = quantity(value, source->unit),
                                 .reason = reason});
}

/* One fact of all GPUs of a model. If no measured GPU has it, that is told once. Of a GPU that was
 * not measured only what is known is compared. */
static int check_fact(struct accept_work *work, size_t model, enum order_fact which)
{
    const struct order_fact_source *source = &order_fact_sources[which];
    const size_t measured = work->accept->models[model].measured;
    size_t known = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < work->gpu_count; i++) {
            const struct accept_gpu *gpu = &work->gpus[i];
            if (gpu->ordered != model)
                continue;
            const struct fact *fact =
                inventory_fact_of(work->lookup, gpu->gpu, source->set, source->key);
            const bool has = !isnan(fact_number(fact));
            if (pass == 0)
                known += has && gpu->measured;
            else if (has ? compare_fact(work, gpu, which, fact)
                         : gpu->measured && known &&
                               add_unknown(work, gpu, model, which,
                                           fact && fact->kind == FACT_UNKNOWN ? fact->text : NULL))
                return -ENOMEM;
        }
    return !known && measured ? add_unknown(work, NULL, model, which,
                                            "the driver tells it for no GPU of the model")
                              : 0;
}

static char *join(char *const *words, size_t count)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&text, "%s%s", i ? " or " : "", words[i]);
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

static int check_part(struct accept_work *work, const struct accept_gpu *gpu)
{
    const struct order_model *order = &work->accept->order->models[gpu->ordered];
    const struct fact *fact = inventory_fact_of(work->lookup, gpu->gpu, INVENTORY_BOARD, "part");
    const char *part = fact && fact->kind == FACT_TEXT ? fact->text : NULL;
    for (size_t i = 0; i < order->part_count; i++)
        if (str_equal(order->parts[i], part)) {
            work->accept->met++;
            return 0;
        }
    if (!order->part_count || (!part && !gpu->measured))
        return 0;
    return accept_add(work->accept, gpu->gpu,
                      &(struct accept_finding){.class = part ? ACCEPT_OTHER : ACCEPT_NOT_SHOWN,
                                               .model = order->name,
                                               .what = "board part",
                                               .ordered = join(order->parts, order->part_count),
                                               .found = str_copy(part ? part : "not known"),
                                               .reason = NULL});
}

int accept_facts(struct accept_work *work)
{
    const struct order *order = work->accept->order;
    for (size_t i = 0; i < work->gpu_count; i++)
        if (check_part(work, &work->gpus[i]))
            return -ENOMEM;
    for (size_t m = 0; m < order->model_count; m++)
        for (int which = 0; which < ORDER_FACT_COUNT; which++)
            if (!isnan(order->models[m].facts[which]) &&
                check_fact(work, m, (enum order_fact)which))
                return -ENOMEM;
    return 0;
}
