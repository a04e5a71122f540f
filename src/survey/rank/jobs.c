/* The jobs of a rank: one worker each, and its time limit. */
#include "survey/rank/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/record/record.h"

/* How long a worker may live after its complete answer. It only waits for the driver's shutdown,
 * and in sanitized builds for the search for leaks. The survey must end within ten seconds after
 * its time limit. */
#ifdef GPUMEMTOPO_SANITIZED
static const double linger_s = 100;
#else
static const double linger_s = 3;
#endif

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_SENT };

struct gpu_job {
    uint32_t position; /* in the announced list */
    uint32_t session;  /* of device_source */
    char *probes;      /* NULL: those of the options */
    enum job_state state;
    bool taken_over; /* its worker is the one that listed the GPUs */
    double limit_s;  /* for each of its workers */
    struct job job;
    enum gpu_status first_status; /* how the first worker ended, if this is the second; GPU_OK: it
                                     is the first */
    char *first_reason;
};

/* Borrows all strings. */
static struct worker_request
job_request(const struct comm *comm, const struct survey_options *options, enum worker_task task)
{
    return (struct worker_request){
        .task = task,
        .parent = (uint64_t)getpid(),
        .fleet = (char *)options->simulate,
        .replay = (char *)options->replay,
        .record = options->record && task == WORKER_MEASURE,
        .seed = options->seed,
        .rank = (uint32_t)comm->place.task,
        .ranks = (uint32_t)comm->place.tasks,
        .profile = options->profile,
        .probes = (char *)options->probes,
        .measure_busy = options->busy == SURVEY_BUSY_MEASURE,
        .load_s = options->load_s,
        .load_one = options->load_one,
    };
}

static int job_start(struct job *job, const struct worker_request *request,
                     const struct survey_options *options, double now_s)
{
    job->task = request->task;
    int rc = child_start(&job->child, request, now_s, &job->outcome.err);
    job->outcome.failed = rc != 0;
    if (options->record) /* a worker gets its record file only at its start */
        child_dismiss(&job->child);
    return rc;
}

int job_start_listing(struct job *job, const struct comm *comm,
                      const struct survey_options *options, double now_s)
{
    const struct worker_request request = job_request(comm, options, WORKER_LIST);
    return job_start(job, &request, options, now_s);
}

/* Lets the worker that has listed the GPUs measure one: its driver is initialised already. False if
 * that worker does not wait for a request; it is dismissed then. */
static bool job_take_over(struct job *job, struct job *listing,
                          const struct worker_request *request, double now_s)
{
    if (!listing->outcome.done || child_ask(&listing->child, request, now_s)) {
        child_dismiss(&listing->child);
        return false;
    }
    job->task = WORKER_MEASURE;
    job->child = listing->child;
    listing->child = (struct child){0};
    return true;
}

bool job_is_over(const struct job *job)
{
    return job->child.state != CHILD_RUNNING;
}

static int job_take_frame(void *user, const struct frame *frame, struct err *err)
{
    struct job *job = user;
    return job->task == WORKER_LIST ? outcome_take_listing(&job->outcome, frame, err)
                                    : outcome_take_measuring(&job->outcome, frame, err);
}

bool job_read(struct job *job, double limit_s, double now_s)
{
    const struct outcome *outcome = &job->outcome;
    child_read(&job->child, now_s, job_take_frame, job, &job->garbage);
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
void job_log_end(const struct job *job, const char *what)
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

int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err)
{
    for (size_t i = 0; i < assignment->count; i++)
        if (assignment->positions[i] >= jobs->announce->gpu_count)
            return err_set(err, -EBADMSG, "assigned a GPU that was not announced");
    if (jobs->assigned)
        return err_set(err, -EBADMSG, "assigned twice");
    jobs->items = mem_grow(NULL, &jobs->capacity, assignment->count, sizeof *jobs->items);
    for (size_t i = 0; i < assignment->count; i++)
        jobs->items[i] = (struct gpu_job){.position = assignment->positions[i],
                                          .limit_s = assignment->time_limit_s};
    jobs->assigned = true;
    jobs->count = assignment->count;
    jobs->time_limit_s = assignment->time_limit_s;
    jobs->stagger_s = assignment->stagger_s;
    jobs->region_bytes = assignment->region_bytes;
    spooling_join(&jobs->spooling, jobs->options, assignment->spool, assignment->survey,
                  assignment->owner, jobs->comm->place.task);
    return 0;
}

/* The first job of the same GPU; NULL: none. */
static const struct gpu_job *gpu_job_first(const struct jobs *jobs, uint32_t position)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].position == position)
            return &jobs->items[i];
    return NULL;
}

/* The second measurement has the whole time limit, as every worker. */
int jobs_again(struct jobs *jobs, struct again *again, struct err *err)
{
    const struct gpu_job *first = gpu_job_first(jobs, again->position);
    if (!first)
        return err_set(err, -EBADMSG, "asked again for a GPU that was not assigned");
    double limit_s = first->limit_s; /* the list may move */
    jobs->items = mem_grow(jobs->items, &jobs->capacity, jobs->count + 1, sizeof *jobs->items);
    jobs->items[jobs->count++] = (struct gpu_job){
        .position = again->position, .session = 1, .probes = again->probes, .limit_s = limit_s};
    again->probes = NULL;
    return 0;
}

