/* Links to other GPUs of the node: who measures which pair when.
 *
 * A GPU has a turn: the process that holds it is the only one of the survey that works on the GPU.
 * The worker of a GPU holds its turn from the beginning until it comes here. For each pair it then
 * takes the turns of both GPUs, so that no pair disturbs another one, nor a GPU whose worker still
 * measures. A turn that is held says that its holder lives and is not done yet. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

/* The caller sets the first three; everything else is zero. */
struct peer_pair {
    struct cuda_gpu *gpu;
    CUdevice device; /* the peer */
    struct device_peer_test test;
    struct device_peer_answer answer;
    CUcontext context; /* on the peer */
    CUdeviceptr there, here;
    CUfunction write, check, exchange, chase;
    bool mapped;
};

/* One pair of GPUs: copies between their memories, and loads and stores of this GPU's SMs in the
 * memory of the peer. */
enum { THREADS = 1024, ELEMENT_BYTES = 16, REPEATS = 3 };

/* What SMs write differs from what copies leave. */
static const uint64_t SM_OFFSET = UINT64_C(1) << 40;

enum transfer { COPY_READ, COPY_WRITE, COPY_BOTH, SM_WRITE, SM_READ, SM_BOTH, SM_CHASE };

static int find_pair_kernels(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    const struct {
        const char *name;
        CUfunction *function;
    } kernels[] = {{"memory_write_address", &pair->write},
                   {"memory_check_address", &pair->check},
                   {"memory_exchange", &pair->exchange},
                   {"memory_chase", &pair->chase}};
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(kernels) && !rc; i++)
        rc = cuda_find_kernel(gpu, CUDA_KERNELS_MEMORY, kernels[i].name, kernels[i].function, err);
    return rc;
}

/* A context and memory on the peer, and memory here: `bytes` to send, and as much to receive. */
static int prepare_pair(struct peer_pair *pair, struct err *err)
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
    rc = cuda_set_current(gpu, err);
    if (rc)
        return rc;
    rc = cuda_check(gpu, driver->cuMemAlloc(&pair->here, 2 * pair->test.bytes), "cuMemAlloc", err);
    if (rc || !can)
        return rc;
    pair->mapped = true;
    return cuda_check(gpu, driver->cuCtxEnablePeerAccess(pair->context, 0), "cuCtxEnablePeerAccess",
                      err);
}

static int copy_pair(struct peer_pair *pair, bool reads, CUstream stream, struct err *err)
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

