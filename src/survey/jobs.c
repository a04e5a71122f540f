/* The GPUs that a rank was assigned. */
#include "survey/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/replay/record.h"
#include "survey/limits.h"

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_SENT, JOB_ACKNOWLEDGED };

struct gpu_job {
    uint32_t position; /* in the announced list */
    enum job_state state;
    struct job job;
    struct strbuf message; /* JOB_SENT: the result, until it is acknowledged */
    double sent_s;
};

int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err)
{
    for (size_t i = 0; i < assignment->count; i++)
        if (assignment->positions[i] >= jobs->announce->gpu_count)
            return err_set(err, -EBADMSG, "assigned a GPU that was not announced");
    if (jobs->assigned)
        return err_set(err, -EBADMSG, "assigned twice");
    struct gpu_job *items = mem_array(assignment->count, sizeof *items);
    if (!items)
        return err_no_memory(err);
    for (size_t i = 0; i < assignment->count; i++)
        items[i].position = assignment->positions[i];
    jobs->assigned = true;
    jobs->items = items;
    jobs->count = assignment->count;
    jobs->time_limit_s = assignment->time_limit_s;
    if (spooling_join(&jobs->spooling, jobs->options, assignment->spool, assignment->survey))
        return err_no_memory(err);
    return 0;
}

/* The GPU's part of the record. One that cannot be had costs nothing but itself. */
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
    record_put_gpu(out_part, result, body.data, whole, closed);
    if (out_part->failed)
        strbuf_fini(out_part);
    strbuf_fini(&body);
}

/* Rank 0 may be beyond reach: the result is spooled, and this rank goes on. */
static int send_result(struct jobs *jobs, struct gpu_job *gpu, double now_s, struct err *err)
{
    struct err why = {0};
    gpu->sent_s = now_s;
    if (gpu->message.failed)
        return err_no_memory(err);
    int rc = comm_send(jobs->comm, jobs->comm->root, MESSAGE_RESULT, gpu->message.data,
                       gpu->message.length, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    if (rc)
        log_debug("a result cannot be sent now: %s", why.text);
    return 0;
}

static int report(struct jobs *jobs, struct gpu_job *gpu, const struct ending *ending, double now_s,
                  struct err *err)
{
    struct result_message message = {.position = gpu->position};
    struct strbuf record = {0};
    int rc = outcome_result(&gpu->job.outcome, ending, &jobs->announce->gpus[gpu->position],
                            jobs->comm->rank, &message.result, err);
    if (rc)
        return rc;
    if (gpu->job.outcome.remark)
        log_warning("%s: %s", message.result.uuid, gpu->job.outcome.remark);
    make_record(jobs, gpu, &message.result, &record);
    message.record = record.data;
    message.record_bytes = record.length;
    spooling_gpu(&jobs->spooling, &message.result);
    message.unspooled = jobs->spooling.failed.code ? jobs->spooling.failed.text : NULL;
    result_encode(&message, &gpu->message);
    gpu_result_fini(&message.result);
    strbuf_fini(&record);
    gpu->state = JOB_SENT;
    return send_result(jobs, gpu, now_s, err);
}

/* A small message to a rank that is no more "succeeds": only the acknowledgement counts. */
int jobs_resend(struct jobs *jobs, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < jobs->next && !rc; i++)
        if (jobs->items[i].state == JOB_SENT && now_s - jobs->items[i].sent_s >= LIMIT_ACK_S)
            rc = send_result(jobs, &jobs->items[i], now_s, err);
    return rc;
}

static int start(struct jobs *jobs, struct gpu_job *gpu, double now_s, struct err *err)
{
    const struct ending interrupted = {.end = CHILD_INTERRUPTED};
    const struct ending not_started = {.end = CHILD_BY_ITSELF};
    const char *uuid = jobs->announce->gpus[gpu->position].uuid;
    if (jobs->stopped)
        return report(jobs, gpu, &interrupted, now_s, err);
    if (job_start(&gpu->job, jobs->comm, jobs->options, WORKER_MEASURE, uuid, now_s))
        return report(jobs, gpu, &not_started, now_s, err);
    gpu->state = JOB_RUNNING;
    jobs->running++;
    return 0;
}

/* What is known is told at once: the driver takes its time to let go of a worker, and a rank may
 * die meanwhile. A record is whole only when the worker has left. */
static int hear(struct jobs *jobs, struct gpu_job *gpu, double now_s, struct err *err)
{
    bool over = job_hear(&gpu->job, jobs->time_limit_s, now_s);
    bool known = over || (gpu->job.outcome.done && !jobs->options->record);
    int rc = 0;
    if (gpu->state == JOB_RUNNING && known) {
        const struct ending ending = job_ending(&gpu->job, jobs->time_limit_s);
        rc = report(jobs, gpu, &ending, now_s, err);
    }
    if (over) {
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

int jobs_step(struct jobs *jobs, double now_s, struct err *err)
{
    uint32_t at_once = jobs->announce->at_once;
    int rc = 0;
    for (size_t i = 0; i < jobs->next && !rc; i++)
        if (has_worker(&jobs->items[i]))
            rc = hear(jobs, &jobs->items[i], now_s, err);
    while (!rc && jobs->next < jobs->count && (!at_once || jobs->running < at_once))
        rc = start(jobs, &jobs->items[jobs->next++], now_s, err);
    return rc;
}

void jobs_acknowledge(struct jobs *jobs, uint32_t position)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].position == position && jobs->items[i].state == JOB_SENT) {
            jobs->items[i].state = JOB_ACKNOWLEDGED;
            strbuf_fini(&jobs->items[i].message);
        }
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

size_t jobs_unacknowledged(const struct jobs *jobs)
{
    size_t count = 0;
    for (size_t i = 0; i < jobs->count; i++)
        count += jobs->items[i].state != JOB_ACKNOWLEDGED;
    return count;
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

void jobs_unspool(const struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        spooling_remove_gpu(&jobs->spooling, jobs->announce->gpus[jobs->items[i].position].uuid);
    spooling_remove_folder(&jobs->spooling);
}

void jobs_fini(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        job_fini(&jobs->items[i].job);
        strbuf_fini(&jobs->items[i].message);
    }
    spooling_fini(&jobs->spooling);
    free(jobs->items);
    memset(jobs, 0, sizeof *jobs);
}
