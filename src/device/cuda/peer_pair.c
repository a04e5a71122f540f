/* Measures one pair of GPUs: copies between their memories, and loads and stores of this GPU's SMs
 * in the memory of the peer. */
#include "device/cuda/peer_pair.h"

#include "base/mem.h"
#include "device/cuda/kernels.h"

extern const unsigned char cuda_memory_fatbin[];

enum { THREADS = 1024, ELEMENT_BYTES = 16, REPEATS = 3 };

/* What SMs write differs from what copies leave. */
static const uint64_t SM_OFFSET = UINT64_C(1) << 40;

enum transfer { COPY_READ, COPY_WRITE, COPY_BOTH, SM_WRITE, SM_READ, SM_BOTH, SM_CHASE };

static int find_kernels(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    const struct driver *driver = gpu->driver;
    const struct {
        const char *name;
        CUfunction *function;
    } kernels[] = {{"memory_write_address", &pair->write},
                   {"memory_check_address", &pair->check},
                   {"memory_exchange", &pair->exchange},
                   {"memory_chase", &pair->chase}};
    int rc = 0;
    if (!gpu->memory_module)
        rc = cuda_check(gpu, driver->cuModuleLoadData(&gpu->memory_module, cuda_memory_fatbin),
                        "loading the memory kernels", err);
    for (size_t i = 0; i < COUNT_OF(kernels) && !rc; i++)
        rc = cuda_check(
            gpu,
            driver->cuModuleGetFunction(kernels[i].function, gpu->memory_module, kernels[i].name),
            kernels[i].name, err);
    return rc;
}

/* A context and memory on the peer, and memory here: `bytes` to send, and as much to receive. */
static int prepare(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    const struct driver *driver = gpu->driver;
    int can = 0;
    int rc = cuda_check(gpu, driver->cuDeviceCanAccessPeer(&can, gpu->device, pair->device),
                        "cuDeviceCanAccessPeer", err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuDevicePrimaryCtxRetain(&pair->context, pair->device),
                    "a context on the peer", err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuCtxSetCurrent(pair->context), "cuCtxSetCurrent", err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuMemAlloc(&pair->there, pair->test.bytes), "memory on the peer",
                    err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuMemAlloc(&pair->here, 2 * pair->test.bytes), "cuMemAlloc", err);
    if (rc || !can)
        return rc;
    pair->mapped = true;
    return cuda_check(gpu, driver->cuCtxEnablePeerAccess(pair->context, 0), "cuCtxEnablePeerAccess",
                      err);
}

static int copy(struct peer_pair *pair, bool reads, CUstream stream, struct err *err)
{
    const struct cuda_gpu *gpu = pair->gpu;
    uint64_t bytes = pair->test.bytes;
    CUresult result =
        reads ? gpu->driver->cuMemcpyPeerAsync(pair->here + bytes, gpu->context, pair->there,
                                               pair->context, bytes, stream)
              : gpu->driver->cuMemcpyPeerAsync(pair->there, pair->context, pair->here, gpu->context,
                                               bytes, stream);
    return cuda_check(gpu, result, "cuMemcpyPeerAsync", err);
}

/* Runs a kernel over `bytes` of memory, wherever it is. */
static int launch_over(struct peer_pair *pair, CUfunction kernel, CUdeviceptr base, uint64_t offset,
                       struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    const struct device_limits *limits = &gpu->base.limits;
    struct kernel_region region = {.base = base,
                                   .offset = offset,
                                   .count = pair->test.bytes / ELEMENT_BYTES,
                                   .result = gpu->results.device};
    void *parameters[] = {&region};
    return cuda_launch(gpu, kernel, limits->sm_count * (limits->threads_per_sm / THREADS), THREADS,
                       0, parameters, err);
}

/* Loads that depend on each other, by one thread. */
static int launch_chase(struct peer_pair *pair, struct err *err)
{
    uint64_t bytes = pair->test.bytes, results = pair->gpu->results.device;
    uint32_t loads = pair->test.loads;
    while (bytes & (bytes - 1))
        bytes &= bytes - 1; /* a power of two */
    uint32_t round = 0, first = 0;
    void *parameters[] = {&pair->there, &bytes, &loads, &round, &first, &results};
    return cuda_launch(pair->gpu, pair->chase, 1, 1, 0, parameters, err);
}

static int start(struct peer_pair *pair, enum transfer transfer, struct err *err)
{
    const struct cuda_gpu *gpu = pair->gpu;
    switch (transfer) {
    case COPY_READ:
        return copy(pair, true, gpu->streams[0], err);
    case COPY_WRITE:
        return copy(pair, false, gpu->streams[0], err);
    case SM_WRITE:
        return launch_over(pair, pair->write, pair->there, SM_OFFSET, err);
    case SM_READ:
        return launch_over(pair, pair->check, pair->there, SM_OFFSET, err);
    case SM_BOTH:
        return launch_over(pair, pair->exchange, pair->there, SM_OFFSET, err);
    case SM_CHASE:
        return launch_chase(pair, err);
    default:
        break;
    }
    int rc = copy(pair, false, gpu->streams[0], err);
    return rc ? rc : copy(pair, true, gpu->streams[1], err);
}

