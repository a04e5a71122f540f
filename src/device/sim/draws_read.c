/* Reads the batches, layouts and faults that a fleet file gives to a share of its GPUs. */
#include "device/sim/draws.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ITEMS_MAX = 1024, RACK_NODES_MAX = 100000 };
static const struct yaml_field rack_fields[] = {
    {"nodes", YAML_U32, offsetof(struct sim_draws, rack_nodes), true, 1, RACK_NODES_MAX},
};

struct batch_text {
    struct sim_batch batch;
    const char *part, *vbios;
    const struct yaml_node *model;
};

static const struct yaml_field batch_fields[] = {
    {"share", YAML_F64, offsetof(struct batch_text, batch.share), true, 0, 1},
    {"per", YAML_WORD, offsetof(struct batch_text, batch.per), .words = sim_per_words},
    {"model", YAML_NODE, offsetof(struct batch_text, model)},
    {"part", YAML_STRING, offsetof(struct batch_text, part)},
    {"vbios", YAML_STRING, offsetof(struct batch_text, vbios)},
    {"l1_latency", YAML_F64, offsetof(struct batch_text, batch.l1_latency), .min = 0.5, .max = 2},
    {"l2_latency", YAML_F64, offsetof(struct batch_text, batch.l2_latency), .min = 0.5, .max = 2},
    {"main_latency", YAML_F64, offsetof(struct batch_text, batch.main_latency), .min = 0.5,
     .max = 2},
    {"l2_read", YAML_F64, offsetof(struct batch_text, batch.l2_read), .min = 0.5, .max = 2},
    {"l2_write", YAML_F64, offsetof(struct batch_text, batch.l2_write), .min = 0.5, .max = 2},
    {"main_read", YAML_F64, offsetof(struct batch_text, batch.main_read), .min = 0.5, .max = 2},
    {"main_write", YAML_F64, offsetof(struct batch_text, batch.main_write), .min = 0.5, .max = 2},
    {"main_copy", YAML_F64, offsetof(struct batch_text, batch.main_copy), .min = 0.5, .max = 2},
    {"host_bandwidth", YAML_F64, offsetof(struct batch_text, batch.host_bandwidth), .min = 0.5,
     .max = 2},
};

struct layout_text {
    double share;
    const struct yaml_node *model, *sizes;
};

static const struct yaml_field layout_fields[] = {
    {"share", YAML_F64, offsetof(struct layout_text, share), true, 0, 1},
    {"model", YAML_NODE, offsetof(struct layout_text, model)},
    {"sms_per_gpc", YAML_NODE, offsetof(struct layout_text, sizes), true},
};

/* Room for the items of a list. */
static int make_list(const struct yaml_node *node, size_t size, void **out_items, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > ITEMS_MAX)
        return yaml_error(node, err, "at most %d items", ITEMS_MAX);
    *out_items = mem_array(yaml_count(node), size);
    return 0;
}

/* The shares of one model add up to at most 1. */
static int check_shares(const struct yaml_node *node, const double *shares,
                        const struct sim_model *const *of, size_t count,
                        const struct fleet_models *models, struct err *err)
{
    static const double rounding = 1e-9;
    for (size_t m = 0; m < models->count; m++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += !of[i] || of[i] == models->items[m].model ? shares[i] : 0;
        if (sum > 1 + rounding)
            return yaml_error(node, err, "the shares add up to %g, more than 1", sum);
    }
    return 0;
}

static int check_per(const struct yaml_node *node, int per, const struct sim_draws *draws,
                     struct err *err)
{
    if (per == SIM_PER_RACK && !draws->rack_nodes)
        return yaml_error(sim_at(node, "per"), err, "the fleet has no section `racks`");
    return 0;
}

/* A batch must leave the latencies of every path in order. */
static int check_batch(const struct yaml_node *node, const struct sim_batch *batch,
                       const struct fleet_models *models, struct err *err)
{
    for (size_t m = 0; m < models->count; m++) {
        struct sim_model trial = *models->items[m].model;
        if (batch->model && batch->model != models->items[m].model)
            continue;
        sim_batch_apply(batch, &trial);
        for (int i = 0; i < DEVICE_PATH_COUNT; i++) {
            const struct sim_path *path = &trial.paths[i];
            double deepest = path->cache_count ? path->cache_cycles[path->cache_count - 1] : 0;
            if (path->l2_cycles > 0 &&
                (path->l2_cycles <= deepest || path->main_cycles <= path->l2_cycles))
                return yaml_error(node, err, "%s: latencies must rise with depth",
                                  sim_model_name(&trial));
        }
    }
    return 0;
}

static int read_batch(const struct yaml_node *node, const struct fleet_models *models,
                      const struct sim_draws *draws, struct sim_batch *out_batch, struct err *err)
{
    struct batch_text text = {.batch = {0}};
    double *const factors[] = {
        &text.batch.l1_latency, &text.batch.l2_latency, &text.batch.main_latency,
        &text.batch.l2_read,    &text.batch.l2_write,   &text.batch.main_read,
        &text.batch.main_write, &text.batch.main_copy,  &text.batch.host_bandwidth,
    };
    for (size_t i = 0; i < COUNT_OF(factors); i++)
        *factors[i] = 1;
    int rc = yaml_read_fields(node, batch_fields, COUNT_OF(batch_fields), &text, err);
    if (rc)
        return rc;
    if (text.part)
        rc = sim_copy_text(node, "part", text.part, text.batch.part, err);
    if (rc)
        return rc;
    if (text.vbios)
        rc = sim_copy_text(node, "vbios", text.vbios, text.batch.vbios, err);
    if (rc)
        return rc;
    if (text.model)
        rc = fleet_models_find(models, text.model, &text.batch.model, err);
    if (rc)
        return rc;
    *out_batch = text.batch;
    rc = check_per(node, text.batch.per, draws, err);
    return rc ? rc : check_batch(node, &text.batch, models, err);
}