static int start_transfer(struct peer_pair *pair, enum transfer transfer, struct err *err)
{
    const struct cuda_gpu *gpu = pair->gpu;
    switch (transfer) {
    case COPY_READ:
        return copy_pair(pair, true, gpu->streams[0], err);
    case COPY_WRITE:
        return copy_pair(pair, false, gpu->streams[0], err);
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
    int rc = copy_pair(pair, false, gpu->streams[0], err);
    return rc ? rc : copy_pair(pair, true, gpu->streams[1], err);
}

static int wait_event(const struct cuda_gpu *gpu, int stream, int event, struct err *err)
{
    return cuda_check(gpu,
                      gpu->driver->cuStreamWaitEvent(gpu->streams[stream], gpu->events[event], 0),
                      "cuStreamWaitEvent", err);
}

/* The events enclose both streams, as in stream.c. */
static int time_once(struct peer_pair *pair, enum transfer transfer, uint64_t *out_ns,
                     struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = cuda_record(gpu, gpu->events[0], gpu->streams[0], err);
    if (!rc)
        rc = wait_event(gpu, 1, 0, err);
    if (!rc)
        rc = start_transfer(pair, transfer, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[2], gpu->streams[1], err);
    if (!rc)
        rc = wait_event(gpu, 0, 2, err);
    if (!rc)
        rc = cuda_record(gpu, gpu->events[1], gpu->streams[0], err);
    if (!rc)
        rc = cuda_wait(gpu, err);
    return rc ? rc : cuda_elapsed(gpu, gpu->events[0], gpu->events[1], out_ns, err);
}

/* The shortest of some repetitions, after one that does not count. */
static int time_best(struct peer_pair *pair, enum transfer transfer, uint64_t *out_ns,
                     struct err *err)
{
    uint64_t best = 0;
    for (int i = 0; i <= REPEATS; i++) {
        uint64_t ns = 0;
        int rc = time_once(pair, transfer, &ns, err);
        if (rc)
            return rc;
        best = i <= 1 || ns < best ? ns : best;
    }
    *out_ns = best;
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
static int run_pair_chase(struct peer_pair *pair, struct err *err)
{
    struct kernel_region_result result;
    int rc = time_best(pair, SM_CHASE, &pair->answer.chase_ns, err);
    if (!rc)
        rc = read_result(pair, &result, err);
    if (!rc)
        pair->answer.cycles = result.cycles[0];
    return rc;
}

static int run_pair_sms(struct peer_pair *pair, struct err *err)
{
    struct device_peer_answer *answer = &pair->answer;
    struct kernel_region_result result;
    int rc = run_pair_chase(pair, err);
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

static void release_pair(struct peer_pair *pair)
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

/* Fills in the answer, and releases everything that it took on both GPUs. Any call of the driver
 * may hang if the link is bad. */
static int peer_pair_measure(struct peer_pair *pair, struct err *err)
{
    struct cuda_gpu *gpu = pair->gpu;
    int rc = cuda_set_current(gpu, err);
    if (!rc)
        rc = find_pair_kernels(pair, err);
    if (!rc)
        rc = prepare_pair(pair, err);
    if (!rc)
        rc = run_copies(pair, err);
    if (!rc && pair->mapped)
        rc = run_pair_sms(pair, err);
    release_pair(pair);
    return rc;
}

/* Shared with a thread, which may never come back from the driver. */
struct attempt {
    struct peer_pair pair;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over, abandoned;
    int rc;
    struct err err;
};

int cuda_list_peers(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    struct facts *out_gpus = &((struct device_peers *)answer)->gpus;
    (void)request, (void)err;
    facts_set_text(out_gpus, "own", gpu->seen.infos[gpu->seen.own].uuid);
    for (size_t i = 0; i < gpu->seen.count && i < DEVICE_PEERS_MAX; i++) {
        char key[16];
        snprintf(key, sizeof key, "%zu", i);
        facts_set_text(out_gpus, key, gpu->seen.infos[i].uuid);
    }
    return 0;
}

static void *measure_apart(void *user)
{
    struct attempt *attempt = user;
    struct err err = {0};
    int rc = peer_pair_measure(&attempt->pair, &err);
    pthread_mutex_lock(&attempt->lock);
    attempt->rc = rc;
    attempt->err = err;
    attempt->over = true;
    bool abandoned = attempt->abandoned;
    pthread_cond_signal(&attempt->ended);
    pthread_mutex_unlock(&attempt->lock);
    if (abandoned)
        free(attempt);
    return NULL;
}

/* Any call of the driver may hang if the link is bad. So the pair is measured by a thread, which is
 * left behind if it does not end in time; the GPU is not used any more then. */
static int wait_for_attempt(struct attempt *attempt, bool *out_abandoned)
{
    const uint32_t limit_ms = attempt->pair.test.limit_ms;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000;
    until.tv_nsec += limit_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&attempt->lock);
    while (!attempt->over && pthread_cond_timedwait(&attempt->ended, &attempt->lock, &until) == 0)
        ;
    attempt->abandoned = *out_abandoned = !attempt->over;
    pthread_mutex_unlock(&attempt->lock);
    return *out_abandoned ? -ETIMEDOUT : attempt->rc;
}

static struct attempt *make_attempt(struct cuda_gpu *gpu, const struct device_peer_test *test)
{
    struct attempt *attempt = mem_array(1, sizeof *attempt);
    pthread_condattr_t steady;
    attempt->pair =
        (struct peer_pair){.gpu = gpu, .device = gpu->seen.devices[test->peer], .test = *test};
    pthread_mutex_init(&attempt->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&attempt->ended, &steady);
    pthread_condattr_destroy(&steady);
    return attempt;
}

static int run_apart(struct cuda_gpu *gpu, const struct device_peer_test *test,
                     struct device_peer_answer *out_answer, struct err *err)
{
    struct attempt *attempt = make_attempt(gpu, test);
    pthread_t thread;
    bool abandoned;
    if (pthread_create(&thread, NULL, measure_apart, attempt)) {
        free(attempt);
        return err_set(err, -ECANCELED, "no thread could be started");
    }
    int rc = wait_for_attempt(attempt, &abandoned);
    if (abandoned) {
        pthread_detach(thread);
        gpu->lost = true;
        return err_set(err, rc, "no answer in %.0f s", test->limit_ms / 1e3);
    }
    pthread_join(thread, NULL);
    if (rc && err)
        *err = attempt->err;
    if (!rc)
        *out_answer = attempt->pair.answer;
    free(attempt);
    return rc;
}

/* Who looks at the GPU from now on may be a worker of another GPU: other processes are counted
 * before. */
static void open_to_others(struct cuda_gpu *gpu)
{
    if (gpu->watch.counted)
        return;
    gpu->watch.others = watch_others(&gpu->watch, &gpu->nvml_gpu);
    gpu->watch.counted = true;
    flag_lower(gpu->seen.coming);
    turn_give(gpu->seen.turn);
}

/* One try for both: 0 or the error, for which *out_busy is the turn. */
static int try_both(struct turn *first, struct turn *second, struct turn **out_busy)
{
    *out_busy = first;
    int rc = turn_try(first);
    if (rc)
        return rc;
    *out_busy = second;
    rc = turn_try(second);
    if (rc)
        turn_give(first);
    return rc;
}

/* All processes try the lower name first, and none holds one turn while it waits for the other. */
static bool take_both(struct turn *a, struct turn *b, uint32_t wait_ms)
{
    const uint64_t begin_ns = clock_monotonic_ns();
    struct turn *first = a->name < b->name ? a : b, *second = first == a ? b : a, *busy;
    for (;;) {
        int rc = try_both(first, second, &busy);
        uint64_t waited_ms = (clock_monotonic_ns() - begin_ns) / 1000000;
        if (rc != -EADDRINUSE || waited_ms >= wait_ms)
            return rc == 0;
        turn_await(busy, (int)(wait_ms - waited_ms));
    }
}

int cuda_test_peer(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_peer_test *test = request;
    struct device_peer_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    if (test->peer >= gpu->seen.count || test->peer == gpu->seen.own)
        return err_set(err, -EINVAL, "no such peer");
    if (gpu->lost)
        return err_set(err, -ECANCELED, "an earlier link did not answer");
    open_to_others(gpu);
    const char *uuid = gpu->seen.infos[test->peer].uuid;
    struct turn turn = {.name = cuda_turn_name(uuid)};
    struct flag visit = {.name = cuda_visit_name(uuid)};
    if (!take_both(gpu->seen.turn, &turn, test->wait_ms))
        return err_set(err, -EAGAIN, "one of both GPUs is still being measured by another process");
    flag_raise(&visit); /* without it, the worker of the peer waits for a shorter time */
    int rc = run_apart(gpu, test, out_answer, err);
    flag_lower(&visit);
    turn_give(&turn);
    turn_give(gpu->seen.turn);
    return rc;
}
