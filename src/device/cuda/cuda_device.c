/* Opens and closes a GPU: context, kernels, and what must be known before the first job. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/cuda/health.h"
#include "device/cuda/kernels.h"

static const uint64_t GLOBAL_MAX_BYTES = UINT64_C(4) << 30;
static const uint64_t HOST_BYTES = UINT64_C(64) << 20;
/* The same on all nodes: there is one turn per node. */
static const uint64_t LINK_TURN = UINT64_C(0x686f7374206c696e);
enum { FIND_ROUNDS = 8, WARP_THREADS = 32, BLOCK_WARPS = 32 };

static const char *const chase_names[DEVICE_PATH_COUNT] = {
    [DEVICE_GLOBAL_CA] = "chase_global_ca", [DEVICE_GLOBAL_CG] = "chase_global_cg",
    [DEVICE_READ_ONLY] = "chase_read_only", [DEVICE_TEXTURE] = "chase_texture",
    [DEVICE_CONSTANT] = "chase_constant",   [DEVICE_SHARED] = "chase_shared",
    [DEVICE_HOST] = "chase_host",
};

struct wanted_attribute {
    CUdevice_attribute attribute;
    int *value;
};

static int read_attributes(const struct cuda_gpu *gpu, const struct wanted_attribute *wanted,
                           size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = cuda_attribute(gpu, wanted[i].attribute, wanted[i].value, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* A carve-out of 0 % asks for the largest L1 that still holds the block's shared memory. */
static int prepare_chase(struct cuda_gpu *gpu, const char *name, int shared_max,
                         CUfunction *out_function, struct err *err)
{
    const struct driver *driver = gpu->driver;
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHASE, name, out_function, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu,
                    driver->cuFuncSetAttribute(*out_function,
                                               CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                               CU_SHAREDMEM_CARVEOUT_MAX_L1),
                    "cuFuncSetAttribute", err);
    if (rc)
        return rc;
    return cuda_check(gpu,
                      driver->cuFuncSetAttribute(*out_function,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 shared_max - KERNEL_STATIC_BYTES),
                      "cuFuncSetAttribute", err);
}

static int prepare_kernels(struct cuda_gpu *gpu, int shared_max, struct err *err)
{
    for (int path = 0; path < DEVICE_PATH_COUNT; path++) {
        int rc = prepare_chase(gpu, chase_names[path], shared_max, &gpu->chase[path], err);
        if (rc)
            return rc;
    }
    int rc = prepare_chase(gpu, "chase_mixed", shared_max, &gpu->chase_mixed, err);
    if (rc)
        return rc;
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHASE, "link_chain", &gpu->link_chain, err);
    if (rc)
        return rc;
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHASE, "flush_l2", &gpu->flush_l2, err);
    if (rc)
        return rc;
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHASE, "scrub_l1", &gpu->scrub_l1, err);
    if (rc)
        return rc;
    return cuda_check(
        gpu,
        gpu->driver->cuFuncSetAttribute(
            gpu->scrub_l1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_max),
        "cuFuncSetAttribute", err);
}

static int clear_constant_bank(struct cuda_gpu *gpu, struct err *err)
{
    const struct driver *driver = gpu->driver;
    size_t bank_bytes;
    int rc =
        cuda_check(gpu,
                   driver->cuModuleGetGlobal(&gpu->constant_bank, &bank_bytes,
                                             gpu->modules[CUDA_KERNELS_CHASE], "constant_bank"),
                   "constant_bank", err);
    if (rc)
        return rc;
    return cuda_check(
        gpu,
        driver->cuMemsetD32Async(gpu->constant_bank, 0, KERNEL_CONSTANT_BYTES / 4, gpu->streams[0]),
        "cuMemsetD32Async", err);
}

static int load_kernels(struct cuda_gpu *gpu, int shared_max, struct err *err)
{
    int rc = cuda_load_kernels(gpu, CUDA_KERNELS_CHASE, err);
    if (rc)
        return rc;
    rc = cuda_load_kernels(gpu, CUDA_KERNELS_STREAM, err);
    if (rc)
        return rc;
    rc = prepare_kernels(gpu, shared_max, err);
    if (rc)
        return rc;
    return clear_constant_bank(gpu, err);
}

