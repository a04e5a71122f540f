/* Lengths of straight code, and the check of a request. */
#include "device/straight.h"

#include <errno.h>

/* In steps of 32 at first, then of 128: large caches need no finer ones. */
enum { FINE = 32, COARSE = 128, FINE_END = 4096, FINE_COUNT = FINE_END / FINE };
enum { LENGTH_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_MAX - FINE_END) / COARSE };
enum { SECOND_COUNT = FINE_COUNT + (DEVICE_STRAIGHT_SECOND_MAX - FINE_END) / COARSE };

size_t device_straight_length_count(uint32_t copy)
{
    return copy ? SECOND_COUNT : LENGTH_COUNT;
}

uint32_t device_straight_length(size_t i)
{
    if (i >= LENGTH_COUNT)
        return 0;
    return (uint32_t)(i < FINE_COUNT ? (i + 1) * FINE : FINE_END + (i - FINE_COUNT + 1) * COARSE);
}

static bool is_length(uint32_t copy, uint32_t length)
{
    return length && length <= (copy ? DEVICE_STRAIGHT_SECOND_MAX : DEVICE_STRAIGHT_MAX) &&
           length % (length <= FINE_END ? FINE : COARSE) == 0;
}

static int check(const struct device_limits *limits, const struct device_straight *straight,
                 struct err *err)
{
    if (!straight->job_count || straight->job_count > DEVICE_STRAIGHT_JOBS)
        return err_set(err, -EINVAL, "%u jobs of straight code", straight->job_count);
    for (uint32_t i = 0; i < straight->job_count; i++) {
        const struct device_straight_job *job = &straight->jobs[i];
        if (job->sm >= limits->sm_count || job->copy >= DEVICE_STRAIGHT_COPIES || !job->repeats ||
            !is_length(job->copy, job->length) || (i && job->sm == straight->jobs[0].sm))
            return err_set(err, -EINVAL, "job %u: SM %u, copy %u, %u instructions, %u repeats", i,
                           job->sm, job->copy, job->length, job->repeats);
    }
    return 0;
}

int device_run_straight(struct device *device, const struct device_straight *straight,
                        struct device_straight_answer *out_answer, struct err *err)
{
    *out_answer = (struct device_straight_answer){0};
    int rc = check(&device->limits, straight, err);
    if (rc)
        return rc;
    if (!device->ops->run_straight)
        return err_set(err, -ENOSYS, "this device executes no straight code");
    return device->ops->run_straight(device, straight, out_answer, err);
}
