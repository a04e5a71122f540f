/* A rank's own part of the survey. */
#include "survey/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/replay/record.h"
#include "survey/child.h"
#include "survey/limits.h"
#include "survey/message.h"
#include "survey/outcome.h"
#include "survey/pulse.h"
#include "survey/spooling.h"

/* A complete answer is there; what remains is the driver's shutdown. */
static const double linger_s = 10;

/* More than rank 0 needs to judge and write what one rank has sent. */
static const double report_per_rank_s = 0.002;

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_SENT, JOB_ACKNOWLEDGED };

struct job {
    uint32_t position; /* in the announced list */
    enum job_state state;
    struct child child;
    struct outcome outcome;
    struct err garbage;
    double done_s;         /* when DONE was first seen; 0 not yet */
    struct strbuf message; /* JOB_SENT: the result, until it is acknowledged */
    double sent_s;
};

struct rank {
    struct comm *comm;
    const struct survey_options *options;
    struct announce announce;
    bool announced;
    struct job listing;
    struct job *jobs;
    size_t job_count;
    size_t next;    /* first job that was not started */
    size_t running; /* workers alive */
    bool assigned, stopped, quit;
    struct quit dismissal;
    struct spooling spooling;
    struct pulse_clock clock;
    double heard_s;     /* from rank 0, by that clock */
    double next_beat_s; /* likewise */
    double time_limit_s;
    struct pollfd *fds;
    size_t fd_capacity;
};

static char *read_boot_id(void)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    return n > 0 ? str_copy_n(text, (size_t)n) : NULL;
}

/* Simulated and replayed GPUs compete for the CPUs, real ones do not. */
static uint32_t workers_at_once(const struct survey_options *options)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (!options->simulate && !options->replay)
        return 0;
    return cpus < 1 ? 1 : (uint32_t)cpus;
}

static struct worker_request request_of(const struct rank *rank, enum worker_task task)
{
    const struct survey_options *options = rank->options;
    return (struct worker_request){
        .task = task,
        .parent = getpid(),
        .fleet = (char *)options->simulate,
        .replay = (char *)options->replay,
        .record = options->record && task == WORKER_MEASURE,
        .seed = options->seed,
        .rank = (uint32_t)rank->comm->rank,
        .ranks = (uint32_t)rank->comm->size,
        .profile = options->profile,
        .probes = (char *)options->probes,
        .measure_busy = options->measure_busy,
    };
}

/* Without a worker the rank has nothing to list, and announces just that. */
static void start_listing(struct rank *rank, double now_s)
{
    const struct worker_request request = request_of(rank, WORKER_LIST);
    struct job *listing = &rank->listing;
    listing->outcome.failed =
        child_start(&listing->child, &request, now_s, &listing->outcome.err) != 0;
    listing->child.over = listing->outcome.failed;
}

int rank_create(struct comm *comm, const struct survey_options *options, struct rank **out_rank,
                struct err *err)
{
    char host[256] = "";
    double now_s = clock_monotonic_s();
    struct rank *rank = mem_array(1, sizeof *rank);
    if (!rank)
        return err_no_memory(err);
    rank->comm = comm;
    rank->options = options;
    if (gethostname(host, sizeof host - 1) || !host[0])
        strcpy(host, "localhost");
    rank->announce.host = str_copy(host);
    rank->announce.boot_id = read_boot_id();
    rank->announce.at_once = workers_at_once(options);
    if (!rank->announce.host) {
        rank_destroy(rank);
        return err_no_memory(err);
    }
    start_listing(rank, now_s);
    *out_rank = rank;
    return 0;
}

static int take_listing(void *user, const struct frame *frame, struct err *err)
{
    return outcome_take_listing(&((struct job *)user)->outcome, frame, err);
}

static int take_measuring(void *user, const struct frame *frame, struct err *err)
{
    return outcome_take_measuring(&((struct job *)user)->outcome, frame, err);
}

