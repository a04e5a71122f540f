/* Clusters and bulk copies: launches as many blocks as run at once, one per SM. */
#include "device/cuda/gpu.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/kernels.h"

_Static_assert((int)DEVICE_CLUSTER_MAX == (int)KERNEL_CLUSTER_MAX &&
                   (int)DEVICE_CLUSTER_LOADS_STEP == (int)KERNEL_CLUSTER_LOADS_STEP &&
                   (int)DEVICE_CLUSTER_THREADS == (int)KERNEL_CLUSTER_READ_THREADS &&
                   (int)DEVICE_CLUSTER_ROUND_BYTES == 16 * KERNEL_CLUSTER_READ_UNROLL &&
                   (int)DEVICE_CLUSTER_ROOM_BYTES == (int)KERNEL_CLUSTER_PART_BYTES &&
                   (int)DEVICE_BULK_ROOM_BYTES == 2 * KERNEL_CLUSTER_PART_BYTES &&
                   (int)DEVICE_BULK_FLIGHTS_MAX == (int)KERNEL_CLUSTER_FLIGHTS_MAX,
               "the kernels do what is asked for");

enum {
    WARP_LANES = 32,
    GATE_BYTES = 128,
    SPACE_BYTES = 4096 + 128, /* between copies of one SM: they come from different slices of L2 */
    L2_PARTS = 4,             /* copies from L2 come from this part of it */
    BEYOND_L2S = 8,           /* copies from memory come from so many times the size of L2 */
};

struct launched {
    struct cuda_gpu *gpu;
    CUfunction kernel;
    uint32_t size, blocks, threads, shared_bytes;
    struct kernel_cluster run;
};

/* A block takes most of its SM's shared memory, so that an SM holds only one. */
static uint32_t shared_of_block(const struct cuda_gpu *gpu)
{
    return (uint32_t)gpu->base.limits.shared_bytes_max - KERNEL_STATIC_BYTES;
}

static int find_cluster_kernel(struct launched *l, const char *name, struct err *err)
{
    struct cuda_gpu *gpu = l->gpu;
    const struct driver *driver = gpu->driver;
    int has_clusters = 0;
    if (!driver->cuLaunchKernelEx || !driver->cuOccupancyMaxActiveClusters)
        return err_set(err, -ENOTSUP, "the driver has no clusters");
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &has_clusters, err);
    if (rc)
        return rc;
    l->shared_bytes = shared_of_block(gpu);
    if (!has_clusters || l->shared_bytes < KERNEL_CLUSTER_SHARED_BYTES)
        return err_set(err, -ENOTSUP, "this GPU has no clusters");
    rc = cuda_find_kernel(gpu, CUDA_KERNELS_CLUSTER, name, &l->kernel, err);
    if (!rc)
        rc = cuda_check(gpu,
                        driver->cuFuncSetAttribute(l->kernel,
                                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   (int)l->shared_bytes),
                        "cuFuncSetAttribute", err);
    return rc ? rc
              : cuda_check(gpu,
                           driver->cuFuncSetAttribute(
                               l->kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                           "cuFuncSetAttribute", err);
}

static CUlaunchConfig config_of(const struct launched *l, CUlaunchAttribute *attribute)
{
    memset(attribute, 0, sizeof *attribute);
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = l->size;
    attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
    return (CUlaunchConfig){.gridDimX = l->blocks,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = l->threads,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .sharedMemBytes = l->shared_bytes,
                            .hStream = l->gpu->streams[0],
                            .attrs = attribute,
                            .numAttrs = 1};
}

/* As many clusters as the GPU holds at once. */
static int fill_gpu(struct launched *l, struct err *err)
{
    CUlaunchAttribute attribute;
    int clusters = 0;
    l->blocks = l->size;
    const CUlaunchConfig config = config_of(l, &attribute);
    CUresult result = l->gpu->driver->cuOccupancyMaxActiveClusters(&clusters, l->kernel, &config);
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE || (result == CUDA_SUCCESS && clusters < 1))
        return err_set(err, -ENOTSUP, "this GPU has no clusters of %u blocks", l->size);
    l->blocks = l->size * (uint32_t)clusters;
    return cuda_check(l->gpu, result, "cuOccupancyMaxActiveClusters", err);
}

