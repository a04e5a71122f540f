/* A stand-in for libcuda.so.1 that executes the chase jobs on the CPU: memory is the host's, and a
 * load takes 1 + (address / 8) % 256 cycles, so that latencies tell which elements were loaded. */
#include <cuda.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/check_program.h"
#include "device/cuda/kernels.h"
#include "device/device.h"
#include "fake_code.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SMS = 4,
    SM_IDS = 9,
    PLACE_BYTES = 2 << 20,
    SHARED_MAX = 227 * 1024,
    THREADS_PER_SM = 1536,
    CAPABILITY = 99,
    L2_FETCH_LIMIT = 64,
};

/* SM ids with gaps; the SM with the first id takes no block on the first try. */
static const uint32_t sm_ids[SMS] = {0, 3, 4, 8};
static uint32_t constant_words[KERNEL_CONSTANT_BYTES / 4];
static CUdeviceptr texture_base;
static int chase_launches;

/* As on Hopper: lines that a texture brought into L1 outlast the launch, and loads of later
 * launches miss until scrub_l1 has run. */
enum { TEXTURED_CYCLES = 200 };
static bool textured;

/* What is as large as this is neither moved nor looked at; a copy takes a moment. */
enum { LARGE_BYTES = 32 << 20, LARGE_US = 500 };

/* FAKE_CUDA_FAULT="cuLaunchKernel:3:700:sticky": the third call of the function fails with error
 * 700, and from then on everything that works on the GPU does. With FAKE_CUDA_FAULTY=1 that is so
 * on GPU 1 only. */
static CUdevice current_device = -1;
static int fault_calls;
static CUresult fault_stuck;

static CUresult fault(const char *function)
{
    static char known[128];
    const char *text = getenv("FAKE_CUDA_FAULT");
    char name[64] = "", sticky[16] = "";
    int call = 0, code = 0;
    const char *faulty = getenv("FAKE_CUDA_FAULTY");
    if (!text || (faulty && atoi(faulty) != current_device))
        text = "";
    if (strcmp(text, known) != 0) {
        snprintf(known, sizeof known, "%s", text);
        fault_calls = 0;
        fault_stuck = CUDA_SUCCESS;
    }
    if (fault_stuck || sscanf(text, "%63[^:]:%d:%d:%15s", name, &call, &code, sticky) < 3)
        return fault_stuck;
    if (strncmp(function, name, strlen(name)) != 0 || ++fault_calls != call)
        return CUDA_SUCCESS;
    fault_stuck = *sticky ? (CUresult)code : CUDA_SUCCESS;
    return (CUresult)code;
}
#define MAY_FAIL                                                                                   \
    do {                                                                                           \
        CUresult failed = fault(__func__);                                                         \
        if (failed)                                                                                \
            return failed;                                                                         \
    } while (0)

static uint64_t load(uint32_t path, uint64_t at, const uint32_t *image, uint32_t *out_cycles)
{
    uint64_t value;
    if (path == DEVICE_TEXTURE) {
        at = texture_base + 4 * at;
        value = *(const uint32_t *)(uintptr_t)at;
    } else if (path == DEVICE_CONSTANT) {
        value = constant_words[at / 4];
    } else if (path == DEVICE_SHARED) {
        value = image[at / 4];
    } else {
        value = *(const uint64_t *)(uintptr_t)at;
    }
    *out_cycles = 1 + (uint32_t)(at / 8 % 256);
    return value;
}

/* FAKE_CUDA_CYCLES="600": each load takes so long, wherever it goes. */
static void run_step(const struct kernel_step *step, const uint32_t *image,
                     struct kernel_result *result)
{
    const char *fixed_cycles = getenv("FAKE_CUDA_CYCLES");
    uint32_t *output = (uint32_t *)(uintptr_t)step->output;
    uint64_t at = step->first, kept = 0;
    uint32_t left = step->left, position = step->position;
    if (step->kind == KERNEL_CHASE)
        memset(output, 0, KERNEL_BIN_COUNT * sizeof *output);
    for (uint64_t n = 0; n < step->loads; n++) {
        uint32_t cycles;
        uint64_t value = load(step->path, at, image, &cycles);
        cycles = fixed_cycles ? (uint32_t)strtoul(fixed_cycles, NULL, 10) : cycles;
        cycles += textured ? TEXTURED_CYCLES : 0;
        at += step->stride;
        if (--left == 0) {
            at -= step->span;
            left = step->pass;
        }
        position = position + 1 < step->pass ? position + 1 : 0;
        if (step->order == KERNEL_CHAINED)
            at = value;
        else if (step->order == KERNEL_PERMUTED)
            at = step->base + kernel_permute(position, step->pass, step->key) * step->stride;
        result->cycles[step->index] += cycles;
        if (step->kind != KERNEL_CHASE)
            continue;
        output[kernel_bin_of(cycles)]++;
        if (kept < step->keep && n == kept * step->loads / step->keep)
            output[KERNEL_BIN_COUNT + kept++] = cycles;
    }
    result->elapsed_ns[step->index] = result->cycles[step->index];
}