/* Runs a kernel that takes one pointer, and copies what it wrote to results.host. */
static int run_small(struct cuda_gpu *gpu, const char *name, uint32_t blocks, size_t words,
                     struct err *err)
{
    CUfunction function;
    uint32_t count = (uint32_t)words;
    void *parameters[] = {&gpu->results.device, &count};
    int rc = cuda_find_kernel(gpu, CUDA_KERNELS_CHASE, name, &function, err);
    if (rc)
        return rc;
    rc = staging_grow(gpu, &gpu->results, words * sizeof(uint32_t), err);
    if (rc)
        return rc;
    rc = cuda_check(gpu,
                    gpu->driver->cuMemsetD32Async(gpu->results.device, 0, words, gpu->streams[0]),
                    "cuMemsetD32Async", err);
    if (rc)
        return rc;
    rc = cuda_launch(gpu, function, blocks, 1, 0, parameters, err);
    if (rc)
        return rc;
    rc = staging_download(gpu, &gpu->results, words * sizeof(uint32_t), err);
    if (rc)
        return rc;
    return cuda_wait(gpu, err);
}

/* SM ids are below %nsmid but need not be contiguous: launch blocks and see on which ids they
 * run. */
static int find_sm_ids(struct cuda_gpu *gpu, struct err *err)
{
    uint32_t wanted = gpu->base.limits.sm_count, found = 0;
    int rc = run_small(gpu, "count_sm_ids", 1, 1, err);
    if (rc)
        return rc;
    gpu->sm_id_count = *(const uint32_t *)gpu->results.host;
    gpu->sm_ids = mem_array(wanted, sizeof *gpu->sm_ids);
    for (uint32_t round = 1; round <= FIND_ROUNDS && found < wanted; round++) {
        rc = run_small(gpu, "find_sms", wanted * WARP_THREADS * round, gpu->sm_id_count, err);
        if (rc)
            return rc;
        found = 0;
        const uint32_t *seen = gpu->results.host;
        for (uint32_t id = 0; id < gpu->sm_id_count; id++)
            if (seen[id] && found < wanted)
                gpu->sm_ids[found++] = id;
    }
    if (!found)
        return err_set(err, -EIO, "no SM of the GPU runs a block");
    gpu->base.limits.sm_count = found;
    return 0;
}

/* Size of L1 and shared memory together, and the sizes that shared memory can have. Source: CUDA
 * Programming Guide 13.0, appendix Compute Capabilities, table "Shared Memory Capacity per Compute
 * Capability"; for 7.0, CUDA C++ Programming Guide 12, section "Shared Memory" of 7.x. Size 0 is
 * left out: the kernels of this program always use some. The driver grants the smallest size that
 * holds what a block asks for and what the system reserves; the granted size cannot be queried. */
struct documented {
    int capability;
    uint32_t total_kib;
    uint16_t steps_kib[12];
};

static const struct documented documented[] = {
    {70, 128, {8, 16, 32, 64, 96}},
    {75, 96, {32, 64}},
    {80, 192, {8, 16, 32, 64, 100, 132, 164}},
    {86, 128, {8, 16, 32, 64, 100}},
    {87, 192, {8, 16, 32, 64, 100, 132, 164}},
    {89, 128, {8, 16, 32, 64, 100}},
    {90, 256, {8, 16, 32, 64, 100, 132, 164, 196, 228}},
    {100, 256, {8, 16, 32, 64, 100, 132, 164, 196, 228}},
    {103, 256, {8, 16, 32, 64, 100, 132, 164, 196, 228}},
    {110, 256, {8, 16, 32, 64, 100, 132, 164, 196, 228}},
    {120, 128, {8, 16, 32, 64, 100}},
    {121, 128, {8, 16, 32, 64, 100}},
};

static void set_carveouts(struct device_limits *limits, const struct documented *row,
                          uint32_t reserved)
{
    uint32_t needed = KERNEL_SMALL_BYTES + KERNEL_STATIC_BYTES + reserved, count = 0;
    for (const uint16_t *step = row->steps_kib; *step; step++)
        if (*step * UINT32_C(1024) >= needed)
            limits->carveout_steps[count++] = *step * UINT64_C(1024);
    limits->carveout_reserve_bytes = reserved;
    limits->l1_carveout_bytes = limits->carveout_steps[0];
    limits->l1_nominal_bytes = row->total_kib * UINT64_C(1024) - limits->carveout_steps[0];
}

static uint32_t largest_step_bytes(const struct documented *row)
{
    const uint16_t *step = row->steps_kib;
    while (step[1])
        step++;
    return *step * UINT32_C(1024);
}

/* If the driver reports another largest size than the table, the table does not describe this
 * GPU. */
static int set_documented(struct cuda_gpu *gpu, struct err *err)
{
    int major = 0, minor = 0, reserved = 0, per_sm = 0;
    const struct wanted_attribute wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &per_sm},
    };
    int rc = read_attributes(gpu, wanted, COUNT_OF(wanted), err);
    if (rc == -EINVAL) /* a driver that does not know an attribute */
        return 0;
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(documented); i++)
        if (documented[i].capability == 10 * major + minor &&
            largest_step_bytes(&documented[i]) == (uint32_t)per_sm)
            set_carveouts(&gpu->base.limits, &documented[i], (uint32_t)reserved);
    return 0;
}

