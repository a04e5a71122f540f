/* How the GPUs of a fleet differ: the variation of units, and the batches, layouts and faults that
 * a fleet file gives to a share of its GPUs. */
#include "device/sim/draws.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* The same answer at every call, for one item and one GPU, node or rack. */
static bool draw_hits(uint64_t seed, const char *what, size_t item, uint64_t number, double share)
{
    struct rng rng;
    rng_init(&rng, rng_derive(rng_derive(seed, what, item), "number", number), "draw");
    return rng_uniform(&rng) < share;
}

const struct sim_batch *sim_draw_batch(const struct sim_draws *draws, uint64_t seed,
                                       const struct sim_model *model,
                                       const struct sim_numbers *numbers)
{
    double left = 1;
    for (size_t i = 0; i < draws->batch_count; i++) {
        const struct sim_batch *batch = &draws->batches[i];
        if (batch->model && batch->model != model)
            continue;
        if (draw_hits(seed, "batch", i, numbers->of[batch->per], batch->share / left))
            return batch;
        left -= batch->share;
    }
    return NULL;
}

const struct sim_layout *sim_draw_layout(const struct sim_draws *draws, uint64_t seed,
                                         const struct sim_model *model,
                                         const struct sim_numbers *numbers)
{
    double left = 1;
    for (size_t i = 0; i < draws->layout_count; i++) {
        const struct sim_layout *layout = &draws->layouts[i];
        if (layout->model && layout->model != model)
            continue;
        if (draw_hits(seed, "layout", i, numbers->of[SIM_PER_GPU], layout->share / left))
            return layout;
        left -= layout->share;
    }
    return NULL;
}

size_t sim_draw_faults(const struct sim_draws *draws, uint64_t seed,
                       const struct sim_numbers *numbers, struct sim_fault *out_faults)
{
    size_t count = 0;
    for (size_t i = 0; i < draws->fault_count; i++) {
        const struct drawn_fault *fault = &draws->faults[i];
        if (draw_hits(seed, "fault", i, numbers->of[fault->per], fault->hits))
            out_faults[count++] = fault->fault;
    }
    return count;
}

bool sim_draw_has_fault(const struct sim_draws *draws, uint64_t seed,
                        const struct sim_numbers *numbers, int kind)
{
    for (size_t i = 0; i < draws->fault_count; i++) {
        const struct drawn_fault *fault = &draws->faults[i];
        if (fault->fault.kind == kind &&
            draw_hits(seed, "fault", i, numbers->of[fault->per], fault->hits))
            return true;
    }
    return false;
}

void sim_batch_apply(const struct sim_batch *batch, struct sim_model *model)
{
    struct sim_bandwidth *b = &model->bandwidth;
    if (batch->part[0])
        memcpy(model->board.part, batch->part, sizeof batch->part);
    if (batch->vbios[0])
        memcpy(model->board.vbios, batch->vbios, sizeof batch->vbios);
    for (int i = 0; i < DEVICE_PATH_COUNT; i++) {
        struct sim_path *path = &model->paths[i];
        for (uint32_t k = 0; k < path->cache_count; k++)
            path->cache_cycles[k] *= batch->l1_latency;
        path->main_cycles *= path->l2_cycles > 0 ? batch->main_latency : 1;
        path->l2_cycles *= batch->l2_latency;
    }
    b->l2_read *= batch->l2_read;
    b->l2_write *= batch->l2_write;
    b->main_read *= batch->main_read;
    b->main_write *= batch->main_write;
    b->main_copy *= batch->main_copy;
    b->h2d *= batch->host_bandwidth;
    b->d2h *= batch->host_bandwidth;
    b->bidir *= batch->host_bandwidth;
}

static void shuffle_numbers(struct rng *rng, uint32_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t k = (uint32_t)rng_below(rng, i), held = items[i - 1];
        items[i - 1] = items[k];
        items[k] = held;
    }
}

void sim_layout_apply(const struct sim_layout *layout, uint64_t seed, struct sim_model *model)
{
    uint32_t sizes[SIM_GPCS_MAX], ranks[SIM_GPCS_MAX];
    struct rng rng;
    rng_init(&rng, seed, "layout");
    memcpy(sizes, layout->sizes, sizeof sizes);
    shuffle_numbers(&rng, sizes, layout->gpc_count);
    sim_place_sms(model, sizes, layout->gpc_count);
    for (uint32_t i = 0; i < layout->gpc_count; i++)
        ranks[i] = i;
    shuffle_numbers(&rng, ranks, layout->gpc_count);
    for (uint32_t i = 0; i < layout->gpc_count; i++)
        model->gpc_rank[i] = (uint16_t)ranks[i];
    model->bandwidth.l2_read *= layout->l2_read;
}

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
    double share, l2_read;
    const struct yaml_node *model, *sizes;
};

