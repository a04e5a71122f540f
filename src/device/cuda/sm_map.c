/* Launches in which every SM has its role: maps of the SMs (what each one reads of L2, its latency
 * to regions of main memory, homes of lines), latency under load, the way between the parts of L2.
 */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdio.h>
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

/* The staging memory of the results: the gate, the claims of the SMs (for reads: the number of
 * readers), the results. */
enum { GATE_BYTES = 128 };

_Static_assert((int)KERNEL_SM_MAP_CHUNK_BYTES == (int)DEVICE_SM_MAP_WARP_BYTES,
               "a chunk is of one warp");

/* Chunks of a warp, at most: each is read many times in a window. */
enum { SPAN_MAX = 8 };

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

/* By the hardware's id of each SM: its index and its turn; NULL: 0 for all. */
static int upload_map_places(struct cuda_gpu *gpu, const uint16_t *turns, struct err *err)
{
    size_t bytes = gpu->sm_id_count * sizeof(struct kernel_sm_place);
    int rc = staging_grow(gpu, &gpu->jobs, bytes, err);
    if (rc)
        return rc;
    struct kernel_sm_place *places = gpu->jobs.host;
    for (uint32_t i = 0; i < gpu->sm_id_count; i++)
        places[i] = (struct kernel_sm_place){.sm = UINT32_MAX};
    for (uint32_t sm = 0; sm < gpu->base.limits.sm_count; sm++)
        places[gpu->sm_ids[sm]] = (struct kernel_sm_place){.sm = sm, .turn = turns ? turns[sm] : 0};
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

static int prepare_roles(struct sm_map *map, const char *kernel, const uint16_t *turns,
                         struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    uint32_t full = gpu->base.limits.threads_per_sm / KERNEL_SM_MAP_THREADS;
    if (!full)
        return err_set(err, -ENOTSUP, "an SM does not hold %d threads", KERNEL_SM_MAP_THREADS);
    map->blocks = gpu->base.limits.sm_count * full;
    int rc = find_map_kernel(map, kernel, err);
    if (rc)
        return rc;
    rc = upload_map_places(gpu, turns, err);
    return rc ? rc : clear_results(map, err);
}

static int prepare_map(struct sm_map *map, const char *kernel, struct err *err)
{
    int rc = prepare_roles(map, kernel, map->asked->turns, err);
    if (!rc)
        map->answer->values = mem_array(map->answer->value_count, sizeof *map->answer->values);
    return rc;
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

/* How many blocks read in a turn. */
static uint32_t turn_blocks(const struct sm_map *map, uint32_t turn)
{
    uint32_t sms = map->gpu->base.limits.sm_count, count = 0;
    for (uint32_t i = 0; i < sms; i++)
        count += turn == UINT32_MAX || map->asked->turns[i] == turn;
    return count * (map->blocks / sms);
}

/* One launch per turn; before them one in which all SMs bring the memory into L2. */
static int map_reads(struct sm_map *map, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    const struct device_sm_map *asked = map->asked;
    uint32_t sms = gpu->base.limits.sm_count, turns = 0, earlier = 0;
    uint32_t chunks = (uint32_t)(asked->footprint_bytes / KERNEL_SM_MAP_CHUNK_BYTES);
    map->answer->value_count = 2 * (size_t)sms;
    map->results_bytes = sms * sizeof(struct kernel_sm_result);
    int rc = prepare_map(map, "sm_map_read", err);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, asked->footprint_bytes, err);
    for (uint32_t i = 0; i < sms; i++)
        turns = asked->turns[i] >= turns ? asked->turns[i] + 1u : turns;
    for (uint32_t i = 0; i <= turns && !rc; i++) {
        uint32_t turn = i ? i - 1 : UINT32_MAX, blocks = turn_blocks(map, turn);
        if (!blocks)
            continue;
        uint32_t warps = blocks * (KERNEL_SM_MAP_THREADS / 32), span = chunks / warps;
        if (turn == UINT32_MAX)
            span++; /* nothing is left out */
        else
            span = span > SPAN_MAX ? SPAN_MAX : span ? span : 1;
        struct kernel_sm_read read = {
            .base = gpu->global.base,
            .places = gpu->jobs.device,
            .gate = gpu->results.device,
            .results = gpu->results.device + results_at(map),
            .readers = gpu->results.device + GATE_BYTES,
            .expected = ++map->launches * map->blocks,
            .turn = turn,
            .earlier = earlier,
            .shares = turn == UINT32_MAX || warps > chunks / span ? chunks / span : warps,
            .span = span,
            .skip_cycles = asked->window_cycles / 4,
            .window_cycles = asked->window_cycles,
            .seed = 0x9e3779b9u * i};
        rc = launch_map(map, &read, err);
        earlier += blocks;
    }
    return rc ? rc : take_map_results(map, err);
}

/* Writes the first part of every region. */
static int write_regions(struct sm_map *map, uint64_t bytes, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    int rc = 0;
    for (uint32_t i = 0; i < map->asked->regions && !rc; i++)
        rc = cuda_check(gpu,
                        gpu->driver->cuMemsetD32Async(map->base + i * map->answer->region_bytes, 0,
                                                      bytes / 4, gpu->streams[0]),
                        "cuMemsetD32Async", err);
    return rc;
}

/* Writes the lines that will be loaded, and then replaces them in L2. */
static int make_cold(struct sm_map *map, struct err *err)
{
    uint64_t loaded = (uint64_t)KERNEL_SM_MAP_SLOTS * KERNEL_SM_MAP_SLOT_BYTES;
    int rc = write_regions(map, loaded, err);
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

/* What all launches of a request wrote behind the gate and the claims. */
static int download_roles(struct sm_map *map, const void **out_results, struct err *err)
{
    struct cuda_gpu *gpu = map->gpu;
    int rc = staging_download(gpu, &gpu->results, results_at(map) + map->results_bytes, err);
    if (rc)
        return rc;
    *out_results = (const char *)gpu->results.host + results_at(map);
    return cuda_wait(gpu, err);
}

/* From one read of a warp to its next, if all warps of the other SMs together read so much. */
static uint32_t loaded_gap(const struct sm_map *map, const struct device_loaded_chase *asked)
{
    uint32_t sms = map->gpu->base.limits.sm_count;
    uint64_t reading = (uint64_t)map->blocks / sms * (sms - asked->chasers) * KERNEL_LOADED_WARPS;
    if (!asked->limit_bytes)
        return 0;
    uint64_t gap = reading * KERNEL_SM_MAP_CHUNK_BYTES * asked->window_cycles / asked->limit_bytes;
    return gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

/* Latency under load. The slots lie before what is read, so that the memory that was written last
 * when the pool grew is not theirs. Neither lines nor memory is used twice in a row: the next
 * launch goes on behind what the fastest warps of this one have read. */
int cuda_chase_loaded(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_loaded_chase *asked = request;
    struct device_loaded_chase_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct sm_map map = {.gpu = gpu, .results_bytes = sizeof(struct kernel_loaded_result)};
    const uint64_t slots =
        asked->cold ? KERNEL_LOADED_SLOTS : (uint64_t)asked->chasers * KERNEL_LOADED_LINES;
    const uint64_t slots_bytes = slots * KERNEL_SM_MAP_SLOT_BYTES;
    uint32_t sms = gpu->base.limits.sm_count;
    uint16_t *turns = mem_array(sms, sizeof *turns);
    const void *results;
    _Static_assert((int)DEVICE_LOADED_READ_BYTES == (int)KERNEL_SM_MAP_CHUNK_BYTES, "a read");
    _Static_assert(DEVICE_LOADED_CHASERS_MAX * KERNEL_LOADED_LOADS_MAX <= KERNEL_LOADED_SLOTS,
                   "each has slots of its own");
    for (uint32_t i = 0; i < asked->chasers; i++)
        turns[i * sms / asked->chasers] = (uint16_t)(i + 1);
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = prepare_roles(&map, "sm_map_loaded", turns, err);
    free(turns);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global, slots_bytes + asked->footprint_bytes, err);
    if (rc)
        return rc;
    struct kernel_loaded loaded = {
        .base = gpu->global.base + slots_bytes,
        .slots = gpu->global.base,
        .places = gpu->jobs.device,
        .gate = gpu->results.device,
        .claims = gpu->results.device + GATE_BYTES,
        .result = gpu->results.device + results_at(&map),
        .first_chunk = gpu->loaded_chunks,
        .expected = map.blocks,
        .cold = asked->cold,
        .quiet = asked->quiet,
        .chunks = (uint32_t)(asked->footprint_bytes / KERNEL_SM_MAP_CHUNK_BYTES),
        .first_slot = gpu->loaded_slots,
        .skip_cycles = asked->window_cycles / 4,
        .window_cycles = asked->window_cycles,
        .gap_cycles = loaded_gap(&map, asked)};
    rc = launch_map(&map, &loaded, err);
    if (rc)
        return rc;
    rc = download_roles(&map, &results, err);
    if (rc)
        return rc;
    const struct kernel_loaded_result *got = results;
    gpu->loaded_slots += asked->chasers * KERNEL_LOADED_LOADS_MAX;
    gpu->loaded_chunks += got->all_chunks + got->all_chunks / 2;
    if (!got->loads)
        return err_set(err, -EBUSY, "the blocks of a launch did not run on all SMs at once");
    if (!asked->quiet && (got->read_begin_ns > ~got->chase_not_begin_ns ||
                          ~got->read_not_end_ns < got->chase_end_ns))
        return err_set(err, -EBUSY, "not all other SMs read during the whole chase");
    *out_answer =
        (struct device_loaded_chase_answer){.bytes = got->chunks * KERNEL_SM_MAP_CHUNK_BYTES,
                                            .elapsed_ns = got->window_ns / asked->chasers,
                                            .loads = got->loads,
                                            .cycles = got->cycles,
                                            .squares = got->squares};
    return 0;
}

/* The way between the parts of L2. The results hold how many lines each home has, then those of
 * each launch. */
struct way {
    struct sm_map map;
    struct kernel_way launch;
};
enum { WAY_FOUND_BYTES = 16 };

static int way_launch(struct way *way, const char *kernel, struct err *err)
{
    int rc = find_map_kernel(&way->map, kernel, err);
    if (rc)
        return rc;
    way->launch.expected = ++way->map.launches * way->map.blocks;
    return launch_map(&way->map, &way->launch, err);
}

/* Lines that are to be read once are written before, by the SMs near their home. The result of such
 * a launch lies behind that of the one that counts. */
static int way_rounds(struct way *way, const struct device_way *asked, uint32_t rounds,
                      struct err *err)
{
    static const char *const kernels[DEVICE_WAY_WORK_COUNT] = {"sm_map_way_read",
                                                               "sm_map_way_write"};
    const uint32_t others = (asked->parts >> 1 | asked->parts << 1) & 3;
    const uint64_t first = way->launch.result;
    int rc = 0;
    for (uint32_t i = 0; i < 2 * rounds && !rc; i++) {
        bool counts = i % 2;
        way->launch.result = first + (i ^ 1) * sizeof(struct kernel_way_result);
        way->launch.far = counts && asked->far;
        way->launch.parts = counts || !asked->far ? asked->parts : others;
        if (counts || asked->work == DEVICE_WAY_READ)
            rc = way_launch(way, counts ? kernels[asked->work] : kernels[DEVICE_WAY_WRITE], err);
    }
    return rc;
}

static int way_read_results(struct way *way, const struct device_way *asked, uint32_t rounds,
                            struct device_way_answer *answer, struct err *err)
{
    const void *results;
    int rc = download_roles(&way->map, &results, err);
    if (rc)
        return rc;
    const uint32_t *found = results;
    const struct kernel_way_result *result =
        (const void *)((const char *)results + WAY_FOUND_BYTES);
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t tickets = found[part ^ asked->far] / KERNEL_WAY_CHUNK_LINES * way->launch.passes;
        uint64_t counted = kernel_way_mark(tickets, way->launch.blocks[part], 3) -
                           kernel_way_mark(tickets, way->launch.blocks[part], 1);
        answer->lines[part] = found[part];
        for (uint32_t i = 0; i < rounds && asked->parts >> part & 1; i++) {
            const struct kernel_way_result *round = &result[2 * i];
            if (!counted)
                return err_set(err, -ENOTSUP, "there is too little L2 for so many blocks");
            if (!round->begin_ns[part] || round->end_ns[part] <= round->begin_ns[part])
                return err_set(err, -EBUSY,
                               "the blocks of a launch did not run on all SMs at once");
            answer->elapsed_ns[part] += round->end_ns[part] - round->begin_ns[part];
            answer->bytes[part] += counted * KERNEL_WAY_CHUNK_LINES * KERNEL_WAY_LINE_BYTES;
        }
    }
    return 0;
}

int cuda_cross_way(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_way *asked = request;
    struct cuda_gpu *gpu = cuda_of(device);
    const uint32_t lines = (uint32_t)(asked->footprint_bytes / KERNEL_WAY_LINE_BYTES);
    const uint64_t wanted = asked->total_bytes / (asked->footprint_bytes / 2);
    const uint32_t passes = wanted > 1 ? (uint32_t)wanted : 1;
    const uint32_t sms = gpu->base.limits.sm_count;
    bool once = asked->work == DEVICE_WAY_READ;
    uint32_t rounds = !once ? 1 : passes < KERNEL_WAY_ROUNDS_MAX ? passes : KERNEL_WAY_ROUNDS_MAX;
    struct way way = {.map = {.gpu = gpu}};
    way.map.results_bytes = WAY_FOUND_BYTES + 2 * rounds * sizeof(struct kernel_way_result);
    uint16_t *turns = mem_array(sms, sizeof *turns);
    uint32_t ranks[2] = {0}, working[2] = {0};
    for (uint32_t sm = 0; sm < sms; sm++) {
        uint8_t part = asked->part_of_sm[sm];
        bool works = ranks[part]++ % asked->every == 0;
        turns[sm] = part | (works ? 0 : KERNEL_WAY_IDLE);
        working[part] += works;
    }
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = prepare_roles(&way.map, "sm_map_homes", turns, err);
    free(turns);
    if (rc)
        return rc;
    rc = memory_pool_reserve(gpu, &gpu->global,
                             asked->footprint_bytes + 2 * (uint64_t)lines * sizeof(uint32_t), err);
    if (rc)
        return rc;
    memory_pool_forget(&gpu->global);
    way.launch = (struct kernel_way){
        .base = gpu->global.base,
        .places = gpu->jobs.device,
        .gate = gpu->results.device,
        .claims = gpu->results.device + GATE_BYTES,
        .lists = gpu->global.base + (uint64_t)lines * KERNEL_WAY_LINE_BYTES,
        .found = gpu->results.device + results_at(&way.map),
        .result = gpu->results.device + results_at(&way.map) + WAY_FOUND_BYTES,
        .lines = lines,
        .sms = sms,
        .split_cycles = asked->split_cycles,
        .passes = once ? 1 : passes,
        .blocks = {working[0] * (way.map.blocks / sms), working[1] * (way.map.blocks / sms)}};
    rc = way_launch(&way, "sm_map_homes", err);
    if (rc)
        return rc;
    rc = way_rounds(&way, asked, rounds, err);
    return rc ? rc : way_read_results(&way, asked, rounds, answer, err);
}
