/* Opens a simulated GPU: faults, variation, clocks, shared caches. */
#include "device/sim/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/sim/draws.h"

/* Loads that a figure such as a resident share may take: a few hundredths of a second. */
enum { LOADS_MAX = 1000000 };

int gpu_read_clocks(struct device *device, const void *request, void *answer, struct err *err)
{
    struct gpu *gpu = (struct gpu *)device;
    (void)request, (void)err;
    gpu_update(gpu);
    *(struct device_clocks *)answer = (struct device_clocks){
        .sm_mhz = gpu_clock_mhz(gpu, gpu->busy_ns),
        .memory_mhz = gpu->model.clock.memory_mhz,
        .throttle_reasons = gpu->model.throttle_bits,
        .throttle_known = true,
    };
    return 0;
}

int gpu_read_health(struct device *device, const void *request, void *answer, struct err *err)
{
    (void)request, (void)err;
    gpu_update((struct gpu *)device);
    gpu_report_health((const struct gpu *)device, answer);
    return 0;
}

int gpu_begin_link(struct device *device, const void *request, void *answer, struct err *err)
{
    struct gpu *gpu = (struct gpu *)device;
    (void)request, (void)err;
    if (gpu->link.name)
        ((struct device_link *)answer)->alone = turn_take(&gpu->link, TURN_LINK_MS);
    return 0;
}

static void gpu_end_link(struct device *device)
{
    turn_give(&((struct gpu *)device)->link);
}

static void destroy_groups(struct cache **caches, uint32_t count)
{
    for (uint32_t g = 0; caches && g < count; g++)
        cache_destroy(caches[g]);
    free(caches);
}

static void gpu_destroy(struct device *device)
{
    struct gpu *gpu = (struct gpu *)device;
    turn_give(&gpu->link);
    for (size_t i = 0; i < gpu->context_count; i++) {
        for (int c = 0; c < SIM_CACHES_MAX; c++)
            for (int k = 0; k < SIM_INSTANCES_MAX; k++)
                cache_destroy(gpu->contexts[i].caches[c][k]);
        for (int k = 0; k < SIM_TLBS; k++)
            cache_destroy(gpu->contexts[i].tlbs[k]);
    }
    for (uint32_t c = 0; c < gpu->model.cache_count; c++)
        destroy_groups(gpu->wide[c], gpu_group_count(&gpu->model, gpu->model.caches[c].scope));
    for (int i = 0; i < SIM_TLBS; i++)
        destroy_groups(gpu->tlbs[i], gpu_group_count(&gpu->model, gpu->model.tlbs[i].scope));
    for (int i = 0; i < SIM_PARTS_MAX; i++)
        cache_destroy(gpu->l2[i]);
    free(gpu->contexts);
    free(gpu->runs);
    free(gpu->timed);
    free(gpu);
}

#define GPU_FUNCTION(name, function) [DEVICE_CALL_##name] = gpu_##function,
static const struct device_ops ops = {
    .backend = "sim",
    .calls = {DEVICE_CALLS(GPU_FUNCTION)},
    .end_link = gpu_end_link,
    .destroy = gpu_destroy,
};

static void gpu_set_limits(struct gpu *gpu)
{
    const struct sim_model *model = &gpu->model;
    gpu->device.limits = (struct device_limits){
        .sm_count = model->sms,
        .warp_count = model->hardware.threads_per_block / model->hardware.warp_size,
        /* The driver reserves a part of the memory. */
        .global_bytes = (model->memory_bytes - model->hidden_bytes) / 16 * 15 - model->held_bytes,
        .constant_bytes = model->constant_bytes,
        .shared_bytes_max = model->shared_bytes_max,
        .shared_array_bytes = model->shared_bytes_max,
        .loads_max = LOADS_MAX,
        .host_bytes = model->host_bytes,
        .l2_reported_bytes = model->l2.reported,
        .threads_per_sm = model->hardware.threads_per_sm,
    };
    gpu->device.limits.wide_bytes = gpu->device.limits.global_bytes;
    const struct sim_path *path = &gpu->model.paths[DEVICE_GLOBAL_CA];
    const struct sim_carveout *carveout = &gpu->model.carveout;
    uint64_t granted = 0, beside = 0;
    if (path->cache_count)
        gpu->device.limits.l1_nominal_bytes = gpu->model.caches[path->caches[0]].nominal;
    if (!carveout->present)
        return;
    if (!sim_carveout_grant(carveout, 0, &granted, &beside, NULL))
        gpu->device.limits.l1_carveout_bytes = granted;
    memcpy(gpu->device.limits.carveout_steps, carveout->steps,
           carveout->step_count * sizeof carveout->steps[0]);
    gpu->device.limits.carveout_reserve_bytes = carveout->reserve;
}

static void create_shared_caches(struct gpu *gpu)
{
    const struct sim_model *model = &gpu->model;
    struct cache_geometry part = model->l2.geometry;
    part.size /= model->l2.part_count;
    for (uint32_t i = 0; i < model->l2.part_count; i++)
        gpu->l2[i] = cache_create(&part);
    for (uint32_t c = 0; c < model->cache_count; c++)
        if (model->caches[c].scope != SIM_SCOPE_SM)
            gpu->wide[c] =
                mem_array(gpu_group_count(model, model->caches[c].scope), sizeof *gpu->wide[c]);
    for (int i = 0; i < SIM_TLBS; i++)
        gpu->tlbs[i] =
            mem_array(gpu_group_count(model, model->tlbs[i].scope), sizeof *gpu->tlbs[i]);
}

int sim_open_unit(const struct sim_model *model, const struct sim_unit *unit,
                  const struct sim_fault *faults, size_t count, struct device **out_device,
                  struct err *err)
{
    struct gpu *gpu = mem_array(1, sizeof *gpu);
    gpu->device.ops = &ops;
    gpu->model = *model;
    gpu->unit = *unit;
    gpu->link.name = unit->node;
    if (unit->links)
        gpu->links = *unit->links;
    gpu->unit.links = NULL;
    sim_unit_uuid(unit, gpu->uuid);
    /* A swapped die has the names of the old one and differences of its own. */
    uint64_t seed = unit->identity_seed;
    for (size_t i = 0; i < count; i++)
        if (faults[i].kind == SIM_SWAPPED_DIE)
            seed = rng_derive(unit->identity_seed, "swapped", 0);
    gpu->noise_seed = rng_derive(unit->noise_seed, gpu->uuid, unit->session);
    if (unit->batch)
        sim_batch_apply(unit->batch, &gpu->model);
    if (unit->layout)
        sim_layout_apply(unit->layout, seed, &gpu->model);
    sim_vary_apply(&unit->vary, seed, &gpu->model);
    for (size_t i = 0; i < count; i++) {
        int rc = faults[i].when.timed ? 0 : sim_model_apply(&gpu->model, &faults[i], err);
        if (rc) {
            gpu_destroy(&gpu->device);
            return rc;
        }
    }
    gpu_time_faults(gpu, faults, count);
    create_shared_caches(gpu);
    gpu_set_limits(gpu);
    *out_device = &gpu->device;
    return 0;
}

int sim_open(const struct sim_model *model, const struct sim_fault *faults, size_t count,
             uint64_t seed, struct device **out_device, struct err *err)
{
    struct sim_unit unit = {.identity_seed = seed, .noise_seed = seed};
    return sim_open_unit(model, &unit, faults, count, out_device, err);
}