/* Hears one worker and holds it to its limit. True when it is over. */
static bool hear(struct job *job, child_frame_taker *take, double limit_s, double now_s)
{
    struct outcome *outcome = &job->outcome;
    child_pump(&job->child, now_s, take, job, &job->garbage);
    if ((outcome->done || outcome->failed) && !job->done_s)
        job->done_s = now_s;
    if (job->done_s && now_s - job->done_s >= linger_s)
        child_stop(&job->child, CHILD_LINGERED, now_s);
    else if (!job->done_s && now_s - job->child.started_s >= limit_s)
        child_stop(&job->child, CHILD_TIME_LIMIT, now_s);
    return job->child.over;
}

static struct ending ending_of(const struct job *job, double limit_s)
{
    return (struct ending){
        .end = job->child.end,
        .reaped = job->child.reaped,
        .wait_status = job->child.wait_status,
        .limit_s = limit_s,
        .half_record = frame_reader_pending(&job->child.frames) > 0,
        .garbage = job->garbage.text,
        .tail = job->child.tail,
    };
}

/* A complete answer stands, but a worker that then stumbled, or wrote to stderr, may have something
 * to tell. */
static void remark(const struct job *job, const char *what)
{
    const struct child *child = &job->child;
    if (child->tail_length || (child->reaped && child->wait_status))
        log_debug("worker for %s: wait status %d, stderr: %s", what, child->wait_status,
                  child->tail);
}

/* An input file that cannot be used is the user's to mend; all else is this rank's misfortune. */
static enum listing_status classify(const struct survey_options *options, const struct job *listing)
{
    const struct err *err = &listing->outcome.err;
    if (!listing->outcome.failed || !listing->child.pid)
        return LISTING_FAILED; /* the worker said nothing, or was none */
    if (options->simulate || options->replay)
        return err->code == -ENOMEM ? LISTING_FAILED : LISTING_BAD_INPUT;
    if (err->code == -ENODEV || err->code == -ENOTSUP)
        return LISTING_NO_DEVICE;
    return LISTING_FAILED;
}

static int adopt_listing(struct rank *rank, struct err *err)
{
    struct outcome *outcome = &rank->listing.outcome;
    struct announce *announce = &rank->announce;
    struct announce *heard = &outcome->listing;
    const struct ending ending = ending_of(&rank->listing, LIMIT_LISTING_S);
    char *reason = NULL;
    announce->failed_as = outcome_judge(outcome, &ending, &reason);
    if (announce->failed_as != GPU_OK) {
        announce->listing = classify(rank->options, &rank->listing);
        announce->err = outcome->err;
        if (!outcome->failed)
            err_set(&announce->err, -EIO, "listing the GPUs: %s", reason ? reason : "failed");
        free(reason);
        return 0;
    }
    announce->gpus = heard->gpus;
    announce->gpu_count = heard->gpu_count;
    announce->bare_nodes = heard->bare_nodes;
    announce->bare_count = heard->bare_count;
    memset(heard, 0, sizeof *heard);
    for (size_t i = 0; i < announce->gpu_count; i++)
        if (!announce->gpus[i].node && !(announce->gpus[i].node = str_copy(announce->host)))
            return err_no_memory(err);
    return 0;
}

static int finish_listing(struct rank *rank, struct err *err)
{
    struct strbuf payload = {0};
    remark(&rank->listing, "the list of GPUs");
    int rc = adopt_listing(rank, err);
    if (rc)
        return rc;
    announce_encode(&rank->announce, &payload);
    rank->announced = true;
    return comm_send_payload(rank->comm, 0, MESSAGE_ANNOUNCE, &payload, err);
}

