/* Draws the batch, the layout and the faults of a GPU, and what the first two change. */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/sim/draws.h"

/* The same answer whoever asks, for one item and one GPU, node or rack. */
static bool is_hit(uint64_t seed, const char *what, size_t item, uint64_t number, double share)
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
        if (is_hit(seed, "batch", i, numbers->of[batch->per], batch->share / left))
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
        if (is_hit(seed, "layout", i, numbers->of[SIM_PER_GPU], layout->share / left))
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
        if (is_hit(seed, "fault", i, numbers->of[fault->per], fault->hits))
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
            is_hit(seed, "fault", i, numbers->of[fault->per], fault->hits))
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

static void shuffle(struct rng *rng, uint32_t *items, uint32_t count)
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
    shuffle(&rng, sizes, layout->gpc_count);
    sim_place_sms(model, sizes, layout->gpc_count);
    for (uint32_t i = 0; i < layout->gpc_count; i++)
        ranks[i] = i;
    shuffle(&rng, ranks, layout->gpc_count);
    for (uint32_t i = 0; i < layout->gpc_count; i++)
        model->gpc_rank[i] = (uint16_t)ranks[i];
}