static int set_limits(struct cuda_gpu *gpu, int *out_shared_max, struct err *err)
{
    struct device_limits *limits = &gpu->base.limits;
    int sms = 0, constant = 0, shared = 0, shared_always = 0, l2 = 0, threads = 0;
    const struct wanted_attribute wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &sms},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &constant},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared_always},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &threads},
    };
    size_t free_bytes, total_bytes;
    int rc = read_attributes(gpu, wanted, COUNT_OF(wanted), err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, gpu->driver->cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo", err);
    if (rc)
        return rc;
    if (shared < shared_always) /* GPUs before Volta have nothing to opt in to */
        shared = shared_always;
    cuda_l2_fetch_limit(gpu, &limits->l2_fetch_limit_bytes, NULL); /* else stays unknown */
    limits->threads_per_sm = (uint32_t)threads;
    limits->sm_count = (uint32_t)sms;
    limits->warp_count = BLOCK_WARPS;
    limits->constant_bytes =
        constant < KERNEL_CONSTANT_BYTES ? (uint64_t)constant : KERNEL_CONSTANT_BYTES;
    limits->shared_bytes_max = (uint64_t)shared;
    limits->shared_array_bytes = (uint64_t)(shared - KERNEL_STATIC_BYTES - KERNEL_BUFFER_BYTES);
    limits->global_bytes = free_bytes / 2 < GLOBAL_MAX_BYTES ? free_bytes / 2 : GLOBAL_MAX_BYTES;
    limits->wide_bytes = cuda_wide_limit(free_bytes, limits->global_bytes);
    limits->host_bytes = HOST_BYTES;
    gpu->free_bytes = free_bytes;
    limits->l2_reported_bytes = gpu->l2_bytes = (uint64_t)l2;
    gpu->global =
        (struct memory_pool){.memory = MEMORY_GLOBAL, .limit_bytes = limits->global_bytes};
    gpu->host = (struct memory_pool){.memory = MEMORY_HOST, .limit_bytes = HOST_BYTES};
    *out_shared_max = shared;
    return 0;
}

static int create_context(struct cuda_gpu *gpu, struct err *err)
{
    const struct driver *driver = gpu->driver;
    int rc = cuda_check(gpu, driver->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device),
                        "cuDevicePrimaryCtxRetain", err);
    if (rc)
        return rc;
    rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    for (int i = 0; i < CUDA_STREAMS; i++) {
        rc = cuda_check(gpu, driver->cuStreamCreate(&gpu->streams[i], CU_STREAM_NON_BLOCKING),
                        "cuStreamCreate", err);
        if (rc)
            return rc;
    }
    for (int i = 0; i < CUDA_EVENTS; i++) {
        rc = cuda_check(gpu, driver->cuEventCreate(&gpu->events[i], CU_EVENT_DEFAULT),
                        "cuEventCreate", err);
        if (rc)
            return rc;
    }
    return 0;
}

static void cuda_destroy(struct device *device)
{
    struct cuda_gpu *gpu = cuda_of(device);
    const struct driver *driver = gpu->driver;
    cuda_end_link(device);
    if (gpu->context && !gpu->lost && driver->cuCtxSetCurrent(gpu->context) == CUDA_SUCCESS) {
        struct staging *const stagings[] = {&gpu->jobs,     &gpu->claims,  &gpu->turns,
                                            &gpu->results,  &gpu->outputs, &gpu->images,
                                            &gpu->constants};
        for (size_t i = 0; i < COUNT_OF(stagings); i++)
            staging_fini(gpu, stagings[i]);
        if (gpu->flush)
            driver->cuMemFree(gpu->flush);
        if (gpu->whole)
            driver->cuMemFree(gpu->whole);
        memory_pool_fini(gpu, &gpu->global);
        memory_pool_fini(gpu, &gpu->host);
        for (int i = 0; i < CUDA_EVENTS; i++)
            if (gpu->events[i])
                driver->cuEventDestroy(gpu->events[i]);
        for (int i = 0; i < CUDA_STREAMS; i++)
            if (gpu->streams[i])
                driver->cuStreamDestroy(gpu->streams[i]);
        for (size_t i = 0; i < COUNT_OF(gpu->modules); i++)
            if (gpu->modules[i])
                driver->cuModuleUnload(gpu->modules[i]);
        if (gpu->straight_module)
            driver->cuModuleUnload(gpu->straight_module);
        if (gpu->walk_module)
            driver->cuModuleUnload(gpu->walk_module);
    }
    if (gpu->context && !gpu->lost)
        driver->cuDevicePrimaryCtxRelease(gpu->device);
    watch_end(&gpu->watch, &gpu->nvml_gpu);
    flag_lower(gpu->seen.coming);
    turn_give(gpu->seen.turn);
    free(gpu->global.regions);
    free(gpu->host.regions);
    free(gpu->sm_ids);
    free(gpu);
}

