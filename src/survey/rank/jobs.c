/* The GPUs that a rank was assigned. */
#include "survey/rank/jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/replay/record.h"

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

int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err)
{
    for (size_t i = 0; i < assignment->count; i++)
        if (assignment->positions[i] >= jobs->announce->gpu_count)
            return err_set(err, -EBADMSG, "assigned a GPU that was not announced");
    if (jobs->assigned)
        return err_set(err, -EBADMSG, "assigned twice");
    struct gpu_job *items = mem_grow(NULL, &jobs->capacity, assignment->count, sizeof *items);
    if (!items)
        return err_no_memory(err);
    for (size_t i = 0; i < assignment->count; i++)
        items[i] = (struct gpu_job){.position = assignment->positions[i],
                                    .limit_s = assignment->time_limit_s};
    jobs->assigned = true;
    jobs->items = items;
    jobs->count = assignment->count;
    jobs->time_limit_s = assignment->time_limit_s;
    jobs->stagger_s = assignment->stagger_s;
    jobs->region_bytes = assignment->region_bytes;
    if (spooling_join(&jobs->spooling, jobs->options, assignment->spool, assignment->survey,
                      assignment->owner, jobs->comm->place.task))
        return err_no_memory(err);
    return 0;
}

/* The first job of the same GPU; NULL: none. */
static const struct gpu_job *first_job_of(const struct jobs *jobs, uint32_t position)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].position == position)
            return &jobs->items[i];
    return NULL;
}

/* The second measurement has the whole time limit, as every worker. */
int jobs_again(struct jobs *jobs, struct again *again, struct err *err)
{
    const struct gpu_job *first = first_job_of(jobs, again->position);
    if (!first)
        return err_set(err, -EBADMSG, "asked again for a GPU that was not assigned");
    double limit_s = first->limit_s; /* the list may move */
    struct gpu_job *grown = mem_grow(jobs->items, &jobs->capacity, jobs->count + 1, sizeof *grown);
    if (!grown)
        return err_no_memory(err);
    jobs->items = grown;
    grown[jobs->count++] = (struct gpu_job){
        .position = again->position, .session = 1, .probes = again->probes, .limit_s = limit_s};
    again->probes = NULL;
    return 0;
}

/* Makes the GPU's part of the record. If that fails, only the record lacks it. */
static void make_record(const struct jobs *jobs, const struct gpu_job *gpu,
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
    if (out_part->failed) {
        log_warning("%s: not recorded: out of memory", result->uuid);
        strbuf_fini(out_part);
    }
    strbuf_fini(&body);
}

