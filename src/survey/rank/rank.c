/* The part of the survey that every rank does. */
#include "survey/rank/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/rank/jobs.h"

struct allocated_environment allocated_environment_read(void)
{
    return (struct allocated_environment){
        .gpus_on_node = getenv("SLURM_GPUS_ON_NODE"),
        .visible = getenv("CUDA_VISIBLE_DEVICES"),
        .tasks_per_node = getenv("SLURM_STEP_TASKS_PER_NODE"),
        .node_number = getenv("SLURM_NODEID"),
        .local_size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"),
    };
}

/* A number from 0 to 65535 at the beginning of the text; -1: there is none. */
static long leading_number(const char *text)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    return text && end != text && value >= 0 && value <= UINT16_MAX ? value : -1;
}

/* The tasks of a node in a list such as "8(x3),2"; -1: the list does not say. */
static long tasks_in_list(const char *list, long node)
{
    while (list && node >= 0) {
        long tasks = leading_number(list), nodes = 1;
        const char *comma = strchr(list, ','), *times = strstr(list, "(x");
        if (times && (!comma || times < comma))
            nodes = leading_number(times + 2);
        if (tasks < 0 || nodes < 0)
            return -1;
        if (node < nodes)
            return tasks;
        node -= nodes;
        list = comma ? comma + 1 : NULL;
    }
    return -1;
}

/* How many GPUs CUDA_VISIBLE_DEVICES names. An entry that is no number and no UUID, such as
 * NoDevFiles or -1, ends the list, as it does for the driver. */
static long count_visible(const char *visible)
{
    long count = 0;
    while (visible && *visible) {
        bool known = (*visible >= '0' && *visible <= '9') || strncmp(visible, "GPU-", 4) == 0 ||
                     strncmp(visible, "MIG-", 4) == 0;
        if (!known)
            return count;
        count++;
        const char *comma = strchr(visible, ',');
        visible = comma ? comma + 1 : NULL;
    }
    return count;
}

uint32_t rank_allocated_gpus(const struct allocated_environment *environment, uint32_t listed)
{
    long allocated = leading_number(environment->gpus_on_node);
    if (allocated < 0)
        return environment->visible ? listed : 0;
    long tasks =
        tasks_in_list(environment->tasks_per_node, leading_number(environment->node_number));
    if (tasks < 1)
        tasks = leading_number(environment->local_size);
    long visible = count_visible(environment->visible) * (tasks < 1 ? 1 : tasks);
    return (uint32_t)(environment->visible && visible < allocated ? visible : allocated);
}

static const enum root_contact transitions[ROOT_CONTACTS][ROOT_CONTACT_EVENTS] = {
    /* A rank 0 that never started has already had the start timeout, so there is no second wait. */
    [ROOT_CONTACT_UNHEARD] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_GAVE_UP] = ROOT_CONTACT_GIVEN_UP,
        },
    [ROOT_CONTACT_HEARD] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_SAID_QUIT] = ROOT_CONTACT_QUIT,
            [ROOT_CONTACT_EVENT_FELL_SILENT] = ROOT_CONTACT_SILENT,
        },
    [ROOT_CONTACT_SILENT] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD,
            [ROOT_CONTACT_EVENT_GAVE_UP] = ROOT_CONTACT_GIVEN_UP,
        },
    [ROOT_CONTACT_GIVEN_UP] = {[ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_HEARD},
    [ROOT_CONTACT_QUIT] =
        {
            [ROOT_CONTACT_EVENT_HEARD] = ROOT_CONTACT_QUIT,
            [ROOT_CONTACT_EVENT_SAID_QUIT] = ROOT_CONTACT_QUIT,
        },
};

bool root_contact_apply(enum root_contact *contact, enum root_contact_event event)
{
    enum root_contact next = transitions[*contact][event];
    if (next == ROOT_CONTACT_NONE)
        return false;
    *contact = next;
    return true;
}