/* The GPU's part of the record. One that cannot be had costs nothing but itself. */
static void make_record(const struct rank *rank, const struct job *job,
                        const struct gpu_result *result, struct strbuf *out_part)
{
    struct strbuf body = {0};
    struct err err = {0};
    bool closed = false;
    if (!rank->options->record)
        return;
    if (child_record(&job->child, &body, &err))
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
static int send_result(struct rank *rank, struct job *job, double now_s, struct err *err)
{
    struct err why = {0};
    job->sent_s = now_s;
    if (job->message.failed)
        return err_no_memory(err);
    int rc = comm_send(rank->comm, 0, MESSAGE_RESULT, job->message.data, job->message.length, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    if (rc)
        log_debug("a result cannot be sent now: %s", why.text);
    return 0;
}

static int report(struct rank *rank, struct job *job, const struct ending *ending, double now_s,
                  struct err *err)
{
    struct result_message message = {.position = job->position};
    struct strbuf record = {0};
    int rc = outcome_result(&job->outcome, ending, &rank->announce.gpus[job->position],
                            rank->comm->rank, &message.result, err);
    if (rc)
        return rc;
    if (job->outcome.remark)
        log_warning("%s: %s", message.result.uuid, job->outcome.remark);
    make_record(rank, job, &message.result, &record);
    message.record = record.data;
    message.record_bytes = record.length;
    spooling_gpu(&rank->spooling, &message.result);
    message.unspooled = rank->spooling.failed.code ? rank->spooling.failed.text : NULL;
    result_encode(&message, &job->message);
    gpu_result_fini(&message.result);
    strbuf_fini(&record);
    job->state = JOB_SENT;
    return send_result(rank, job, now_s, err);
}

/* While rank 0 makes its report it hears and answers nobody. */
static double patience_s(const struct rank *rank)
{
    double report_s = rank->assigned && !rank_unacknowledged(rank) ? report_per_rank_s : 0;
    return pulse_silence_s(rank->comm->size) + report_s * rank->comm->size;
}

static double unheard_s(const struct rank *rank)
{
    return rank->clock.awake_s - rank->heard_s;
}

static bool orphaned(const struct rank *rank)
{
    return rank->comm->rank && !rank->quit && unheard_s(rank) > patience_s(rank);
}

/* Rank 0 may only be waiting for a file system and speak again, so it is given the same time once
 * more, as long as the limit of one GPU is not over: the job must end soon after that. */
static bool given_up(const struct rank *rank)
{
    double limit_s = rank->assigned ? rank->time_limit_s : rank->options->time_limit_s;
    if (!orphaned(rank))
        return false;
    return rank->stopped || unheard_s(rank) > 2 * patience_s(rank) ||
           (limit_s > 0 && rank->clock.awake_s > limit_s);
}

/* A small message to a rank that is no more "succeeds": only the acknowledgement counts. To one
 * that is not heard no more is sent, since a large one stays in memory until it is taken. */
static int resend(struct rank *rank, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < rank->next && !rc && !orphaned(rank); i++)
        if (rank->jobs[i].state == JOB_SENT && now_s - rank->jobs[i].sent_s >= LIMIT_ACK_S)
            rc = send_result(rank, &rank->jobs[i], now_s, err);
    return rc;
}

static int start_job(struct rank *rank, struct job *job, double now_s, struct err *err)
{
    struct worker_request request = request_of(rank, WORKER_MEASURE);
    struct err why = {0};
    request.uuid = rank->announce.gpus[job->position].uuid;
    if (!rank->stopped && child_start(&job->child, &request, now_s, &why) == 0) {
        job->state = JOB_RUNNING;
        rank->running++;
        return 0;
    }
    const struct ending interrupted = {.end = CHILD_INTERRUPTED};
    const struct ending not_started = {.end = CHILD_BY_ITSELF};
    if (!rank->stopped) {
        job->outcome.failed = true;
        job->outcome.err = why;
    }
    return report(rank, job, rank->stopped ? &interrupted : &not_started, now_s, err);
}

static int step_jobs(struct rank *rank, double now_s, struct err *err)
{
    uint32_t at_once = rank->announce.at_once;
    int rc = 0;
    for (size_t i = 0; i < rank->next && !rc; i++) {
        struct job *job = &rank->jobs[i];
        if (job->state != JOB_RUNNING || !hear(job, take_measuring, rank->time_limit_s, now_s))
            continue;
        const struct ending ending = ending_of(job, rank->time_limit_s);
        rank->running--;
        remark(job, rank->announce.gpus[job->position].uuid);
        rc = report(rank, job, &ending, now_s, err);
        child_fini(&job->child);
        outcome_fini(&job->outcome);
    }
    while (!rc && rank->next < rank->job_count && (!at_once || rank->running < at_once))
        rc = start_job(rank, &rank->jobs[rank->next++], now_s, err);
    return rc;
}

static bool all_done(const struct rank *rank)
{
    return rank->next == rank->job_count && !rank->running;
}

/* The worker that runs longest. */
static struct doing slowest(const struct rank *rank, double now_s)
{
    struct doing doing = {0};
    for (size_t i = 0; i < rank->next; i++) {
        const struct job *job = &rank->jobs[i];
        double since_s = now_s - job->child.started_s;
        if (job->state != JOB_RUNNING || (doing.probe[0] && since_s <= doing.since_s))
            continue;
        doing.position = job->position;
        doing.since_s = since_s;
        snprintf(doing.probe, sizeof doing.probe, "%s",
                 job->outcome.probe ? job->outcome.probe : "opening");
    }
    return doing;
}

static void send_beat(struct rank *rank, double now_s)
{
    struct err ignored = {0};
    struct strbuf payload = {0};
    const struct doing doing = slowest(rank, now_s);
    doing_encode(&doing, &payload);
    comm_send_payload(rank->comm, 0, MESSAGE_BEAT, &payload, &ignored);
}

/* Says that this rank lives; also to a rank 0 that is not heard, so that it finds all there. */
static void beat(struct rank *rank, double now_s)
{
    double awake_s = pulse_tick(&rank->clock, now_s);
    if (rank->quit || awake_s < rank->next_beat_s)
        return;
    send_beat(rank, now_s);
    rank->next_beat_s = awake_s + pulse_interval_s(rank->comm->size);
}

int rank_step(struct rank *rank, double now_s, struct err *err)
{
    int rc = 0;
    beat(rank, now_s);
    if (!rank->announced && hear(&rank->listing, take_listing, LIMIT_LISTING_S, now_s))
        rc = finish_listing(rank, err);
    if (!rc)
        rc = step_jobs(rank, now_s, err);
    return rc ? rc : resend(rank, now_s, err);
}

static int take_assignment(struct rank *rank, const struct frame *frame, struct err *err)
{
    struct assignment assignment = {0};
    int rc = assignment_decode(frame, &assignment, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < assignment.count && !rc; i++)
        if (assignment.positions[i] >= rank->announce.gpu_count)
            rc = err_set(err, -EBADMSG, "assigned a GPU that was not announced");
    if (!rc && rank->assigned)
        rc = err_set(err, -EBADMSG, "assigned twice");
    if (!rc && !(rank->jobs = mem_array(assignment.count, sizeof *rank->jobs)))
        rc = err_no_memory(err);
    if (!rc) {
        rank->assigned = true;
        rank->job_count = assignment.count;
        rank->time_limit_s = assignment.time_limit_s;
        for (size_t i = 0; i < assignment.count; i++)
            rank->jobs[i].position = assignment.positions[i];
        if (spooling_join(&rank->spooling, rank->options, assignment.spool, assignment.survey))
            rc = err_no_memory(err);
    }
    assignment_fini(&assignment);
    return rc;
}

static int take_ack(struct rank *rank, const struct frame *frame, struct err *err)
{
    uint32_t position = 0;
    int rc = ack_decode(frame, &position, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rank->job_count; i++)
        if (rank->jobs[i].position == position && rank->jobs[i].state == JOB_SENT) {
            rank->jobs[i].state = JOB_ACKNOWLEDGED;
            strbuf_fini(&rank->jobs[i].message);
        }
    return 0; /* or the second one of a result that was sent twice */
}

int rank_take(struct rank *rank, const struct comm_message *message, struct err *err)
{
    rank->heard_s = rank->clock.awake_s;
    switch (message->frame.type) {
    case MESSAGE_ASSIGN:
        return take_assignment(rank, &message->frame, err);
    case MESSAGE_ACK:
        return take_ack(rank, &message->frame, err);
    case MESSAGE_STOP:
        rank_stop(rank, clock_monotonic_s());
        return 0;
    case MESSAGE_BEAT:
        return 0;
    case MESSAGE_QUIT:
        rank->quit = true;
        return quit_decode(&message->frame, &rank->dismissal, err);
    default:
        return err_set(err, -EBADMSG, "a message of type %u out of place", message->frame.type);
    }
}

struct pollfd *rank_poll(struct rank *rank, size_t *out_count)
{
    size_t needed = (rank->running + 1) * CHILD_POLL_MAX;
    struct pollfd *grown = mem_grow(rank->fds, &rank->fd_capacity, needed, sizeof *rank->fds);
    if (!grown)
        return NULL;
    rank->fds = grown;
    size_t count = child_poll(&rank->listing.child, rank->fds);
    for (size_t i = 0; i < rank->next; i++)
        if (rank->jobs[i].state == JOB_RUNNING)
            count += child_poll(&rank->jobs[i].child, rank->fds + count);
    *out_count = count;
    return rank->fds;
}

void rank_stop(struct rank *rank, double now_s)
{
    if (rank->stopped)
        return;
    rank->stopped = true;
    child_stop(&rank->listing.child, CHILD_INTERRUPTED, now_s);
    for (size_t i = 0; i < rank->next; i++)
        child_stop(&rank->jobs[i].child, CHILD_INTERRUPTED, now_s);
}

bool rank_may_leave(const struct rank *rank)
{
    return rank->quit || (given_up(rank) && all_done(rank));
}

/* Nothing was assigned and nothing will be: the GPUs are told all the same. */
void rank_abandon(struct rank *rank)
{
    if (rank->quit || rank->assigned)
        return;
    char *folder = spooling_folder(rank->options, rank->options->output);
    if (folder && spooling_join(&rank->spooling, rank->options, folder, "") == 0)
        mkdir(folder, 0777);
    for (size_t i = 0; folder && i < rank->announce.gpu_count; i++) {
        struct gpu_result gpu = rank->announce.gpus[i]; /* a view */
        gpu.rank = rank->comm->rank;
        gpu.status = GPU_LOST;
        gpu.reason = (char *)"rank 0 was lost before it assigned the GPUs";
        spooling_gpu(&rank->spooling, &gpu);
    }
    free(folder);
}

bool rank_orphaned(const struct rank *rank, double *out_unheard_s, const char **out_spool)
{
    *out_unheard_s = unheard_s(rank);
    *out_spool = rank->spooling.folder;
    return orphaned(rank);
}

bool rank_saw_loss(const struct rank *rank)
{
    return !rank->quit || rank->dismissal.lost_ranks;
}

void rank_unspool(const struct rank *rank)
{
    if (rank->options->spool || (rank->comm->rank && !rank->dismissal.spool_done))
        return;
    for (size_t i = 0; i < rank->job_count; i++)
        spooling_remove_gpu(&rank->spooling, rank->announce.gpus[rank->jobs[i].position].uuid);
    spooling_remove_folder(&rank->spooling);
}

size_t rank_unacknowledged(const struct rank *rank)
{
    size_t count = 0;
    for (size_t i = 0; i < rank->job_count; i++)
        count += rank->jobs[i].state != JOB_ACKNOWLEDGED;
    return count;
}

void rank_destroy(struct rank *rank)
{
    if (!rank)
        return;
    child_fini(&rank->listing.child);
    outcome_fini(&rank->listing.outcome);
    for (size_t i = 0; i < rank->job_count; i++) {
        child_fini(&rank->jobs[i].child);
        outcome_fini(&rank->jobs[i].outcome);
        strbuf_fini(&rank->jobs[i].message);
    }
    announce_fini(&rank->announce);
    spooling_fini(&rank->spooling);
    free(rank->jobs);
    free(rank->fds);
    free(rank);
}