/* Makes the GPU's part of the record. If that fails, only the record lacks it. */
static void gpu_job_record(const struct jobs *jobs, const struct gpu_job *gpu,
                           const struct gpu_result *result, struct strbuf *out_part)
{
    struct strbuf body = {0};
    struct err err = {0};
    bool closed = false;
    if (!jobs->options->record)
        return;
    if (child_record(&gpu->job.child, &body, &err))
        log_warning("%s: %s", result->uuid, err.text);
    size_t whole = record_body_whole(body.data, body.length, &closed);
    if (!closed && result->status == GPU_OK)
        log_warning("%s: its record is not complete", result->uuid);
    record_put_gpu(out_part, result, gpu->session, body.data, whole, closed);
    strbuf_fini(&body);
}

/* Spools the result, then sends it. If rank 0 cannot be reached, the rank continues: the result is
 * in the spool. */
static void gpu_job_report(struct jobs *jobs, struct gpu_job *gpu, const struct ending *ending)
{
    struct result_message message = {.position = gpu->position, .session = gpu->session};
    struct gpu_result *result = &message.result;
    struct strbuf record = {0}, payload = {0};
    struct err why = {0};
    outcome_result(&gpu->job.outcome, ending, &jobs->announce->gpus[gpu->position],
                   jobs->comm->place.task, result);
    if (!jobs->options->replay) { /* which has these in its record */
        result->run.first_status = gpu->first_status;
        result->run.first_reason = gpu->first_reason;
        gpu->first_reason = NULL;
        if (!jobs->options->simulate) /* a simulated fleet says it itself */
            result->run.gpus_allocated = jobs->announce->gpus_allocated;
    }
    if (gpu->job.outcome.remark)
        log_warning("%s: %s", result->uuid, gpu->job.outcome.remark);
    gpu_job_record(jobs, gpu, result, &record);
    message.record = record.data;
    message.record_bytes = record.length;
    if (gpu->session)
        spooling_gpu_again(&jobs->spooling, result);
    else
        spooling_gpu(&jobs->spooling, result);
    message.unspooled = jobs->spooling.failed.code ? jobs->spooling.failed.text : NULL;
    message_result_encode(&message, &payload);
    if (comm_send_payload(jobs->comm, 0, MESSAGE_RESULT, &payload, &why))
        log_debug("a result cannot be sent: %s", why.text);
    gpu_result_fini(result);
    strbuf_fini(&record);
    gpu->state = JOB_SENT;
}

static void gpu_job_start(struct jobs *jobs, struct gpu_job *gpu, double now_s)
{
    const struct ending interrupted = {.end = CHILD_INTERRUPTED};
    const struct ending not_started = {.end = CHILD_BY_ITSELF};
    struct worker_request request = job_request(jobs->comm, jobs->options, WORKER_MEASURE);
    request.uuid = jobs->announce->gpus[gpu->position].uuid;
    if (gpu->probes)
        request.probes = gpu->probes;
    request.session = gpu->session;
    request.attempt = gpu->session || gpu->first_status != GPU_OK;
    request.limit_s = gpu->limit_s;
    request.stagger_s = jobs->stagger_s;
    request.region_bytes = jobs->region_bytes;
    if (jobs->stopped) {
        gpu_job_report(jobs, gpu, &interrupted);
        return;
    }
    gpu->taken_over = jobs->listing && job_take_over(&gpu->job, jobs->listing, &request, now_s);
    jobs->listing = NULL;
    if (!gpu->taken_over && job_start(&gpu->job, &request, jobs->options, now_s)) {
        gpu_job_report(jobs, gpu, &not_started);
        return;
    }
    gpu->state = JOB_RUNNING;
    jobs->running++;
}

/* True if the worker that listed the GPUs exited before it began to measure: the GPU was not tried
 * yet. */
static bool gpu_job_never_began(const struct gpu_job *gpu)
{
    const struct outcome *outcome = &gpu->job.outcome;
    return gpu->taken_over && gpu->job.child.end == CHILD_BY_ITSELF && !outcome->probe &&
           !outcome->done && !outcome->failed;
}

/* A crash, a hang or an error may be an accident: a second worker shows whether it happens again.
 * Not for a GPU that is in use, not for a worker that somebody killed (for instance the kernel when
 * memory was out), and not when the survey is interrupted or replayed. */
static bool gpu_job_is_tried_again(const struct jobs *jobs, const struct gpu_job *gpu,
                                   enum gpu_status status)
{
    const struct child *child = &gpu->job.child;
    bool was_killed = child->end == CHILD_BY_ITSELF && child->state == CHILD_REAPED &&
                      WIFSIGNALED(child->wait_status) && WTERMSIG(child->wait_status) == SIGKILL;
    return gpu->first_status == GPU_OK && !gpu->session && !jobs->stopped &&
           !jobs->options->replay && child->end != CHILD_INTERRUPTED && !was_killed &&
           (status == GPU_CRASHED || status == GPU_TIMED_OUT || status == GPU_FAILED);
}