static const struct yaml_field layout_fields[] = {
    {"share", YAML_F64, offsetof(struct layout_text, share), true, 0, 1},
    {"model", YAML_NODE, offsetof(struct layout_text, model)},
    {"sms_per_gpc", YAML_NODE, offsetof(struct layout_text, sizes), true},
    {"l2_read", YAML_F64, offsetof(struct layout_text, l2_read), .min = 0.5, .max = 2},
};

static int check_list(const struct yaml_node *node, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > ITEMS_MAX)
        return yaml_error(node, err, "at most %d items", ITEMS_MAX);
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
    int rc = check_list(node, err);
    if (rc)
        return rc;
    draws->batches = mem_array(yaml_count(node), sizeof *draws->batches);
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

static int read_layout_sizes(const struct yaml_node *node, struct sim_layout *layout,
                             struct err *err)
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
    struct layout_text text = {.l2_read = 1};
    int rc = yaml_read_fields(node, layout_fields, COUNT_OF(layout_fields), &text, err);
    if (rc)
        return rc;
    layout->share = text.share;
    layout->l2_read = text.l2_read;
    if (text.model)
        rc = fleet_models_find(models, text.model, &layout->model, err);
    if (rc)
        return rc;
    rc = read_layout_sizes(text.sizes, layout, err);
    return rc ? rc : check_layout(text.sizes, layout, models, err);
}

static int read_layouts(const struct yaml_node *node, const struct fleet_models *models,
                        struct sim_draws *draws, struct err *err)
{
    double shares[ITEMS_MAX];
    const struct sim_model *of[ITEMS_MAX];
    int rc = check_list(node, err);
    if (rc)
        return rc;
    draws->layouts = mem_array(yaml_count(node), sizeof *draws->layouts);
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

static int read_drawn_fault(const struct yaml_node *node, const struct fleet_models *models,
                            const struct sim_draws *draws, struct drawn_fault *out_fault,
                            struct err *err)
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

static int read_drawn_faults(const struct yaml_node *node, const struct fleet_models *models,
                             struct sim_draws *draws, struct err *err)
{
    int rc = check_list(node, err);
    if (rc)
        return rc;
    draws->faults = mem_array(yaml_count(node), sizeof *draws->faults);
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = read_drawn_fault(yaml_at(node, i), models, draws, &draws->faults[i], err);
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
    return text->faults ? read_drawn_faults(text->faults, models, draws, err) : 0;
}

void sim_draws_fini(struct sim_draws *draws)
{
    free(draws->batches);
    free(draws->layouts);
    free(draws->faults);
}

/* real: H200 cards of one board part, from tests/judge/h200 (docs/simulation.md has the table).
 * published: fleets whose clocks under load are 8 % apart. */
static const char *const vary_words[] = {"real", "published", "none", NULL};
static const struct sim_vary vary_presets[] = {
    {.l2_latency = 0.007,
     .main_latency = 0.002,
     .l2_bandwidth = 0.005,
     .main_bandwidth = 0.0005,
     .host_bandwidth = 0.0012,
     .l2_distance_cycles = 5,
     .timer = 0.0003},
    {.sm_clock = 0.04,
     .l1_latency = 0.005,
     .l2_latency = 0.005,
     .main_latency = 0.005,
     .sm_bandwidth = 0.005,
     .l2_bandwidth = 0.005,
     .main_bandwidth = 0.005,
     .host_bandwidth = 0.005},
    {0},
};

struct vary_text {
    struct sim_vary vary;
    double other; /* every share below except that of the SM clock, unless it is given itself */
};

static const size_t vary_shares[] = {
    offsetof(struct vary_text, vary.l1_latency),
    offsetof(struct vary_text, vary.l2_latency),
    offsetof(struct vary_text, vary.main_latency),
    offsetof(struct vary_text, vary.sm_bandwidth),
    offsetof(struct vary_text, vary.l2_bandwidth),
    offsetof(struct vary_text, vary.main_bandwidth),
    offsetof(struct vary_text, vary.host_bandwidth),
    offsetof(struct vary_text, other),
};
static const char *const vary_keys[] = {
    "l1_latency",   "l2_latency",     "main_latency",   "sm_bandwidth",
    "l2_bandwidth", "main_bandwidth", "host_bandwidth", "other",
};

static int vary_read_shares(const struct yaml_node *node, struct sim_vary *out_vary,
                            struct err *err)
{
    enum { SHARES = COUNT_OF(vary_shares), OWN = 3 };
    struct vary_text text = {.vary = {0}};
    struct yaml_field fields[SHARES + OWN] = {
        {"sm_clock", YAML_F64, offsetof(struct vary_text, vary.sm_clock), .min = 0, .max = 0.5},
        {"l2_distance_cycles", YAML_F64, offsetof(struct vary_text, vary.l2_distance_cycles),
         .min = 0, .max = 100},
        {"timer", YAML_F64, offsetof(struct vary_text, vary.timer), .min = 0, .max = 0.01},
    };
    const struct yaml_node *other = yaml_get(node, "other");
    int rc = other ? yaml_as_f64(other, 0, 0.1, &text.other, err) : 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < SHARES; i++) {
        fields[i + OWN] =
            (struct yaml_field){vary_keys[i], YAML_F64, vary_shares[i], .min = 0, .max = 0.1};
        memcpy((char *)&text + vary_shares[i], &text.other, sizeof text.other);
    }
    rc = yaml_read_fields(node, fields, COUNT_OF(fields), &text, err);
    if (rc)
        return rc;
    *out_vary = text.vary;
    return 0;
}