struct rank {
    struct comm *comm;
    const struct survey_options *options;
    struct announce announce;
    bool announced; /* the list is complete, and was sent unless `unsent` */
    bool unsent;    /* the announcement could not be sent; the next heartbeat tries again */
    struct job listing;
    bool listed;   /* the listing worker has exited */
    bool relisted; /* it is the second one */
    struct jobs jobs;
    double begun_s, now_s;
    double announced_s;
    enum root_contact contact;
    double heard_s;     /* when rank 0's last message came; before that, when this rank began */
    double next_beat_s; /* when to send the next heartbeat */
    bool stopped;
    bool lost_ranks; /* from QUIT: some rank is lost */
    struct pollfd *fds;
    size_t fd_capacity;
};

/* An error says something about rank 0, not about this rank: it goes on as with a silent rank 0. */
static void rank_send_announcement(struct rank *rank)
{
    struct err why = {0};
    struct strbuf payload = {0};
    announce_encode(&rank->announce, &payload);
    rank->unsent = comm_send_payload(rank->comm, 0, MESSAGE_ANNOUNCE, &payload, &why) != 0;
    if (rank->unsent)
        log_debug("the list of GPUs cannot be sent: %s", why.text);
}

/* Sends a heartbeat, also to a rank 0 that is silent, so that rank 0 takes this rank back when it
 * continues. */
static void rank_send_beat(struct rank *rank)
{
    struct err ignored = {0};
    struct strbuf payload = {0};
    if (rank->now_s < rank->next_beat_s || rank->contact == ROOT_CONTACT_QUIT)
        return;
    rank->next_beat_s = rank->now_s + limit_beat_s(rank->comm->size);
    const struct doing doing = jobs_slowest(&rank->jobs, rank->now_s);
    doing_encode(&doing, &payload);
    comm_send_payload(rank->comm, 0, MESSAGE_BEAT, &payload, &ignored);
    if (rank->unsent)
        rank_send_announcement(rank);
}

struct rank *rank_create(struct comm *comm, const struct survey_options *options, double now_s)
{
    struct rank *rank = mem_array(1, sizeof *rank);
    char host[HOST_NAME_MAX_BYTES];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    rank->comm = comm;
    rank->options = options;
    rank->contact = ROOT_CONTACT_UNHEARD;
    rank->begun_s = rank->now_s = rank->heard_s = rank->next_beat_s = now_s;
    rank->jobs = (struct jobs){
        .comm = comm, .options = options, .announce = &rank->announce, .listing = &rank->listing};
    host_name(host);
    rank->announce.host = str_copy(host);
    rank->announce.boot_id = host_boot_id();
    if (options->simulate || options->replay) /* these GPUs compete for the CPUs */
        rank->announce.at_once = cpus < 1 ? 1 : (uint32_t)cpus;
    rank_send_beat(rank); /* rank 0 misses a rank sooner once it has heard it */
    /* If the worker cannot be started, that is announced. */
    job_start_listing(&rank->listing, comm, options, now_s);
    return rank;
}

/* Time limit of the listing worker, in seconds. At most the time limit for measuring a GPU, if the
 * user set one: the survey must end soon after that. */
static double listing_limit_s(const struct survey_options *options)
{
    double asked_s = options->time_limit_s;
    return asked_s > 0 && asked_s < LIMIT_LISTING_S ? asked_s : LIMIT_LISTING_S;
}

/* How a listing without a complete answer is announced. A bad input file is the user's error and
 * ends the survey. Any other failure concerns only this rank. */
static enum listing_status listing_failure(const struct survey_options *options,
                                           const struct job *job)
{
    const struct err *err = &job->outcome.err;
    if (!job->outcome.failed || !job->child.pid)
        return LISTING_FAILED; /* the worker sent no error, or could not be started */
    if (options->simulate || options->replay)
        return err->code == -ENOMEM ? LISTING_FAILED : LISTING_BAD_INPUT;
    if (err->code == -ENODEV || err->code == -ENOTSUP)
        return LISTING_NO_DEVICE;
    return LISTING_FAILED;
}

/* A worker that could not be started, has no backend, or had less time than a driver may need, says
 * nothing about the GPUs. */
static uint32_t listing_allocated(const struct job *job, const struct survey_options *options)
{
    const double least_s = 20;
    const struct allocated_environment environment = allocated_environment_read();
    bool conclusive = job->child.pid && job->outcome.err.code != -ENOTSUP &&
                      (job->child.end != CHILD_TIME_LIMIT || listing_limit_s(options) >= least_s);
    return conclusive ? rank_allocated_gpus(&environment, (uint32_t)job->outcome.listing.gpu_count)
                      : 0;
}

