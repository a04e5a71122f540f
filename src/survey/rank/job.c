/* One worker of a rank, whether it lists or measures. */
#include "survey/rank/job.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* How long a worker may live after its complete answer. It only waits for the driver's shutdown,
 * and in sanitized builds for the search for leaks. The survey must end within ten seconds after
 * its time limit. */
#ifdef GPUMEMTOPO_SANITIZED
static const double linger_s = 100;
#else
static const double linger_s = 3;
#endif

/* Borrows all strings. */
static struct worker_request request_of(const struct comm *comm,
                                        const struct survey_options *options, enum worker_task task,
                                        const struct job_target *target)
{
    const char *probes = target && target->probes ? target->probes : options->probes;
    return (struct worker_request){
        .task = task,
        .parent = getpid(),
        .fleet = (char *)options->simulate,
        .replay = (char *)options->replay,
        .record = options->record && task == WORKER_MEASURE,
        .seed = options->seed,
        .rank = (uint32_t)comm->place.task,
        .ranks = (uint32_t)comm->place.tasks,
        .uuid = target ? (char *)target->uuid : NULL,
        .profile = options->profile,
        .probes = (char *)probes,
        .measure_busy = options->busy == SURVEY_BUSY_MEASURE,
        .session = target ? target->session : 0,
        .attempt = target ? target->attempt : 0,
        .load_s = options->load_s,
        .load_one = options->load_one,
        .limit_s = target ? target->limit_s : 0,
        .stagger_s = target ? target->stagger_s : 0,
        .region_bytes = target ? target->region_bytes : 0,
    };
}

int job_start(struct job *job, const struct comm *comm, const struct survey_options *options,
              enum worker_task task, const struct job_target *target, double now_s)
{
    const struct worker_request request = request_of(comm, options, task, target);
    job->task = task;
    int rc = child_start(&job->child, &request, now_s, &job->outcome.err);
    job->outcome.failed = rc != 0;
    if (options->record) /* a worker gets its record file only at its start */
        child_dismiss(&job->child);
    return rc;
}

bool job_take_over(struct job *job, struct job *listing, const struct comm *comm,
                   const struct survey_options *options, const struct job_target *target,
                   double now_s)
{
    const struct worker_request request = request_of(comm, options, WORKER_MEASURE, target);
    if (!listing->outcome.done || child_ask(&listing->child, &request, now_s)) {
        child_dismiss(&listing->child);
        return false;
    }
    job->task = WORKER_MEASURE;
    job->child = listing->child;
    listing->child = (struct child){0};
    return true;
}

static int take(void *user, const struct frame *frame, struct err *err)
{
    struct job *job = user;
    return job->task == WORKER_LIST ? outcome_take_listing(&job->outcome, frame, err)
                                    : outcome_take_measuring(&job->outcome, frame, err);
}

bool job_is_over(const struct job *job)
{
    return job->child.state != CHILD_RUNNING;
}

bool job_hear(struct job *job, double limit_s, double now_s)
{
    const struct outcome *outcome = &job->outcome;
    child_pump(&job->child, now_s, take, job, &job->garbage);
    if (outcome->done && job->child.pid && job->child.request_fd >= 0)
        return job_is_over(job); /* it waits for a second request, without a time limit */
    if ((outcome->done || outcome->failed) && !job->done_s)
        job->done_s = now_s;
    if (job->done_s && now_s - job->done_s >= linger_s)
        child_stop(&job->child, CHILD_LINGERED, now_s);
    else if (!job->done_s && now_s - job->child.started_s >= limit_s)
        child_stop(&job->child, CHILD_TIME_LIMIT, now_s);
    return job_is_over(job);
}

struct ending job_ending(const struct job *job, double limit_s)
{
    return (struct ending){
        .end = job->child.end,
        .reaped = job->child.state == CHILD_REAPED,
        .wait_status = job->child.wait_status,
        .limit_s = limit_s,
        .half_record = frame_reader_pending(&job->child.frames) > 0,
        .garbage = job->garbage.text,
        .tail = job->child.tail,
    };
}

/* A complete answer is valid; but if the worker then failed or wrote to stderr, that may help to
 * find a problem. */
void job_remark(const struct job *job, const char *what)
{
    const struct child *child = &job->child;
    if (child->tail_length || (child->state == CHILD_REAPED && child->wait_status))
        log_debug("worker for %s: wait status %d, stderr: %s", what, child->wait_status,
                  child->tail);
}

void job_fini(struct job *job)
{
    child_fini(&job->child);
    outcome_fini(&job->outcome);
    memset(job, 0, sizeof *job);
}