int sim_vary_read(const struct yaml_node *node, struct sim_vary *out_vary, struct err *err)
{
    size_t word = 0;
    if (node && yaml_kind(node) == YAML_MAPPING)
        return vary_read_shares(node, out_vary, err);
    int rc = node ? yaml_as_word(node, vary_words, COUNT_OF(vary_words) - 1, &word, err) : 0;
    if (rc)
        return rc;
    *out_vary = vary_presets[word];
    return 0;
}

static double vary_factor(struct rng *rng, double deviation)
{
    return 1 + deviation * rng_normal(rng);
}

/* Each TPC has its own distance; both of its SMs are at one place. */
static void place_tpcs(struct sim_model *model, uint64_t seed, double cycles)
{
    static const double most = 2; /* deviations: none of hundreds of TPCs is far from all others */
    struct rng rng;
    double distance = 0;
    rng_init(&rng, seed, "distance");
    for (uint32_t sm = 0; cycles > 0 && sm < model->sms; sm++) {
        if (!sm || model->tpc_of[sm] != model->tpc_of[sm - 1])
            distance = cycles * fmax(-most, fmin(most, rng_normal(&rng)));
        model->l2_distance[sm] = (float)distance;
    }
}

void sim_vary_apply(const struct sim_vary *vary, uint64_t seed, struct sim_model *model)
{
    struct rng rng;
    rng_init(&rng, seed, "variation");
    model->clock.sm_mhz *= 1 + vary->sm_clock * (2 * rng_uniform(&rng) - 1);
    double l1 = vary_factor(&rng, vary->l1_latency), l2 = vary_factor(&rng, vary->l2_latency);
    double main = vary_factor(&rng, vary->main_latency);
    for (int i = 0; i < DEVICE_PATH_COUNT; i++) {
        struct sim_path *path = &model->paths[i];
        double dram = (path->main_cycles - path->l2_cycles) * main;
        for (uint32_t k = 0; k < path->cache_count; k++)
            path->cache_cycles[k] *= l1;
        path->l2_cycles *= l2;
        path->main_cycles = path->l2_cycles + dram;
    }
    struct sim_bandwidth *b = &model->bandwidth;
    const struct {
        double *rate, deviation;
    } all[] = {
        {&b->sm, vary->sm_bandwidth},           {&b->l1, vary->sm_bandwidth},
        {&b->shared, vary->sm_bandwidth},       {&b->l2_read, vary->l2_bandwidth},
        {&b->l2_write, vary->l2_bandwidth},     {&b->main_read, vary->main_bandwidth},
        {&b->main_write, vary->main_bandwidth}, {&b->main_copy, vary->main_bandwidth},
        {&b->h2d, vary->host_bandwidth},        {&b->d2h, vary->host_bandwidth},
        {&b->bidir, vary->host_bandwidth},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        *all[i].rate *= vary_factor(&rng, all[i].deviation);
    place_tpcs(model, seed, vary->l2_distance_cycles);
    rng_init(&rng, seed, "timer");
    model->timer_error = vary->timer * rng_normal(&rng);
}