static void run_job(const struct kernel_job *job, uint32_t sm_id)
{
    struct kernel_result *result = (struct kernel_result *)(uintptr_t)job->result;
    uint32_t *image = calloc(job->image_bytes / 4 + 1, 4);
    if (job->image)
        memcpy(image, (const void *)(uintptr_t)job->image, job->image_bytes);
    for (uint32_t i = 0; i < job->step_count; i++)
        if (job->steps[i].kind != KERNEL_FILL)
            run_step(&job->steps[i], image, result);
    result->sm_id = sm_id;
    result->done = job->step_count;
    free(image);
}

static void run_chase(void **parameters)
{
    const struct kernel_job *jobs = *(const struct kernel_job **)parameters[0];
    int32_t *claims = *(int32_t **)parameters[1];
    bool textures = false;
    for (int i = chase_launches++ ? 0 : 1; i < SMS; i++) {
        int32_t number = claims[sm_ids[i]];
        claims[sm_ids[i]] = -1;
        if (number < 0)
            continue;
        run_job(&jobs[number], sm_ids[i]);
        textures |= jobs[number].steps[0].path == DEVICE_TEXTURE;
    }
    textured |= textures;
}

static uint64_t link_element(const struct kernel_link *link, uint32_t i)
{
    return link->permuted ? kernel_permute(i, link->count, link->key) : i;
}

static void run_link(const struct kernel_link *link)
{
    for (uint32_t i = 0; i < link->count; i++) {
        uint32_t next = i + 1 < link->count ? i + 1 : 0;
        uint64_t at = link->base + link_element(link, i) * link->stride;
        uint64_t to = link->base + link_element(link, next) * link->stride;
        if (link->wide)
            *(uint64_t *)(uintptr_t)at = to;
        else
            *(uint32_t *)(uintptr_t)at = (uint32_t)((to - link->origin) >> link->shift);
    }
}

/* FAKE_STREAM tells the test of the last launch of a streaming kernel: name, blocks, threads. */
static void tell_stream(const char *name, unsigned grid, unsigned block)
{
    char text[128];
    snprintf(text, sizeof text, "%s %u %u", name, grid, block);
    setenv("FAKE_STREAM", text, 1);
}

/* FAKE_CUDA_LATER="5:FAKE_NVML_PIDS=99": before the fifth launch that tests memory or is part of a
 * load, this variable gets this value. */
static void let_time_pass(void)
{
    static int launches;
    const char *text = getenv("FAKE_CUDA_LATER");
    char name[64];
    int call = 0, at = 0;
    if (text && sscanf(text, "%d:%63[^=]=%n", &call, name, &at) == 2 && ++launches == call)
        setenv(name, text + at, 1);
}

/* FAKE_CUDA_STUCK="4096": in memory tests, bit 5 of the word at this offset is always 1. */
static void run_memory(const char *name, const struct kernel_region *region)
{
    static const char *const patterns[] = {"address", "inverse", "walking", "random"};
    const char *text = getenv("FAKE_CUDA_STUCK");
    uint64_t stuck = text ? strtoull(text, NULL, 10) : UINT64_MAX;
    struct kernel_region_result *result = (struct kernel_region_result *)(uintptr_t)region->result;
    uint64_t *words = (uint64_t *)(uintptr_t)region->base;
    bool writes = strncmp(name, "memory_write_", 13) == 0;
    enum kernel_pattern pattern = KERNEL_PATTERN_ADDRESS;
    while (strcmp(name + 13, patterns[pattern]) != 0)
        pattern++;
    if (16 * region->count >= LARGE_BYTES)
        return;
    for (uint64_t i = 0; i < 2 * region->count; i++) {
        uint64_t right = kernel_pattern_word(pattern, region->offset + 8 * i, region->seed);
        if (writes)
            words[i] = right;
        if (region->offset + 8 * i == stuck)
            words[i] |= 1 << 5;
        if (writes || words[i] == right)
            continue;
        result->wrong_words++;
        result->wrong_bits |= words[i] ^ right;
        result->wrong_offset = 8 * i < result->wrong_offset ? 8 * i : result->wrong_offset;
    }
}