static int read_batches(const struct yaml_node *node, const struct fleet_models *models,
                        struct sim_draws *draws, struct err *err)
{
    double shares[ITEMS_MAX];
    const struct sim_model *of[ITEMS_MAX];
    void *items;
    int rc = make_list(node, sizeof *draws->batches, &items, err);
    if (rc)
        return rc;
    draws->batches = items;
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = read_batch(yaml_at(node, i), models, draws, &draws->batches[i], err);
        if (rc)
            return rc;
        shares[i] = draws->batches[i].share;
        of[i] = draws->batches[i].model;
        draws->batch_count++;
    }
    return check_shares(node, shares, of, draws->batch_count, models, err);
}

static int read_sizes(const struct yaml_node *node, struct sim_layout *layout, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (!yaml_count(node) || yaml_count(node) > SIM_GPCS_MAX)
        return yaml_error(node, err, "expected the sizes of 1 to %d GPCs", SIM_GPCS_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t size;
        int rc = yaml_as_u64(yaml_at(node, i), 1, SIM_SMS_MAX, &size, err);
        if (rc)
            return rc;
        layout->sizes[layout->gpc_count++] = (uint32_t)size;
    }
    return 0;
}

/* A layout must fit every model that it may be drawn for. */
static int check_layout(const struct yaml_node *node, const struct sim_layout *layout,
                        const struct fleet_models *models, struct err *err)
{
    for (size_t m = 0; m < models->count; m++) {
        const struct sim_model *model = models->items[m].model;
        uint32_t sum = 0;
        if (layout->model && layout->model != model)
            continue;
        for (uint32_t i = 0; i < layout->gpc_count; i++) {
            sum += layout->sizes[i];
            if (layout->sizes[i] % model->sms_per_tpc)
                return yaml_error(node, err, "%s: a GPC is a whole number of TPCs",
                                  sim_model_name(model));
        }
        if (sum != model->sms)
            return yaml_error(node, err, "%s: the sizes add up to %u SMs, the model has %u",
                              sim_model_name(model), sum, model->sms);
    }
    return 0;
}

static int read_layout(const struct yaml_node *node, const struct fleet_models *models,
                       struct sim_layout *layout, struct err *err)
{
    struct layout_text text = {0};
    int rc = yaml_read_fields(node, layout_fields, COUNT_OF(layout_fields), &text, err);
    if (rc)
        return rc;
    layout->share = text.share;
    if (text.model)
        rc = fleet_models_find(models, text.model, &layout->model, err);
    if (rc)
        return rc;
    rc = read_sizes(text.sizes, layout, err);
    return rc ? rc : check_layout(text.sizes, layout, models, err);
}

static int read_layouts(const struct yaml_node *node, const struct fleet_models *models,
                        struct sim_draws *draws, struct err *err)
{
    double shares[ITEMS_MAX];
    const struct sim_model *of[ITEMS_MAX];
    void *items;
    int rc = make_list(node, sizeof *draws->layouts, &items, err);
    if (rc)
        return rc;
    draws->layouts = items;
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = read_layout(yaml_at(node, i), models, &draws->layouts[i], err);
        if (rc)
            return rc;
        shares[i] = draws->layouts[i].share;
        of[i] = draws->layouts[i].model;
        draws->layout_count++;
    }
    return check_shares(node, shares, of, draws->layout_count, models, err);
}

static int read_fault(const struct yaml_node *node, const struct fleet_models *models,
                      const struct sim_draws *draws, struct drawn_fault *out_fault, struct err *err)
{
    struct sim_fault_place place;
    int rc = sim_fault_read(node, true, &out_fault->fault, &place, err);
    if (rc)
        return rc;
    if (out_fault->fault.kind == SIM_DEAD_DRIVER && place.per == SIM_PER_GPU)
        return yaml_error(node, err, "a dead driver concerns all GPUs of a node: per: node");
    out_fault->hits = place.hits;
    out_fault->per = place.per;
    for (size_t m = 0; m < models->count; m++) {
        rc = sim_fault_fits(node, &out_fault->fault, models->items[m].model, err);
        if (rc)
            return rc;
    }
    return check_per(node, place.per, draws, err);
}

static int read_faults(const struct yaml_node *node, const struct fleet_models *models,
                       struct sim_draws *draws, struct err *err)
{
    void *items;
    int rc = make_list(node, sizeof *draws->faults, &items, err);
    if (rc)
        return rc;
    draws->faults = items;
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = read_fault(yaml_at(node, i), models, draws, &draws->faults[i], err);
        if (rc)
            return rc;
        draws->fault_count++;
    }
    return 0;
}

int sim_draws_read(const struct sim_draws_text *text, const struct fleet_models *models,
                   struct sim_draws *draws, struct err *err)
{
    int rc = 0;
    if (text->racks)
        rc = yaml_read_fields(text->racks, rack_fields, COUNT_OF(rack_fields), draws, err);
    if (rc)
        return rc;
    if (text->batches)
        rc = read_batches(text->batches, models, draws, err);
    if (rc)
        return rc;
    if (text->layouts)
        rc = read_layouts(text->layouts, models, draws, err);
    if (rc)
        return rc;
    return text->faults ? read_faults(text->faults, models, draws, err) : 0;
}

void sim_draws_fini(struct sim_draws *draws)
{
    free(draws->batches);
    free(draws->layouts);
    free(draws->faults);
}