static int record(const struct cuda_gpu *gpu, int event, int stream, struct err *err)
{
    return cuda_check(gpu, gpu->driver->cuEventRecord(gpu->events[event], gpu->streams[stream]),
                      "cuEventRecord", err);
}

static int wait_event(const struct cuda_gpu *gpu, int stream, int event, struct err *err)
{
    return cuda_check(gpu,
                      gpu->driver->cuStreamWaitEvent(gpu->streams[stream], gpu->events[event], 0),
                      "cuStreamWaitEvent", err);
}

/* The events enclose both streams, as in stream.c. */
static int time_once(struct peer_pair *pair, enum transfer transfer, float *out_ms, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = record(gpu, 0, 0, err);
    if (!rc)
        rc = wait_event(gpu, 1, 0, err);
    if (!rc)
        rc = start(pair, transfer, err);
    if (!rc)
        rc = record(gpu, 2, 1, err);
    if (!rc)
        rc = wait_event(gpu, 0, 2, err);
    if (!rc)
        rc = record(gpu, 1, 0, err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    if (rc)
        return rc;
    return cuda_check(gpu, gpu->driver->cuEventElapsedTime(out_ms, gpu->events[0], gpu->events[1]),
                      "cuEventElapsedTime", err);
}

/* The shortest of some repetitions, after one that does not count. */
static int time_best(struct peer_pair *pair, enum transfer transfer, uint64_t *out_ns,
                     struct err *err)
{
    float best = 0;
    for (int i = 0; i <= REPEATS; i++) {
        float ms = 0;
        int rc = time_once(pair, transfer, &ms, err);
        if (rc)
            return rc;
        best = i <= 1 || ms < best ? ms : best;
    }
    *out_ns = (uint64_t)((double)best * 1e6 + 0.5);
    return 0;
}

static int reset_result(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = staging_grow(gpu, &gpu->results, sizeof(struct kernel_region_result), err);
    if (rc)
        return rc;
    *(struct kernel_region_result *)gpu->results.host =
        (struct kernel_region_result){.wrong_offset = UINT64_MAX};
    return staging_upload(gpu, &gpu->results, sizeof(struct kernel_region_result), err);
}

static int read_result(struct peer_pair *pair, struct kernel_region_result *out, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = staging_download(gpu, &gpu->results, sizeof *out, err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    if (!rc)
        *out = *(const struct kernel_region_result *)gpu->results.host;
    return rc;
}

/* What is sent from here comes back by the way of the peer, and is compared. */
static int run_copies(struct peer_pair *pair, struct err *err)
{
    struct device_peer_answer *answer = &pair->answer;
    struct kernel_region_result result;
    int rc = reset_result(pair, err);
    if (!rc)
        rc = launch_over(pair, pair->write, pair->here, 0, err);
    if (!rc)
        rc = time_best(pair, COPY_WRITE, &answer->copy_write_ns, err);
    if (!rc)
        rc = time_best(pair, COPY_READ, &answer->copy_read_ns, err);
    if (!rc)
        rc = launch_over(pair, pair->check, pair->here + pair->test.bytes, 0, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (rc)
        return rc;
    answer->wrong_words = result.wrong_words;
    return time_best(pair, COPY_BOTH, &answer->copy_both_ns, err);
}

/* The copies left addresses there. The best time is that of a pass with warm TLBs; the cycles are
 * those of the last one. */
static int run_chase(struct peer_pair *pair, struct err *err)
{
    struct kernel_region_result result;
    int rc = time_best(pair, SM_CHASE, &pair->answer.chase_ns, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (!rc)
        pair->answer.cycles = result.cycles[0];
    return rc;
}

static int run_sms(struct peer_pair *pair, struct err *err)
{
    struct device_peer_answer *answer = &pair->answer;
    struct kernel_region_result result;
    int rc = run_chase(pair, err);
    if (!rc)
        rc = reset_result(pair, err);
    if (!rc)
        rc = time_best(pair, SM_WRITE, &answer->write_ns, err);
    if (!rc)
        rc = time_best(pair, SM_READ, &answer->read_ns, err);
    if (!rc)
        rc = time_best(pair, SM_BOTH, &answer->both_ns, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (rc)
        return rc;
    answer->wrong_words += result.wrong_words;
    answer->mapped = true;
    return 0;
}

static void release(struct peer_pair *pair)
{
    const struct driver *driver = pair->gpu->driver;
    if (pair->here)
        driver->cuMemFree(pair->here);
    if (pair->mapped)
        driver->cuCtxDisablePeerAccess(pair->context);
    if (pair->there && driver->cuCtxSetCurrent(pair->context) == CUDA_SUCCESS)
        driver->cuMemFree(pair->there);
    driver->cuCtxSetCurrent(pair->gpu->context);
    if (pair->context)
        driver->cuDevicePrimaryCtxRelease(pair->device);
}

int peer_pair_measure(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = cuda_check(gpu, gpu->driver->cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent", err);
    if (!rc)
        rc = find_kernels(pair, err);
    if (!rc)
        rc = prepare(pair, err);
    if (!rc)
        rc = run_copies(pair, err);
    if (!rc && pair->mapped)
        rc = run_sms(pair, err);
    release(pair);
    return rc;
}