/* The first half of the region is written, the second one is checked. */
static void run_exchange(struct kernel_region region)
{
    region.count /= 2;
    run_memory("memory_write_address", &region);
    region.base += 16 * region.count;
    region.offset += 16 * region.count;
    run_memory("memory_check_address", &region);
}

/* The checks: every warp has the host's hash. FAKE_CUDA_WRONG="1": those of the second SM have
 * another.
 */
static void run_check(const char *name, unsigned grid, unsigned block,
                      const struct kernel_check *check)
{
    const char *text = getenv("FAKE_CUDA_WRONG");
    unsigned wrong = text ? (unsigned)strtoul(text, NULL, 10) : UINT_MAX;
    struct kernel_check_result *results = (struct kernel_check_result *)(uintptr_t)check->results;
    struct check_run run = {.seed = check->seed,
                            .periods = check->periods,
                            .warps = block / CHECK_LANES,
                            .section_words = check->section_words};
    while (strcmp(device_unit_name(run.unit), name) != 0)
        run.unit++;
    uint64_t hash = check_hash(&run, 0);
    for (unsigned i = 0; i < grid; i++) {
        results[i].sm_id = sm_ids[i];
        for (uint32_t w = 0; w < run.warps; w++) {
            results[i].hashes[w] = hash + (i == wrong);
            results[i].cycles[w] = 1000;
        }
    }
}

/* Every SM of the turn reads 1000 bytes per cycle of its index + 1, in 1 ns per cycle.
 * FAKE_CUDA_SHARED="1": the blocks do not run at once. */
static void run_sm_read(const struct kernel_sm_read *read, unsigned grid)
{
    struct kernel_sm_gate *gate = (struct kernel_sm_gate *)(uintptr_t)read->gate;
    const struct kernel_sm_place *places = (const struct kernel_sm_place *)(uintptr_t)read->places;
    struct kernel_sm_result *results = (struct kernel_sm_result *)(uintptr_t)read->results;
    gate->came += grid;
    for (int i = 0; i < SMS && gate->came == read->expected && !getenv("FAKE_CUDA_SHARED"); i++) {
        const struct kernel_sm_place *place = &places[sm_ids[i]];
        if (place->turn == read->turn)
            results[place->sm] = (struct kernel_sm_result){
                1000u * (place->sm + 1) * (uint64_t)read->window_cycles, read->window_cycles};
    }
}

/* An SM takes as many cycles per load as its index and the region have together, and 500 more. */
static void run_sm_memory(const struct kernel_sm_memory *memory)
{
    uint64_t *results = (uint64_t *)(uintptr_t)memory->results;
    for (uint32_t i = 0; i < memory->sms * memory->regions; i++)
        results[i] = (500 + i / memory->regions + i % memory->regions) * (uint64_t)memory->loads;
}

/* What events tell: each launch of the load takes 20 ms more, everything else 1 ms. */
static float load_ms;

/* FAKE_CUDA_PACE="path": each launch of a load takes 20 ms indeed, and adds a line to this file:
 * the process, and when the launch began and ended, in ns. */
static void take_time(const char *path)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *file = fopen(path, "a");
    if (!file)
        return;
    fprintf(file, "%d %lld%09ld %lld%09ld\n", (int)getpid(), (long long)begin.tv_sec, begin.tv_nsec,
            (long long)end.tv_sec, end.tv_nsec);
    fclose(file);
}

