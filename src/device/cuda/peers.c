/* Links to other GPUs of the node: copies between their memories, and loads and stores of this
 * GPU's SMs in the memory of another one.
 *
 * A GPU has a turn: the process that holds it is the only one of the survey that works on the GPU.
 * The worker of a GPU holds its turn from the beginning until it comes here. For each pair it then
 * takes the turns of both GPUs, so that no pair disturbs another one, nor a GPU whose worker still
 * measures. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

extern const unsigned char cuda_memory_fatbin[];

enum { THREADS = 1024, ELEMENT_BYTES = 16, REPEATS = 3 };
/* Both together are below the shortest time limit of a GPU. */
enum { PATIENCE_MS = 8000, DEADLINE_S = 10 };

/* What SMs write differs from what copies leave. */
static const uint64_t SM_OFFSET = UINT64_C(1) << 40;

enum transfer { COPY_READ, COPY_WRITE, COPY_BOTH, SM_WRITE, SM_READ };

/* One pair. Shared with a thread, which may never come back from the driver. */
struct pair {
    struct cuda_gpu *gpu;
    CUdevice device; /* the peer */
    struct device_peer_test test;
    struct device_peer_answer answer;
    CUcontext context; /* on the peer */
    CUdeviceptr there, here;
    CUfunction write, check, chase;
    bool mapped;

    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over, abandoned;
    int rc;
    struct err err;
};

int cuda_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    int rc = facts_set_text(out_gpus, "own", gpu->seen.infos[gpu->seen.own].uuid);
    for (size_t i = 0; i < gpu->seen.count && i < DEVICE_PEERS_MAX && !rc; i++) {
        char key[16];
        snprintf(key, sizeof key, "%zu", i);
        rc = facts_set_text(out_gpus, key, gpu->seen.infos[i].uuid);
    }
    return rc ? err_no_memory(err) : 0;
}

