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
#include "device/cuda/peer_pair.h"

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
    (void)request;
    int rc = facts_set_text(out_gpus, "own", gpu->seen.infos[gpu->seen.own].uuid);
    for (size_t i = 0; i < gpu->seen.count && i < DEVICE_PEERS_MAX && !rc; i++) {
        char key[16];
        snprintf(key, sizeof key, "%zu", i);
        rc = facts_set_text(out_gpus, key, gpu->seen.infos[i].uuid);
    }
    return rc ? err_no_memory(err) : 0;
}

static void *work(void *user)
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
static int wait_for(struct attempt *attempt, bool *out_abandoned)
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
    if (!attempt)
        return NULL;
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
    if (!attempt)
        return err_no_memory(err);
    if (pthread_create(&thread, NULL, work, attempt)) {
        free(attempt);
        return err_set(err, -ECANCELED, "no thread could be started");
    }
    int rc = wait_for(attempt, &abandoned);
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
    gpu->watch.others = watch_others(&gpu->watch, &gpu->told);
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