static void gpu_job_restart(struct jobs *jobs, struct gpu_job *gpu, double now_s)
{
    jobs->running--;
    job_fini(&gpu->job);
    gpu_job_start(jobs, gpu, now_s);
}

/* Reports a result as soon as it is complete, because the driver may take long to end the worker,
 * and the rank may die meanwhile. With a record it waits for the end of the worker: only then is
 * the record complete. */
static void gpu_job_step(struct jobs *jobs, struct gpu_job *gpu, double now_s)
{
    const char *uuid = jobs->announce->gpus[gpu->position].uuid;
    bool over = job_read(&gpu->job, gpu->limit_s, now_s);
    bool known = over || (gpu->job.outcome.done && !jobs->options->record);
    if (over && gpu_job_never_began(gpu)) {
        gpu_job_restart(jobs, gpu, now_s);
        return;
    }
    if (gpu->state == JOB_RUNNING && known) {
        const struct ending ending = job_ending(&gpu->job, gpu->limit_s);
        char *reason = NULL;
        enum gpu_status status = over ? outcome_judge(&gpu->job.outcome, &ending, &reason) : GPU_OK;
        if (gpu_job_is_tried_again(jobs, gpu, status)) {
            log_debug("%s: %s; it is tried again", uuid, reason ? reason : gpu_status_name(status));
            gpu->first_status = status;
            gpu->first_reason = reason;
            gpu_job_restart(jobs, gpu, now_s);
            return;
        }
        free(reason);
        gpu_job_report(jobs, gpu, &ending);
    }
    if (over) {
        jobs->running--;
        job_log_end(&gpu->job, uuid);
        job_fini(&gpu->job);
    }
}

static bool gpu_job_has_worker(const struct gpu_job *gpu)
{
    return gpu->job.child.pid != 0;
}

/* A GPU is measured again only when the first worker has exited: to the second one it would be
 * another process that computes on the GPU. */
static bool gpu_job_may_start(const struct jobs *jobs, const struct gpu_job *gpu)
{
    uint32_t at_once = jobs->announce->at_once;
    return (!at_once || jobs->running < at_once) &&
           (!gpu->session || !gpu_job_has_worker(gpu_job_first(jobs, gpu->position)));
}

void jobs_step(struct jobs *jobs, double now_s)
{
    for (size_t i = 0; i < jobs->next; i++)
        if (gpu_job_has_worker(&jobs->items[i]))
            gpu_job_step(jobs, &jobs->items[i], now_s);
    while (jobs->next < jobs->count && gpu_job_may_start(jobs, &jobs->items[jobs->next]))
        gpu_job_start(jobs, &jobs->items[jobs->next++], now_s);
}

size_t jobs_poll(const struct jobs *jobs, struct pollfd *out_fds)
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->next; i++)
        if (gpu_job_has_worker(&jobs->items[i]))
            count += child_poll(&jobs->items[i].job.child, out_fds + count);
    return count;
}

void jobs_stop(struct jobs *jobs, double now_s)
{
    jobs->stopped = true;
    for (size_t i = 0; i < jobs->next; i++)
        child_stop(&jobs->items[i].job.child, CHILD_INTERRUPTED, now_s);
}

bool jobs_done(const struct jobs *jobs)
{
    return jobs->next == jobs->count && !jobs->running;
}

bool jobs_reap_workers(struct jobs *jobs, double now_s)
{
    bool settled = true;
    for (size_t i = 0; i < jobs->next; i++) {
        struct gpu_job *gpu = &jobs->items[i];
        if (gpu_job_has_worker(gpu) && gpu->state != JOB_RUNNING)
            gpu_job_step(jobs, gpu, now_s);
        settled &= !gpu_job_has_worker(gpu) || gpu->state == JOB_RUNNING;
    }
    return settled;
}

struct doing jobs_slowest(const struct jobs *jobs, double now_s)
{
    struct doing doing = {0};
    for (size_t i = 0; i < jobs->next; i++) {
        const struct gpu_job *gpu = &jobs->items[i];
        double since_s = now_s - gpu->job.child.started_s;
        if (gpu->state != JOB_RUNNING || (doing.probe[0] && since_s <= doing.since_s))
            continue;
        doing.position = gpu->position;
        doing.since_s = since_s;
        snprintf(doing.probe, sizeof doing.probe, "%s",
                 gpu->job.outcome.probe ? gpu->job.outcome.probe : "opening");
    }
    return doing;
}

void jobs_fini(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        job_fini(&jobs->items[i].job);
        free(jobs->items[i].probes);
        free(jobs->items[i].first_reason);
    }
    spooling_fini(&jobs->spooling);
    free(jobs->items);
    memset(jobs, 0, sizeof *jobs);
}
