/* Maps of the SMs: what each one reads of L2, and its latency to regions of main memory. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"

struct sm_map {
    struct cuda_gpu *gpu;
    const struct device_sm_map *asked;
    struct device_sm_map_answer *answer;
    CUfunction kernel;
    CUdeviceptr base;       /* memory of its own; 0: none */
    uint32_t blocks;        /* as many as the SMs can hold */
    uint32_t launches;      /* so far */
    uint64_t results_bytes; /* in the staging memory, behind the gate */
};

/* How many times the size of L2 is written to replace everything in it. */
enum { REPLACING_L2S = 8 };

/* The staging memory of the results: the gate, the claims of the SMs, the results. */
enum { GATE_BYTES = 128 };

static uint64_t claims_bytes(const struct sm_map *map)
{
    return (map->gpu->base.limits.sm_count * sizeof(uint32_t) + GATE_BYTES - 1) / GATE_BYTES *
           GATE_BYTES;
}

static uint64_t results_at(const struct sm_map *map)
{
    return GATE_BYTES + claims_bytes(map);
}

static int find_map_kernel(struct sm_map *map, const char *name, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    const struct driver *driver = gpu->driver;
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_SM_MAP, name, &map->kernel, err);
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(map->kernel,
                                                 CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                                 CU_SHAREDMEM_CARVEOUT_MAX_L1),
                      "cuFuncSetAttribute", err);
}

/* By the hardware's id of each SM: its index and its turn. */
static int upload_map_places(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    size_t bytes = gpu->sm_id_count * sizeof(struct kernel_sm_place);
    int rc = staging_grow(gpu, &gpu->jobs, bytes, err);
    if (rc)
        return rc;
    struct kernel_sm_place *places = gpu->jobs.host;
    for (uint32_t i = 0; i < gpu->sm_id_count; i++)
        places[i] = (struct kernel_sm_place){.sm = UINT32_MAX};
    for (uint32_t sm = 0; sm < gpu->base.limits.sm_count; sm++)
        places[gpu->sm_ids[sm]] = (struct kernel_sm_place){
            .sm = sm, .turn = map->asked->turns ? map->asked->turns[sm] : 0};
    return staging_upload(gpu, &gpu->jobs, bytes, err);
}

static int clear_results(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    size_t bytes = results_at(map) + map->results_bytes;
    int rc = staging_grow(gpu, &gpu->results, bytes, err);
    if (rc)
        return rc;
    memset(gpu->results.host, 0, bytes);
    return staging_upload(gpu, &gpu->results, bytes, err);
}

static int prepare_map(struct sm_map *map, const char *kernel, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    uint32_t full = gpu->base.limits.threads_per_sm / KERNEL_SM_MAP_THREADS;
    if (!full)
        return err_set(err, -ENOTSUP, "an SM does not hold %d threads", KERNEL_SM_MAP_THREADS);
    map->blocks = gpu->base.limits.sm_count * full;
    int rc = find_map_kernel(map, kernel, err);
    if (rc)
        return rc;
    map->answer->values = mem_array(map->answer->value_count, sizeof *map->answer->values);
    rc = upload_map_places(map, err);
    return rc ? rc : clear_results(map, err);
}

static int launch_map(struct sm_map *map, void *parameters, struct err *err)
{
    void *pointers[] = {parameters};
    return cuda_launch(map->gpu, map->kernel, map->blocks, KERNEL_SM_MAP_THREADS, 0, pointers, err);
}

/* A value of 0: the blocks did not all run at once. */
static int take_map_results(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    const uint64_t *values = (const uint64_t *)((const char *)gpu->results.host + results_at(map));
    int rc = staging_download(gpu, &gpu->results, results_at(map) + map->results_bytes, err);
    if (rc)
        return rc;
    rc = cuda_wait(gpu, err);
    for (size_t i = 0; i < map->answer->value_count && !rc; i++) {
        map->answer->values[i] = values[i];
        if (!values[i])
            rc = err_set(err, -EBUSY, "the blocks of a launch did not run on all SMs at once");
    }
    return rc;
}

/* One launch per turn; before them one in which all SMs bring the memory into L2. */
static int map_reads(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    const struct device_sm_map *asked = map->asked;
    uint32_t sms = gpu->base.limits.sm_count, turns = 0;
    map->answer->value_count = 2 * (size_t)sms;
    map->results_bytes = sms * sizeof(struct kernel_sm_result);
    int rc = prepare_map(map, "sm_map_read", err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, asked->footprint_bytes, err);
    for (uint32_t i = 0; i < sms; i++)
        turns = asked->turns[i] >= turns ? asked->turns[i] + 1u : turns;
    for (uint32_t i = 0; i <= turns && !rc; i++) {
        struct kernel_sm_read read = {
            .base = gpu->global.base,
            .places = gpu->jobs.device,
            .gate = gpu->results.device,
            .results = gpu->results.device + results_at(map),
            .expected = ++map->launches * map->blocks,
            .turn = i ? i - 1 : UINT32_MAX,
            .chunk_mask = (uint32_t)(asked->footprint_bytes / KERNEL_SM_MAP_CHUNK_BYTES) - 1,
            .skip_cycles = asked->window_cycles / 4,
            .window_cycles = asked->window_cycles,
            .seed = 0x9e3779b9u * i};
        rc = launch_map(map, &read, err);
    }
    return rc ? rc : take_map_results(map, err);
}

