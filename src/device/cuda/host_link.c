/* The link to the host: the turn at it, with this thread on CPUs near the GPU; and copies while the
 * other GPUs of the node copy too. Each GPU has its own worker, and the workers meet. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cuda/gpu.h"

enum {
    WORD_BITS = sizeof(unsigned long) * CHAR_BIT,
    WORDS = CPU_SETSIZE / WORD_BITS,
};

/* Moves this thread to those of its CPUs that NVML calls near. False, and nothing is changed, when
 * NVML does not say or this process may use none of them. */
static bool affinity_near(struct affinity *affinity, const struct nvml_gpu *gpu)
{
    unsigned long near[WORDS] = {0};
    cpu_set_t both;
    if (!gpu->handle || !gpu->nvml->cpu_affinity ||
        gpu->nvml->cpu_affinity(gpu->handle, WORDS, near) != NVML_OK ||
        sched_getaffinity(0, sizeof affinity->before, &affinity->before))
        return false;
    CPU_ZERO(&both);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (near[cpu / WORD_BITS] >> cpu % WORD_BITS & 1 && CPU_ISSET(cpu, &affinity->before))
            CPU_SET(cpu, &both);
    if (!CPU_COUNT(&both) || sched_setaffinity(0, sizeof both, &both))
        return false;
    affinity->changed = true;
    return true;
}

static void affinity_restore(struct affinity *affinity)
{
    if (affinity->changed)
        sched_setaffinity(0, sizeof affinity->before, &affinity->before);
    affinity->changed = false;
}

int cuda_begin_link(struct device *device, const void *request, void *answer, struct err *err)
{
    struct cuda_gpu *gpu = cuda_of(device);
    struct device_link *out_link = answer;
    (void)request, (void)err;
    out_link->alone = turn_take(&gpu->link, TURN_LINK_MS);
    out_link->near = affinity_near(&gpu->affinity, &gpu->nvml_gpu);
    return 0;
}

void cuda_end_link(struct device *device)
{
    struct cuda_gpu *gpu = cuda_of(device);
    affinity_restore(&gpu->affinity);
    turn_give(&gpu->link);
}

/* While nothing is measured yet. */
enum { LOOK_US = 5000 };

/* Copies of one timed step: its overhead is below 1 %. */
enum { STEP_COPIES = 8 };

struct share {
    struct cuda_gpu *gpu;
    const struct device_host_share *asked;
    uint64_t until_ns;
    struct meeting meeting;
};

static bool is_late(const struct share *share)
{
    return clock_monotonic_ns() >= share->until_ns;
}

static int give_up(struct err *err)
{
    return err_set(err, -EAGAIN, "the workers of the other GPUs did not come in time");
}

static void name_members(struct share *share)
{
    const struct cuda_seen *seen = &share->gpu->seen;
    size_t count = seen->count < MEETING_MAX ? seen->count : MEETING_MAX;
    meeting_init(&share->meeting, count, seen->own);
    for (size_t i = 0; i < count; i++) {
        share->meeting.names[i] =
            cuda_share_name(seen->infos[i].uuid) + MEETING_PHASES * (uint64_t)share->asked->kind;
        share->meeting.coming[i] = cuda_coming_name(seen->infos[i].uuid);
    }
}

static int copy_step(struct share *share, struct device_stream_answer *out_answer, struct err *err)
{
    const struct device_stream stream = {.kind = share->asked->kind,
                                         .footprint_bytes = share->asked->bytes,
                                         .total_bytes = STEP_COPIES * share->asked->bytes};
    return cuda_run_stream(&share->gpu->base, &stream, out_answer, err);
}

/* Copies until all members have reached the phase. */
static int copy_until(struct share *share, enum meeting_phase phase, struct err *err)
{
    struct device_stream_answer ignored;
    int rc = 0;
    while (!rc && !meeting_reached(&share->meeting, phase))
        rc = is_late(share) ? give_up(err) : copy_step(share, &ignored, err);
    return rc;
}

static int gather(struct share *share, struct err *err)
{
    int rc = meeting_enter(&share->meeting, MEETING_HERE);
    if (rc)
        return err_set(err, -EAGAIN, "another process measures this GPU");
    while (!meeting_reached(&share->meeting, MEETING_HERE)) {
        if (is_late(share))
            return give_up(err);
        usleep(LOOK_US);
    }
    return 0;
}

/* What counts was copied between two looks at which all members were active. */
static int measure(struct share *share, struct device_host_share_answer *out_answer,
                   struct err *err)
{
    struct device_host_share_answer answer = {.gpus = (uint32_t)meeting_present(&share->meeting)};
    if (answer.gpus < 2)
        return err_set(err, -EAGAIN, "no worker of another GPU came");
    uint64_t end_ns = clock_monotonic_ns() + share->asked->window_ms * UINT64_C(1000000);
    do {
        struct device_stream_answer step;
        int rc = copy_step(share, &step, err);
        if (rc)
            return rc;
        answer.bytes += step.bytes;
        answer.elapsed_ns += step.elapsed_ns;
    } while (clock_monotonic_ns() < end_ns);
    if (!meeting_reached(&share->meeting, MEETING_ACTIVE) ||
        meeting_present(&share->meeting) < answer.gpus)
        return err_set(err, -EAGAIN, "the worker of another GPU left meanwhile");
    *out_answer = answer;
    return 0;
}

static int meet_and_copy(struct share *share, struct device_host_share_answer *out_answer,
                         struct err *err)
{
    struct device_stream_answer ignored;
    int rc = gather(share, err);
    if (rc)
        return rc;
    rc = copy_step(share, &ignored, err);
    if (rc)
        return rc;
    if (meeting_enter(&share->meeting, MEETING_ACTIVE))
        return err_set(err, -EAGAIN, "another process measures this GPU");
    rc = copy_until(share, MEETING_ACTIVE, err);
    if (!rc)
        rc = measure(share, out_answer, err);
    if (rc)
        return rc;
    if (meeting_enter(&share->meeting, MEETING_DONE) == 0)
        copy_until(share, MEETING_DONE, NULL); /* for the others: what fails now is not counted */
    return 0;
}

int cuda_share_host(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_host_share *asked = request;
    struct device_host_share_answer *out_answer = answer;
    struct cuda_gpu *gpu = cuda_of(device);
    struct share share = {.gpu = gpu,
                          .asked = asked,
                          .until_ns = clock_monotonic_ns() + asked->limit_ms * UINT64_C(1000000)};
    if (gpu->seen.count < 2 || gpu->seen.own >= MEETING_MAX)
        return err_set(err, -ENOTSUP, "this process sees one GPU");
    if (!gpu->seen.coming->raised)
        return err_set(err, -EAGAIN, "the workers of the other GPUs do not wait for this one");
    name_members(&share);
    affinity_near(&gpu->affinity, &gpu->nvml_gpu);
    int rc = meet_and_copy(&share, out_answer, err);
    affinity_restore(&gpu->affinity);
    meeting_leave(&share.meeting);
    return rc;
}