static void run_load(const struct kernel_load *load, unsigned grid)
{
    if (getenv("FAKE_CUDA_PACE"))
        take_time(getenv("FAKE_CUDA_PACE"));
    struct kernel_load_result *result = (struct kernel_load_result *)(uintptr_t)load->result;
    result->operations += load->rounds * (uint64_t)grid;
    result->bytes += load->chunks;
    result->cycles += 30000000;
    result->elapsed_ns += 20000000;
    result->unit = KERNEL_LOAD_MMA;
    load_ms += 20;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid, unsigned y, unsigned z,
                               unsigned block, unsigned by, unsigned bz, unsigned shared,
                               CUstream stream, void **parameters, void **extra)
{
    const char *name = (const char *)function;
    MAY_FAIL;
    (void)y, (void)z, (void)by, (void)bz, (void)stream, (void)extra;
    if (shared > SHARED_MAX - KERNEL_STATIC_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (strncmp(name, "memory_", 7) == 0 || strncmp(name, "load_", 5) == 0)
        let_time_pass();
    if (strncmp(name, "stream_", 7) == 0)
        tell_stream(name, grid, block);
    else if (strncmp(name, "chase_", 6) == 0)
        run_chase(parameters);
    else if (strncmp(name, "memory_write_", 13) == 0 || strncmp(name, "memory_check_", 13) == 0)
        run_memory(name, parameters[0]);
    else if (strcmp(name, "memory_exchange") == 0)
        run_exchange(*(const struct kernel_region *)parameters[0]);
    else if (strncmp(name, "check_", 6) == 0)
        run_check(name + 6, grid, block, parameters[0]);
    else if (strcmp(name, "sm_map_read") == 0)
        run_sm_read(parameters[0], grid);
    else if (strcmp(name, "sm_map_memory") == 0)
        run_sm_memory(parameters[0]);
    else if (strcmp(name, "code") == 0)
        fake_code_run(grid, block, parameters);
    else if (strcmp(name, "load_both") == 0)
        run_load(parameters[0], grid);
    else if (strcmp(name, "load_fill") == 0)
        load_ms = 0;
    else if (strcmp(name, "scrub_l1") == 0)
        textured = false;
    else if (strcmp(name, "link_chain") == 0)
        run_link(parameters[0]);
    else if (strcmp(name, "count_sm_ids") == 0)
        **(uint32_t **)parameters[0] = SM_IDS;
    else if (strcmp(name, "find_sms") == 0)
        for (int i = 0; i < SMS; i++)
            (*(uint32_t **)parameters[0])[sm_ids[i]] = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned flags)
{
    const char *failure = getenv("FAKE_CUDA_INIT");
    fault_calls = 0;
    textured = false;
    load_ms = 0;
    fault_stuck = CUDA_SUCCESS;
    (void)flags;
    return failure ? (CUresult)atoi(failure) : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    const char *pretended = getenv("FAKE_CUDA_VERSION");
    *version = pretended ? atoi(pretended) : CUDA_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **text)
{
    (void)error;
    *text = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "made up";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    const char *wanted = getenv("FAKE_CUDA_DEVICES");
    *count = wanted ? atoi(wanted) : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    strncpy(name, "Fake GPU", (size_t)length);
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_NODE="2": as the stand-ins of other nodes have another number, other UUIDs. */
EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    const char *text = getenv("FAKE_CUDA_NODE");
    int node = text ? atoi(text) : 0;
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0x10 * i + i + (i == 0 ? device : i == 1 ? node : 0));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
    snprintf(text, (size_t)length, "FFFF:%02X:00.0", (unsigned)(0x1b + device));
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_CAPABILITY="90:233472": compute capability 9.0, so many bytes of shared memory per SM.
 */
static int capability(void)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");
    return text ? atoi(text) : CAPABILITY;
}

static int shared_per_sm(void)
{
    const char *text = getenv("FAKE_CUDA_CAPABILITY");
    const char *colon = text ? strchr(text, ':') : NULL;
    return colon ? atoi(colon + 1) : SHARED_MAX + 1024;
}

/* FAKE_CUDA_FAULT may let it fail, as it does where there is no such limit. */
EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    MAY_FAIL;
    *value = limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY ? L2_FETCH_LIMIT : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = SMS;
        break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        *value = KERNEL_CONSTANT_BYTES;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = SHARED_MAX;
        break;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
        *value = 1 << 27;
        break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 1 << 20;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = THREADS_PER_SM;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability() / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability() % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = shared_per_sm();
        break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return CUDA_ERROR_INVALID_VALUE;
    default:
        *value = 9;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_MEMORY="160": so many MiB. */
EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    *free_bytes = *total = (text ? strtoull(text, NULL, 10) : 64) << 20;
    return CUDA_SUCCESS;
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, PLACE_BYTES, bytes))
        return NULL;
    if (bytes <= LARGE_BYTES)
        memset(memory, 0xff, bytes); /* what nobody set is caught: no chain leads there */
    return memory;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    MAY_FAIL;
    *pointer = (CUdeviceptr)(uintptr_t)allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFree(CUdeviceptr pointer)
{
    free((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    MAY_FAIL;
    *pointer = allocate(bytes);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *pointer)
{
    free(pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags)
{
    (void)flags;
    *device = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, size_t count, CUstream stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)(uintptr_t)pointer)[i] = value;
    return CUDA_SUCCESS;
}

/* A copy is under way until someone waits for it or has asked twice; FAKE_COPYING tells the
 * stand-in for NVML. */
static int queries_left;

EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    MAY_FAIL;
    if (bytes <= PLACE_BYTES) /* larger ones are streams, whose content nobody reads */
        memcpy((void *)(uintptr_t)to, from, bytes);
    if (bytes >= LARGE_BYTES)
        usleep(LARGE_US);
    setenv("FAKE_COPYING", "1", 1);
    queries_left = 3;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    MAY_FAIL;
    if (bytes < LARGE_BYTES)
        memcpy(to, (const void *)(uintptr_t)from, bytes);
    else
        usleep(LARGE_US);
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_APART="1": SMs cannot reach the memory of other GPUs. */
EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    MAY_FAIL;
    *can = device != peer && !getenv("FAKE_CUDA_APART");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    (void)peer, (void)flags;
    MAY_FAIL;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    (void)peer;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_WRONG="64": the byte at this offset of copies between GPUs arrives wrong.
 * FAKE_CUDA_HANG="1": they never come back. */
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream)
{
    const char *wrong = getenv("FAKE_CUDA_WRONG");
    (void)stream;
    MAY_FAIL;
    if (to_context == from_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    while (getenv("FAKE_CUDA_HANG"))
        pause();
    if (bytes < LARGE_BYTES)
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    if (wrong)
        ((unsigned char *)(uintptr_t)to)[atoi(wrong)] = 0xa5;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    static char names[64][64];
    static int count;
    (void)module;
    strncpy(names[count % 64], name, sizeof names[0] - 1);
    *function = (CUfunction)names[count++ % 64];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
                                  const char *name)
{
    (void)module, (void)name;
    *pointer = (CUdeviceptr)(uintptr_t)constant_words;
    *bytes = sizeof constant_words;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                                  const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view)
{
    (void)texture, (void)view;
    texture_base = resource->res.linear.devPtr;
    *object = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    if (queries_left > 0 && --queries_left)
        return CUDA_ERROR_NOT_READY;
    unsetenv("FAKE_COPYING");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    (void)start, (void)end;
    *ms = load_ms > 0 ? load_ms : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    unsetenv("FAKE_COPYING");
    MAY_FAIL;
    return CUDA_SUCCESS;
}

/* FAKE_CONTEXT tells the stand-in for NVML that this process is on the GPU: the first one that it
 * has a context on. */
static int contexts;

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!contexts)
        current_device = device;
    MAY_FAIL;
    contexts++;
    *context = (CUcontext)(uintptr_t)(8 + device);
    setenv("FAKE_CONTEXT", "1", 1);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    if (--contexts == 0)
        unsetenv("FAKE_CONTEXT");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    MAY_FAIL;
    *module = (CUmodule)(uintptr_t)8;
    return CUDA_SUCCESS;
}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Things of which only the existence matters. */
#define FAKE_OBJECT(name, type, argument)                                                          \
    EXPORT CUresult name(type *object, argument unused)                                            \
    {                                                                                              \
        *object = (type)(uintptr_t)8;                                                              \
        return CUDA_SUCCESS;                                                                       \
    }
FAKE_OBJECT(cuStreamCreate, CUstream, unsigned)
FAKE_OBJECT(cuEventCreate, CUevent, unsigned)

#define FAKE_NOTHING(name, type)                                                                   \
    EXPORT CUresult name(type unused)                                                              \
    {                                                                                              \
        return CUDA_SUCCESS;                                                                       \
    }
FAKE_NOTHING(cuCtxSetCurrent, CUcontext)
FAKE_NOTHING(cuModuleUnload, CUmodule)
FAKE_NOTHING(cuStreamDestroy, CUstream)
FAKE_NOTHING(cuEventDestroy, CUevent)
FAKE_NOTHING(cuTexObjectDestroy, CUtexObject)

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return CUDA_SUCCESS;
}