/* Writes the same part of every region. */
static int write_regions(struct sm_map *map, uint64_t offset, uint64_t bytes, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    int rc = 0;
    for (uint32_t i = 0; i < map->asked->regions && bytes && !rc; i++)
        rc = cuda_check(
            gpu,
            gpu->driver->cuMemsetD32Async(map->base + i * map->answer->region_bytes + offset, 0,
                                          bytes / 4, gpu->streams[0]),
            "cuMemsetD32Async", err);
    return rc;
}

/* Writes the lines that will be loaded, and then replaces them in L2 by others. On an H200 loads
 * alone do not replace what was written last: the last regions would be read from L2. */
static int make_cold(struct sm_map *map, struct err *err)
{
    uint64_t loaded = (uint64_t)KERNEL_SM_MAP_SLOTS * KERNEL_SM_MAP_SLOT_BYTES;
    uint64_t room = map->answer->region_bytes - loaded;
    uint64_t others = REPLACING_L2S * map->gpu->l2_bytes / map->asked->regions / 4 * 4;
    int rc = write_regions(map, 0, loaded, err);
    if (!rc)
        rc = write_regions(map, loaded, others < room ? others : room, err);
    return rc ? rc : cuda_launch_flush_l2(map->gpu, err);
}

static int chase_regions(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    uint32_t sms = gpu->base.limits.sm_count, loads = map->asked->loads;
    uint64_t least = (uint64_t)KERNEL_SM_MAP_SLOTS * KERNEL_SM_MAP_SLOT_BYTES;
    if ((uint64_t)sms * loads > KERNEL_SM_MAP_SLOTS)
        return err_set(err, -ENOTSUP, "%u loads of %u SMs: a region has room for %d", loads, sms,
                       KERNEL_SM_MAP_SLOTS);
    int rc = cuda_whole_take(gpu, err);
    if (rc)
        return rc;
    map->base = gpu->whole;
    uint64_t bytes = gpu->whole_bytes / map->asked->regions / KERNEL_SM_MAP_PAGE_BYTES *
                     KERNEL_SM_MAP_PAGE_BYTES;
    if (bytes < least)
        return err_set(err, -ENOTSUP, "there is too little memory for %u regions",
                       map->asked->regions);
    map->answer->region_bytes = bytes;
    rc = make_cold(map, err);
    if (rc)
        return rc;
    struct kernel_sm_memory memory = {.base = map->base,
                                      .region_bytes = bytes,
                                      .places = gpu->jobs.device,
                                      .gate = gpu->results.device,
                                      .claims = gpu->results.device + GATE_BYTES,
                                      .results = gpu->results.device + results_at(map),
                                      .expected = map->blocks,
                                      .sms = sms,
                                      .regions = map->asked->regions,
                                      .loads = loads};
    rc = launch_map(map, &memory, err);
    return rc ? rc : take_map_results(map, err);
}

static int map_memory(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    map->answer->value_count = (size_t)gpu->base.limits.sm_count * map->asked->regions;
    map->results_bytes = map->answer->value_count * sizeof(uint64_t);
    if (watch_others(&gpu->watch, &gpu->nvml_gpu))
        return err_set(err, -EBUSY, "another process uses the GPU and may need its memory");
    int rc = prepare_map(map, "sm_map_memory", err);
    return rc ? rc : chase_regions(map, err);
}

static int map_atomics(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    const struct device_sm_map *asked = map->asked;
    map->answer->value_count = (size_t)gpu->base.limits.sm_count * asked->regions;
    map->results_bytes = map->answer->value_count * sizeof(uint64_t);
    int rc = prepare_map(map, "sm_map_atomics", err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, asked->footprint_bytes, err);
    if (rc)
        return rc;
    struct kernel_sm_atomics atomics = {
        .base = gpu->global.base,
        .places = gpu->jobs.device,
        .gate = gpu->results.device,
        .claims = gpu->results.device + GATE_BYTES,
        .results = gpu->results.device + results_at(map),
        .expected = map->blocks,
        .sms = gpu->base.limits.sm_count,
        .lines = asked->regions,
        .atomics = asked->loads,
        .slot_mask = (uint32_t)(asked->footprint_bytes / KERNEL_SM_MAP_SLOT_BYTES) - 1};
    rc = launch_map(map, &atomics, err);
    return rc ? rc : take_map_results(map, err);
}

int cuda_map_sms(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_sm_map *asked = request;
    struct device_sm_map_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct sm_map map = {.gpu = gpu, .asked = asked, .answer = out_answer};
    int rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    switch (asked->kind) {
    case DEVICE_SM_MAP_READ:
        return map_reads(&map, err);
    case DEVICE_SM_MAP_MEMORY:
        return map_memory(&map, err);
    default:
        return map_atomics(&map, err);
    }
}