/* If rank 0 cannot be reached, the rank continues: the result is in the spool. */
static int send_result(struct jobs *jobs, const struct result_message *message, struct err *err)
{
    struct strbuf payload = {0};
    struct err why = {0};
    message_result_encode(message, &payload);
    int rc = comm_send_payload(jobs->comm, 0, MESSAGE_RESULT, &payload, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    if (rc)
        log_debug("a result cannot be sent: %s", why.text);
    return 0;
}

/* Adds what only the rank knows. A replay has it in its record. */
static void add_circumstances(const struct jobs *jobs, struct gpu_job *gpu,
                              struct gpu_result *result)
{
    if (jobs->options->replay)
        return;
    result->first_status = gpu->first_status;
    result->first_reason = gpu->first_reason;
    if (!jobs->options->simulate) /* a simulated fleet says it itself */
        result->gpus_given = jobs->announce->gpus_given;
    gpu->first_reason = NULL;
}

static int report(struct jobs *jobs, struct gpu_job *gpu, const struct ending *ending,
                  struct err *err)
{
    struct result_message message = {.position = gpu->position, .session = gpu->session};
    struct strbuf record = {0};
    int rc = outcome_result(&gpu->job.outcome, ending, &jobs->announce->gpus[gpu->position],
                            jobs->comm->place.task, &message.result, err);
    if (rc)
        return rc;
    add_circumstances(jobs, gpu, &message.result);
    if (gpu->job.outcome.remark)
        log_warning("%s: %s", message.result.uuid, gpu->job.outcome.remark);
    make_record(jobs, gpu, &message.result, &record);
    message.record = record.data;
    message.record_bytes = record.length;
    if (gpu->session)
        spooling_gpu_again(&jobs->spooling, &message.result);
    else
        spooling_gpu(&jobs->spooling, &message.result);
    message.unspooled = jobs->spooling.failed.code ? jobs->spooling.failed.text : NULL;
    rc = send_result(jobs, &message, err);
    gpu_result_fini(&message.result);
    strbuf_fini(&record);
    gpu->state = JOB_SENT;
    return rc;
}

static int start(struct jobs *jobs, struct gpu_job *gpu, double now_s, struct err *err)
{
    const struct ending interrupted = {.end = CHILD_INTERRUPTED};
    const struct ending not_started = {.end = CHILD_BY_ITSELF};
    const struct job_target target = {
        .uuid = jobs->announce->gpus[gpu->position].uuid,
        .probes = gpu->probes,
        .session = gpu->session,
        .attempt = gpu->session || gpu->first_status != GPU_OK,
        .limit_s = gpu->limit_s,
        .stagger_s = jobs->stagger_s,
        .region_bytes = jobs->region_bytes,
    };
    if (jobs->stopped)
        return report(jobs, gpu, &interrupted, err);
    gpu->taken_over = jobs->listing && job_take_over(&gpu->job, jobs->listing, jobs->comm,
                                                     jobs->options, &target, now_s);
    jobs->listing = NULL;
    if (!gpu->taken_over &&
        job_start(&gpu->job, jobs->comm, jobs->options, WORKER_MEASURE, &target, now_s))
        return report(jobs, gpu, &not_started, err);
    gpu->state = JOB_RUNNING;
    jobs->running++;
    return 0;
}

/* True if the worker that listed the GPUs exited before it began to measure: the GPU was not tried
 * yet. */
static bool never_began(const struct gpu_job *gpu)
{
    const struct outcome *outcome = &gpu->job.outcome;
    return gpu->taken_over && gpu->job.child.end == CHILD_BY_ITSELF && !outcome->probe &&
           !outcome->done && !outcome->failed;
}

/* Somebody killed the worker, for instance the kernel when memory was out. */
static bool was_killed(const struct child *child)
{
    return child->end == CHILD_BY_ITSELF && child->state == CHILD_REAPED &&
           WIFSIGNALED(child->wait_status) && WTERMSIG(child->wait_status) == SIGKILL;
}

/* A crash, a hang or an error may be an accident: a second worker shows whether it happens again.
 * Not for a GPU that is in use, not for a worker that was killed, and not when the survey is
 * interrupted or replayed. */
static bool is_tried_again(const struct jobs *jobs, const struct gpu_job *gpu,
                           enum gpu_status status)
{
    return gpu->first_status == GPU_OK && !gpu->session && !jobs->stopped &&
           !jobs->options->replay && gpu->job.child.end != CHILD_INTERRUPTED &&
           !was_killed(&gpu->job.child) &&
           (status == GPU_CRASHED || status == GPU_TIMED_OUT || status == GPU_FAILED);
}

/* Starts a second worker for the GPU whose first one ended like this. Takes over `reason`. */
static int try_again(struct jobs *jobs, struct gpu_job *gpu, enum gpu_status status, char *reason,
                     double now_s, struct err *err)
{
    gpu->first_status = status;
    gpu->first_reason = reason;
    log_debug("%s: %s; it is tried again", jobs->announce->gpus[gpu->position].uuid,
              reason ? reason : gpu_status_name(status));
    jobs->running--;
    job_fini(&gpu->job);
    return start(jobs, gpu, now_s, err);
}

/* Reports the result, or starts a second worker. `over`: this worker has ended. *out_again: a
 * second one was started. */
static int conclude(struct jobs *jobs, struct gpu_job *gpu, bool over, double now_s,
                    bool *out_again, struct err *err)
{
    const struct ending ending = job_ending(&gpu->job, gpu->limit_s);
    char *reason = NULL;
    enum gpu_status status = over ? outcome_judge(&gpu->job.outcome, &ending, &reason) : GPU_OK;
    *out_again = is_tried_again(jobs, gpu, status);
    if (*out_again)
        return try_again(jobs, gpu, status, reason, now_s, err);
    free(reason);
    return report(jobs, gpu, &ending, err);
}

/* Reports a result as soon as it is complete, because the driver may take long to end the worker,
 * and the rank may die meanwhile. With a record it waits for the end of the worker: only then is
 * the record complete. */
static int hear(struct jobs *jobs, struct gpu_job *gpu, double now_s, struct err *err)
{
    bool over = job_hear(&gpu->job, gpu->limit_s, now_s), again = false;
    bool known = over || (gpu->job.outcome.done && !jobs->options->record);
    int rc = 0;
    if (over && never_began(gpu)) {
        jobs->running--;
        job_fini(&gpu->job);
        return start(jobs, gpu, now_s, err);
    }
    if (gpu->state == JOB_RUNNING && known)
        rc = conclude(jobs, gpu, over, now_s, &again, err);
    if (over && !again) {
        jobs->running--;
        job_remark(&gpu->job, jobs->announce->gpus[gpu->position].uuid);
        job_fini(&gpu->job);
    }
    return rc;
}

static bool has_worker(const struct gpu_job *gpu)
{
    return gpu->job.child.pid != 0;
}

/* A GPU is measured again only when the first worker has exited: to the second one it would be
 * another process that computes on the GPU. */
static bool may_start(const struct jobs *jobs, const struct gpu_job *gpu)
{
    uint32_t at_once = jobs->announce->at_once;
    return (!at_once || jobs->running < at_once) &&
           (!gpu->session || !has_worker(first_job_of(jobs, gpu->position)));
}

int jobs_step(struct jobs *jobs, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < jobs->next && !rc; i++)
        if (has_worker(&jobs->items[i]))
            rc = hear(jobs, &jobs->items[i], now_s, err);
    while (!rc && jobs->next < jobs->count && may_start(jobs, &jobs->items[jobs->next]))
        rc = start(jobs, &jobs->items[jobs->next++], now_s, err);
    return rc;
}

size_t jobs_poll(const struct jobs *jobs, struct pollfd *out_fds)
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->next; i++)
        if (has_worker(&jobs->items[i]))
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

bool jobs_settle(struct jobs *jobs, double now_s)
{
    struct err ignored = {0};
    bool settled = true;
    for (size_t i = 0; i < jobs->next; i++) {
        struct gpu_job *gpu = &jobs->items[i];
        if (has_worker(gpu) && gpu->state != JOB_RUNNING)
            hear(jobs, gpu, now_s, &ignored);
        settled &= !has_worker(gpu) || gpu->state == JOB_RUNNING;
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
