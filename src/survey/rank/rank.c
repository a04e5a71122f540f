/* The part of the survey that every rank does. */
#include "survey/rank/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/rank/job.h"
#include "survey/rank/jobs.h"
#include "survey/rank/listing.h"
#include "survey/rank/root_contact.h"

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
static int send_announcement(struct rank *rank, struct err *err)
{
    struct err why = {0};
    struct strbuf payload = {0};
    announce_encode(&rank->announce, &payload);
    int rc = comm_send_payload(rank->comm, 0, MESSAGE_ANNOUNCE, &payload, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    if (rc)
        log_debug("the list of GPUs cannot be sent: %s", why.text);
    rank->unsent = rc != 0;
    return 0;
}

/* Sends a heartbeat, also to a rank 0 that is silent, so that rank 0 takes this rank back when it
 * continues. */
static int beat(struct rank *rank, struct err *err)
{
    struct err ignored = {0};
    struct strbuf payload = {0};
    if (rank->now_s < rank->next_beat_s || rank->contact == ROOT_CONTACT_QUIT)
        return 0;
    rank->next_beat_s = rank->now_s + limit_beat_s(rank->comm->size);
    const struct doing doing = jobs_slowest(&rank->jobs, rank->now_s);
    doing_encode(&doing, &payload);
    comm_send_payload(rank->comm, 0, MESSAGE_BEAT, &payload, &ignored);
    return rank->unsent ? send_announcement(rank, err) : 0;
}

int rank_create(struct comm *comm, const struct survey_options *options, double now_s,
                struct rank **out_rank, struct err *err)
{
    struct rank *rank = mem_array(1, sizeof *rank);
    if (!rank)
        return err_no_memory(err);
    rank->comm = comm;
    rank->options = options;
    rank->contact = ROOT_CONTACT_UNHEARD;
    rank->begun_s = rank->now_s = rank->heard_s = rank->next_beat_s = now_s;
    rank->jobs = (struct jobs){
        .comm = comm, .options = options, .announce = &rank->announce, .listing = &rank->listing};
    int rc = listing_introduce(options, &rank->announce, err);
    if (!rc)
        rc = beat(rank, err); /* rank 0 misses a rank sooner once it has heard it */
    if (rc) {
        rank_destroy(rank);
        return rc;
    }
    /* If the worker cannot be started, that is announced. */
    job_start(&rank->listing, comm, options, WORKER_LIST, NULL, now_s);
    *out_rank = rank;
    return 0;
}

static int announce(struct rank *rank, struct err *err)
{
    int rc = listing_adopt(&rank->listing, rank->options, &rank->announce, err);
    if (rc)
        return rc;
    rank->announced = true;
    rank->announced_s = rank->now_s;
    return send_announcement(rank, err);
}

static bool told_all(const struct rank *rank)
{
    return rank->jobs.assigned && jobs_done(&rank->jobs);
}

/* How long rank 0 may be silent. It reads no messages while it makes its report, which takes less
 * than two milliseconds per rank. */
static double root_silence_limit_s(const struct rank *rank)
{
    const double report_per_rank_s = 0.002;
    if (rank->contact == ROOT_CONTACT_UNHEARD)
        return rank->comm->place.start_timeout_s;
    return limit_silence_s(rank->comm->size) +
           (told_all(rank) ? report_per_rank_s * rank->comm->size : 0);
}

static double root_silent_s(const struct rank *rank)
{
    return rank->now_s - rank->heard_s;
}

/* Rank 0 may only be blocked by a file system and come back, so the rank waits for the same time
 * again. It does not if the time limit of one GPU is over, since the job must end soon after
 * that. */
static bool waited_enough(const struct rank *rank)
{
    double limit_s = rank->jobs.assigned ? rank->jobs.time_limit_s : rank->options->time_limit_s;
    bool over = limit_s > 0 && rank->now_s - rank->begun_s > limit_s;
    return rank->stopped || over || rank->contact == ROOT_CONTACT_UNHEARD ||
           root_silent_s(rank) > 2 * root_silence_limit_s(rank);
}

/* On rank 0 there is nothing to watch: this rank is rank 0. */
static void watch_root(struct rank *rank)
{
    if (!rank->comm->rank || root_silent_s(rank) <= root_silence_limit_s(rank))
        return;
    root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_FELL_SILENT);
    if (jobs_done(&rank->jobs) && waited_enough(rank))
        root_contact_apply(&rank->contact, ROOT_CONTACT_EVENT_GAVE_UP);
}

/* Announces the list as soon as it is complete. The driver may take long to end the worker. */
static int hear_listing(struct rank *rank, double now_s, struct err *err)
{
    struct job *job = &rank->listing;
    if (rank->listed)
        return 0;
    rank->listed = job_is_over(job) || job_hear(job, listing_limit_s(rank->options), now_s);
    if (rank->listed && !rank->announced && !rank->relisted && !rank->stopped &&
        listing_is_tried_again(job, rank->options)) {
        rank->relisted = true;
        job_fini(job);
        rank->listed = job_start(job, rank->comm, rank->options, WORKER_LIST, NULL, now_s) != 0;
    }
    if (rank->listed)
        job_remark(job, "the list of GPUs");
    bool known = rank->listed || job->outcome.done;
    return known && !rank->announced ? announce(rank, err) : 0;
}

int rank_step(struct rank *rank, double now_s, struct err *err)
{
    rank->now_s = now_s;
    int rc = beat(rank, err);
    if (!rc)
        rc = hear_listing(rank, now_s, err);
    if (!rc)
        rc = jobs_step(&rank->jobs, now_s, err);
    watch_root(rank);
    return rc;
}

static int take_assignment(struct rank *rank, const struct frame *frame, struct err *err)
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

static int take_again(struct rank *rank, const struct frame *frame, struct err *err)
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
        return take_assignment(rank, &message->frame, err);
    case MESSAGE_AGAIN:
        return take_again(rank, &message->frame, err);
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
    struct pollfd *grown = mem_grow(rank->fds, &rank->fd_capacity, needed, sizeof *rank->fds);
    if (!grown)
        return NULL;
    rank->fds = grown;
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

void rank_settle(struct rank *rank, struct clock_awake *clock)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct err ignored = {0};
    child_dismiss(&rank->listing.child);
    for (;;) {
        double now_s = clock_awake_tick(clock, clock_monotonic_s());
        bool settled = jobs_settle(&rank->jobs, now_s);
        if (rank->announced)
            hear_listing(rank, now_s, &ignored);
        if (settled && (rank->listed || !rank->announced))
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