/* Launches and waits; the results of the blocks come back. */
static int launch_clusters(struct launched *l, const struct kernel_cluster_result **out_results,
                           struct err *err)
{
    struct cuda_gpu *gpu = l->gpu;
    size_t bytes = GATE_BYTES + l->blocks * sizeof(struct kernel_cluster_result);
    void *parameters[] = {&l->run};
    CUlaunchAttribute attribute;
    const CUlaunchConfig config = config_of(l, &attribute);
    int rc = staging_grow(gpu, &gpu->results, bytes, err);
    if (rc)
        return rc;
    memset(gpu->results.host, 0, bytes);
    l->run.gate = gpu->results.device;
    l->run.results = gpu->results.device + GATE_BYTES;
    l->run.expected = l->blocks;
    rc = staging_upload(gpu, &gpu->results, bytes, err);
    if (!rc)
        rc = cuda_check(gpu, gpu->driver->cuLaunchKernelEx(&config, l->kernel, parameters, NULL),
                        "cuLaunchKernelEx", err);
    if (!rc)
        rc = staging_download(gpu, &gpu->results, bytes, err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    *out_results = (const void *)((const char *)gpu->results.host + GATE_BYTES);
    for (uint32_t i = 0; i < l->blocks && !rc; i++)
        if (!(*out_results)[i].at_once)
            rc = err_set(err, -EBUSY, "the blocks of a launch did not run at once");
    return rc;
}

/* The index of an SM by the hardware's id. */
static int find_sm(const struct cuda_gpu *gpu, uint32_t sm_id, uint16_t *out_sm, struct err *err)
{
    for (uint32_t i = 0; i < gpu->base.limits.sm_count; i++)
        if (gpu->sm_ids[i] == sm_id) {
            *out_sm = (uint16_t)i;
            return 0;
        }
    return err_set(err, -ENODATA, "a block ran on SM id %u, which no other launch has shown",
                   sm_id);
}

static int take_answer(const struct launched *l, const struct device_cluster *asked,
                       const struct kernel_cluster_result *results,
                       struct device_cluster_answer *answer, struct err *err)
{
    size_t each = device_cluster_cycles(asked) / asked->size;
    answer->clusters = l->blocks / asked->size;
    answer->sms = mem_array(l->blocks, sizeof *answer->sms);
    answer->cycles = mem_array(l->blocks * each + 1, sizeof *answer->cycles);
    for (uint32_t i = 0; i < l->blocks; i++) {
        int rc = find_sm(l->gpu, results[i].sm_id, &answer->sms[i], err);
        if (rc)
            return rc;
        for (uint32_t k = 0; k < i; k++)
            if (answer->sms[k] == answer->sms[i])
                return err_set(err, -EBUSY, "two blocks of the clusters ran on one SM");
        for (size_t k = 0; k < each; k++)
            answer->cycles[answer->cycle_count++] = results[i].cycles[k];
    }
    return 0;
}

int cuda_run_cluster(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_cluster *asked = request;
    struct device_cluster_answer *out_answer = answer;
    static const char *const kernels[] = {"cluster_loads", "cluster_loads", "cluster_read",
                                          "cluster_copy"};
    const uint32_t threads[] = {WARP_LANES, WARP_LANES, KERNEL_CLUSTER_READ_THREADS,
                                WARP_LANES * (asked->in_flight ? asked->in_flight : 1)};
    struct launched l = {
        .gpu = cuda_of(device),
        .size = asked->size,
        .threads = threads[asked->work],
        .run = {.count = asked->count, .bytes = asked->bytes, .in_flight = asked->in_flight}};
    const struct kernel_cluster_result *results = NULL;
    int rc = find_cluster_kernel(&l, kernels[asked->work], err);
    if (!rc)
        rc = fill_gpu(&l, err);
    /* The first launch brings the code into the caches of instructions; loads do that themselves.
     */
    if (!rc && asked->work > DEVICE_CLUSTER_LOADS)
        rc = launch_clusters(&l, &results, err);
    if (!rc)
        rc = launch_clusters(&l, &results, err);
    return rc ? rc : take_answer(&l, asked, results, out_answer, err);
}

/* Memory for the copies; L2 holds all of it or none. */
static int prepare_memory(struct launched *l, const struct device_bulk *asked, struct err *err)
{
    struct cuda_gpu *gpu = l->gpu;
    bool warm = asked->source == DEVICE_BULK_L2;
    uint64_t bytes = warm ? gpu->l2_bytes / L2_PARTS : BEYOND_L2S * gpu->l2_bytes;
    int rc = memory_pool_reserve(gpu, &gpu->global, bytes, err);
    if (rc)
        return rc;
    memory_pool_forget(&gpu->global);
    l->run.base = gpu->global.base;
    l->run.footprint_bytes = bytes;
    l->run.warm = warm;
    return warm ? 0 : cuda_launch_flush_l2(gpu, err);
}

static void sum_up(const struct launched *l, const struct kernel_cluster_result *results,
                   struct device_bulk_answer *answer)
{
    uint64_t sum = 0, begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < l->blocks; i++) {
        sum += results[i].cycles[0];
        begin = results[i].begin_ns < begin ? results[i].begin_ns : begin;
        end = results[i].end_ns > end ? results[i].end_ns : end;
    }
    *answer = (struct device_bulk_answer){
        .cycles = (sum + l->blocks / 2) / l->blocks, .elapsed_ns = end - begin, .sms = l->blocks};
}

int cuda_copy_bulk(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_bulk *asked = request;
    struct device_bulk_answer *out_answer = answer;
    struct launched l = {.gpu = cuda_of(device),
                         .size = 1,
                         .threads = WARP_LANES * asked->in_flight,
                         .run = {.count = asked->copies,
                                 .bytes = asked->bytes,
                                 .in_flight = asked->in_flight,
                                 .stride_bytes = asked->bytes + (asked->alone ? SPACE_BYTES : 0)}};
    const struct kernel_cluster_result *results = NULL;
    l.blocks = asked->alone ? 1 : l.gpu->base.limits.sm_count;
    int rc = find_cluster_kernel(&l, "bulk_copy", err);
    if (!rc)
        rc = prepare_memory(&l, asked, err);
    if (!rc)
        rc = launch_clusters(&l, &results, err);
    if (rc)
        return rc;
    sum_up(&l, results, out_answer);
    return 0;
}
