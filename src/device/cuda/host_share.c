/* Copies between host and GPU while the other GPUs of the node copy too. Each GPU has its own
 * worker, and the workers meet. */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cuda/gpu.h"
#include "device/meeting.h"

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

static int copy(struct share *share, struct device_stream_answer *out_answer, struct err *err)
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
        rc = is_late(share) ? give_up(err) : copy(share, &ignored, err);
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
        int rc = copy(share, &step, err);
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

static int meet(struct share *share, struct device_host_share_answer *out_answer, struct err *err)
{
    struct device_stream_answer ignored;
    int rc = gather(share, err);
    if (rc)
        return rc;
    rc = copy(share, &ignored, err);
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
    affinity_near(&gpu->affinity, &gpu->told);
    int rc = meet(&share, out_answer, err);
    affinity_restore(&gpu->affinity);
    meeting_leave(&share.meeting);
    return rc;
}