/* Announces the GPUs and nodes that the worker listed, or why listing failed. */
static void rank_announce(struct rank *rank)
{
    const struct survey_options *options = rank->options;
    struct announce *announce = &rank->announce, *listed = &rank->listing.outcome.listing;
    const struct ending ending = job_ending(&rank->listing, listing_limit_s(options));
    char *reason = NULL;
    if (!options->simulate && !options->replay)
        announce->gpus_allocated = listing_allocated(&rank->listing, options);
    announce->failed_as = outcome_judge(&rank->listing.outcome, &ending, &reason);
    if (announce->failed_as != GPU_OK) {
        announce->listing = listing_failure(options, &rank->listing);
        announce->err = rank->listing.outcome.err;
        if (!rank->listing.outcome.failed)
            err_set(&announce->err, -EIO, "listing the GPUs: %s", reason ? reason : "failed");
        free(reason);
    } else {
        announce->gpus = listed->gpus;
        announce->gpu_count = listed->gpu_count;
        announce->bare_nodes = listed->bare_nodes;
        announce->bare_count = listed->bare_count;
        announce->dead = listed->dead;
        announce->dead_count = listed->dead_count;
        memset(listed, 0, sizeof *listed);
        for (size_t i = 0; i < announce->gpu_count; i++)
            if (!announce->gpus[i].node)
                announce->gpus[i].node = str_copy(announce->host);
    }
    rank->announced = true;
    rank->announced_s = rank->now_s;
    rank_send_announcement(rank);
}

/* How long rank 0 may be silent. It reads no messages while it makes its report, which takes less
 * than two milliseconds per rank. */
static double root_silence_limit_s(const struct rank *rank)
{
    const double report_per_rank_s = 0.002;
    if (rank->contact == ROOT_CONTACT_UNHEARD)
        return rank->comm->place.start_timeout_s;
    return limit_silence_s(rank->comm->size) + (rank->jobs.assigned && jobs_done(&rank->jobs)
                                                    ? report_per_rank_s * rank->comm->size
                                                    : 0);
}

static double root_silent_s(const struct rank *rank)
{
    return rank->now_s - rank->heard_s;
}

/* Rank 0 may only be blocked by a file system and come back, so the rank waits for the same time
 * again. It does not if the time limit of one GPU is over, since the job must end soon after
 * that. */
static bool root_waited_for(const struct rank *rank)
{
    double limit_s = rank->jobs.assigned ? rank->jobs.time_limit_s : rank->options->time_limit_s;
    bool over = limit_s > 0 && rank->now_s - rank->begun_s > limit_s;
    return rank->stopped || over || rank->contact == ROOT_CONTACT_UNHEARD ||
           root_silent_s(rank) > 2 * root_silence_limit_s(rank);
}

/* On rank 0 there is nothing to watch: this rank is rank 0. */
static void rank_watch_root(struct rank *rank)
{
    if (!rank->comm->rank || root_silent_s(rank) <= root_silence_limit_s(rank))
        return;
    root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_FELL_SILENT);
    if (jobs_done(&rank->jobs) && root_waited_for(rank))
        root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_GAVE_UP);
}

/* True if the worker that listed ended without a list: a driver that fails is asked twice. Not
 * after a time-out: rank 0 does not wait that long. */
static bool listing_is_tried_again(const struct rank *rank)
{
    const struct job *job = &rank->listing;
    return !rank->announced && !rank->relisted && !rank->stopped && !job->outcome.done &&
           job->child.pid && !rank->options->simulate && !rank->options->replay &&
           job->outcome.err.code != -ENOTSUP && job->child.end != CHILD_TIME_LIMIT &&
           job->child.end != CHILD_INTERRUPTED;
}

/* Announces the list as soon as it is complete. The driver may take long to end the worker. */
static void rank_read_listing(struct rank *rank, double now_s)
{
    struct job *job = &rank->listing;
    if (rank->listed)
        return;
    rank->listed = job_is_over(job) || job_read(job, listing_limit_s(rank->options), now_s);
    if (rank->listed && listing_is_tried_again(rank)) {
        rank->relisted = true;
        job_fini(job);
        rank->listed = job_start_listing(job, rank->comm, rank->options, now_s) != 0;
    }
    if (rank->listed)
        job_log_end(job, "the list of GPUs");
    if ((rank->listed || job->outcome.done) && !rank->announced)
        rank_announce(rank);
}