static int find_kernels(struct pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    const struct driver *driver = gpu->driver;
    const struct {
        const char *name;
        CUfunction *function;
    } kernels[] = {{"memory_write_address", &pair->write},
                   {"memory_check_address", &pair->check},
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
static int prepare(struct pair *pair, struct err *err)
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

static int copy(struct pair *pair, bool reads, CUstream stream, struct err *err)
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
static int launch(struct pair *pair, CUfunction kernel, CUdeviceptr base, uint64_t offset,
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

static int start(struct pair *pair, enum transfer transfer, struct err *err)
{
    const struct cuda_gpu *gpu = pair->gpu;
    switch (transfer) {
    case COPY_READ:
        return copy(pair, true, gpu->streams[0], err);
    case COPY_WRITE:
        return copy(pair, false, gpu->streams[0], err);
    case SM_WRITE:
        return launch(pair, pair->write, pair->there, SM_OFFSET, err);
    case SM_READ:
        return launch(pair, pair->check, pair->there, SM_OFFSET, err);
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
static int time_once(struct pair *pair, enum transfer transfer, float *out_ms, struct err *err)
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
static int time_best(struct pair *pair, enum transfer transfer, uint64_t *out_ns, struct err *err)
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

static int reset_result(struct pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = staging_grow(gpu, &gpu->results, sizeof(struct kernel_region_result), err);
    if (rc)
        return rc;
    *(struct kernel_region_result *)gpu->results.host =
        (struct kernel_region_result){.wrong_offset = UINT64_MAX};
    return staging_upload(gpu, &gpu->results, sizeof(struct kernel_region_result), err);
}

static int read_result(struct pair *pair, struct kernel_region_result *out, struct err *err)
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
static int run_copies(struct pair *pair, struct err *err)
{
    struct device_peer_answer *answer = &pair->answer;
    struct kernel_region_result result;
    int rc = reset_result(pair, err);
    if (!rc)
        rc = launch(pair, pair->write, pair->here, 0, err);
    if (!rc)
        rc = time_best(pair, COPY_WRITE, &answer->copy_write_ns, err);
    if (!rc)
        rc = time_best(pair, COPY_READ, &answer->copy_read_ns, err);
    if (!rc)
        rc = launch(pair, pair->check, pair->here + pair->test.bytes, 0, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (rc)
        return rc;
    answer->wrong_words = result.wrong_words;
    return time_best(pair, COPY_BOTH, &answer->copy_both_ns, err);
}

/* Loads that depend on each other; the copies left addresses there. */
static int run_chase(struct pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    uint64_t bytes = pair->test.bytes, results = gpu->results.device;
    uint32_t loads = pair->test.loads;
    while (bytes & (bytes - 1))
        bytes &= bytes - 1; /* a power of two */
    void *parameters[] = {&pair->there, &bytes, &loads, &results};
    struct kernel_region_result result;
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++) /* the first one fills the TLBs */
        rc = cuda_launch(gpu, pair->chase, 1, 1, 0, parameters, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (!rc)
        pair->answer.cycles = result.cycles;
    return rc;
}

static int run_sms(struct pair *pair, struct err *err)
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
        rc = read_result(pair, &result, err);
    if (rc)
        return rc;
    answer->wrong_words += result.wrong_words;
    answer->mapped = true;
    return 0;
}

static void release(struct pair *pair)
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

static int run_pair(struct pair *pair, struct err *err)
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

static void *work(void *user)
{
    struct pair *pair = user;
    struct err err = {0};
    int rc = run_pair(pair, &err);
    pthread_mutex_lock(&pair->lock);
    pair->rc = rc;
    pair->err = err;
    pair->over = true;
    bool abandoned = pair->abandoned;
    pthread_cond_signal(&pair->ended);
    pthread_mutex_unlock(&pair->lock);
    if (abandoned)
        free(pair);
    return NULL;
}

/* Any call of the driver may hang if the link is bad. So the pair is measured by a thread, which is
 * left behind if it does not end in time; the GPU is not used any more then. */
static int wait_for(struct pair *pair, bool *out_abandoned)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += DEADLINE_S;
    pthread_mutex_lock(&pair->lock);
    while (!pair->over && pthread_cond_timedwait(&pair->ended, &pair->lock, &until) == 0)
        ;
    pair->abandoned = *out_abandoned = !pair->over;
    pthread_mutex_unlock(&pair->lock);
    return *out_abandoned ? -ETIMEDOUT : pair->rc;
}

static int run_apart(struct cuda_gpu *gpu, const struct device_peer_test *test,
                     struct device_peer_answer *out_answer, struct err *err)
{
    struct pair *pair = mem_array(1, sizeof *pair);
    pthread_condattr_t steady;
    pthread_t thread;
    bool abandoned;
    if (!pair)
        return err_no_memory(err);
    *pair = (struct pair){.gpu = gpu, .device = gpu->seen.devices[test->peer], .test = *test};
    pthread_mutex_init(&pair->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&pair->ended, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&thread, NULL, work, pair)) {
        free(pair);
        return err_set(err, -EAGAIN, "no thread could be started");
    }
    int rc = wait_for(pair, &abandoned);
    if (abandoned) {
        pthread_detach(thread);
        gpu->lost = true;
        return err_set(err, rc, "no answer in %d s", DEADLINE_S);
    }
    pthread_join(thread, NULL);
    if (rc && err)
        *err = pair->err;
    if (!rc)
        *out_answer = pair->answer;
    free(pair);
    return rc;
}

/* Who looks at the GPU from now on may be a worker of another GPU: other processes are counted
 * before. */
static void open_to_others(struct cuda_gpu *gpu)
{
    if (gpu->watch.counted)
        return;
    gpu->watch.others = watch_others(&gpu->watch, &gpu->told);
    gpu->watch.counted = true;
    turn_give(gpu->seen.turn);
}

/* The lower name first, so that no two processes wait for each other. */
static bool take_both(struct turn *a, struct turn *b)
{
    struct turn *first = a->name < b->name ? a : b, *second = first == a ? b : a;
    if (!turn_take(first, PATIENCE_MS))
        return false;
    if (turn_take(second, PATIENCE_MS))
        return true;
    turn_give(first);
    return false;
}

int cuda_test_peer(struct device *device, const struct device_peer_test *test,
                   struct device_peer_answer *out_answer, struct err *err)
{
    struct cuda_gpu *gpu = cuda_of(device);
    if (test->peer >= gpu->seen.count || test->peer == gpu->seen.own)
        return err_set(err, -EINVAL, "no such peer");
    if (gpu->lost)
        return err_set(err, -ECANCELED, "an earlier link did not answer");
    open_to_others(gpu);
    struct turn *turn = &gpu->peer_turns[test->peer];
    turn->name = cuda_turn_name(gpu->seen.infos[test->peer].uuid);
    if (!take_both(gpu->seen.turn, turn))
        return err_set(err, -EAGAIN, "one of both GPUs is still being measured by another process");
    int rc = run_apart(gpu, test, out_answer, err);
    turn_give(turn);
    turn_give(gpu->seen.turn);
    return rc;
}