#define CUDA_FUNCTION(name, function) [DEVICE_CALL_##name] = cuda_##function,
static const struct device_ops cuda_ops = {
    .backend = "cuda",
    .calls = {DEVICE_CALLS(CUDA_FUNCTION)},
    .end_link = cuda_end_link,
    .destroy = cuda_destroy,
};

/* Says why the driver refuses a context: its own message names several reasons at once. */
static int explain_refusal(const struct cuda_gpu *gpu, int rc, struct err *err)
{
    enum { PROHIBITED = 2, EXCLUSIVE_PROCESS = 3 };
    static const struct nvml_question mode_row = {NVML_SHAPE_NUMBER, "nvmlDeviceGetComputeMode"};
    struct nvml_value mode = {.result = NVML_NOT_SUPPORTED};
    if (rc == -EBUSY && gpu->nvml_gpu.handle)
        mode = nvml_read(&gpu->nvml_gpu, &mode_row);
    if (mode.result != NVML_OK)
        return rc;
    if (mode.number == PROHIBITED)
        return err_set(err, -EACCES, "the GPU's compute mode is prohibited: no process may use it");
    if (mode.number == EXCLUSIVE_PROCESS)
        return err_set(
            err, -EBUSY,
            "another process holds the GPU exclusively (compute mode exclusive_process)");
    return rc;
}

static int open_context(struct cuda_gpu *gpu, struct err *err)
{
    const struct processes before = processes_count(&gpu->nvml_gpu);
    watch_begin(&gpu->watch, &gpu->nvml_gpu);
    int rc = create_context(gpu, err);
    if (rc)
        return explain_refusal(gpu, rc, err);
    if (before.result == NVML_OK)
        watch_opened(&gpu->watch, &gpu->nvml_gpu, before.count);
    return 0;
}

static int set_up(struct cuda_gpu *gpu, struct err *err)
{
    int shared_max, major = 0, minor = 0;
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    rc = flavour_choose(10 * major + minor, gpu->driver->version, &gpu->flavour, err);
    if (rc)
        return rc;
    rc = open_context(gpu, err);
    if (rc)
        return rc;
    rc = set_limits(gpu, &shared_max, err);
    if (rc)
        return rc;
    rc = set_documented(gpu, err);
    if (rc)
        return rc;
    rc = load_kernels(gpu, shared_max, err);
    if (rc)
        return rc;
    return find_sm_ids(gpu, err);
}

int cuda_open(const struct driver *driver, const struct nvml_gpu *nvml_gpu,
              const struct cuda_seen *seen, struct device **out_device, struct err *err)
{
    struct cuda_gpu *gpu = mem_array(1, sizeof *gpu);
    gpu->base.ops = &cuda_ops;
    gpu->driver = driver;
    gpu->nvml_gpu = *nvml_gpu;
    gpu->seen = *seen;
    gpu->device = seen->devices[seen->own];
    gpu->link.name = LINK_TURN;
    int rc = set_up(gpu, err);
    /* An SM that takes no block is broken; no other process can hold it. */
    if (rc == -EBUSY && gpu->sm_ids) {
        rc = -EIO;
        if (err)
            err->code = rc;
    }
    if (rc) {
        cuda_destroy(&gpu->base);
        return rc;
    }
    *out_device = &gpu->base;
    return 0;
}

int cuda_read_clocks(struct device *device, const void *request, void *answer, struct err *err)
{
    static const struct nvml_question rows[] = {
        {NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_SM}},
        {NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_MEMORY}},
    };
    struct cuda_gpu *gpu = cuda_of(device);
    const struct nvml *nvml = gpu->nvml_gpu.nvml;
    (void)request;
    if (!gpu->nvml_gpu.handle)
        return err_set(err, -ENOTSUP, "no NVML: %s",
                       nvml->library ? "it does not know this GPU" : nvml->missing);
    const struct nvml_value sm = nvml_read(&gpu->nvml_gpu, &rows[0]);
    const struct nvml_value memory = nvml_read(&gpu->nvml_gpu, &rows[1]);
    unsigned long long reasons = 0;
    bool known =
        nvml->throttle_reasons && nvml->throttle_reasons(gpu->nvml_gpu.handle, &reasons) == NVML_OK;
    *(struct device_clocks *)answer =
        (struct device_clocks){.sm_mhz = sm.result == NVML_OK ? (double)sm.number : -1,
                               .memory_mhz = memory.result == NVML_OK ? (double)memory.number : -1,
                               .throttle_reasons = reasons,
                               .throttle_known = known};
    return 0;
}