void rank_step(struct rank *rank, double now_s)
{
    rank->now_s = now_s;
    rank_send_beat(rank);
    rank_read_listing(rank, now_s);
    jobs_step(&rank->jobs, now_s);
    rank_watch_root(rank);
}

static int rank_take_assignment(struct rank *rank, const struct frame *frame, struct err *err)
{
    struct assignment assignment = {0};
    int rc = assignment_decode(frame, &assignment, err);
    if (rc)
        return rc;
    rc = jobs_assign(&rank->jobs, &assignment, err);
    if (!assignment.count) /* no GPU to measure for the worker that listed */
        child_dismiss(&rank->listing.child);
    assignment_fini(&assignment);
    return rc;
}

static int rank_take_again(struct rank *rank, const struct frame *frame, struct err *err)
{
    struct again again = {0};
    int rc = again_decode(frame, &again, err);
    if (rc)
        return rc;
    rc = jobs_again(&rank->jobs, &again, err);
    again_fini(&again);
    return rc;
}

int rank_take(struct rank *rank, const struct comm_message *message, struct err *err)
{
    root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_HEARD);
    rank->heard_s = rank->now_s;
    switch (message->frame.type) {
    case MESSAGE_ASSIGN:
        return rank_take_assignment(rank, &message->frame, err);
    case MESSAGE_AGAIN:
        return rank_take_again(rank, &message->frame, err);
    case MESSAGE_STOP:
        rank_stop(rank, rank->now_s);
        return 0;
    case MESSAGE_BEAT:
        return 0;
    case MESSAGE_QUIT:
        root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_SAID_QUIT);
        return message_quit_decode(&message->frame, &rank->lost_ranks, err);
    default:
        return err_set(err, -EBADMSG, "unexpected message of type %u", message->frame.type);
    }
}

struct pollfd *rank_poll(struct rank *rank, size_t *out_count)
{
    size_t needed = (rank->jobs.running + 1) * CHILD_POLL_MAX;
    rank->fds = mem_grow(rank->fds, &rank->fd_capacity, needed, sizeof *rank->fds);
    size_t count = child_poll(&rank->listing.child, rank->fds);
    *out_count = count + jobs_poll(&rank->jobs, rank->fds + count);
    return rank->fds;
}

void rank_stop(struct rank *rank, double now_s)
{
    if (rank->stopped)
        return;
    rank->stopped = true;
    child_stop(&rank->listing.child, CHILD_INTERRUPTED, now_s);
    jobs_stop(&rank->jobs, now_s);
}

bool rank_may_leave(const struct rank *rank)
{
    return rank->contact == ROOT_CONTACT_QUIT || rank->contact == ROOT_CONTACT_GIVEN_UP;
}

void rank_wait_for_workers(struct rank *rank, struct clock_awake *clock)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    child_dismiss(&rank->listing.child);
    for (;;) {
        double now_s = clock_awake_tick(clock, clock_monotonic_s());
        bool exited = jobs_reap_workers(&rank->jobs, now_s);
        if (rank->announced)
            rank_read_listing(rank, now_s);
        if (exited && (rank->listed || !rank->announced))
            return;
        nanosleep(&pause, NULL);
    }
}

struct rank_end rank_end(const struct rank *rank)
{
    return (struct rank_end){
        .lost_rank_0 =
            rank->contact == ROOT_CONTACT_SILENT || rank->contact == ROOT_CONTACT_GIVEN_UP,
        .assigned = rank->jobs.assigned,
        .silent_s = root_silent_s(rank),
        .spool = rank->jobs.spooling.folder,
        .owner = rank->jobs.spooling.owner.path,
        .saw_loss = rank->contact != ROOT_CONTACT_QUIT || rank->lost_ranks,
        .listing_s = rank->announced ? rank->announced_s - rank->begun_s : 0,
    };
}

void rank_destroy(struct rank *rank)
{
    if (!rank)
        return;
    job_fini(&rank->listing);
    jobs_fini(&rank->jobs);
    announce_fini(&rank->announce);
    free(rank->fds);
    free(rank);
}
