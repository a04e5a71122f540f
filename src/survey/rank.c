/* A rank's own part of the survey. */
#include "survey/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "survey/bond.h"
#include "survey/job.h"
#include "survey/jobs.h"
#include "survey/listing.h"
#include "survey/message.h"

struct rank {
    struct comm *comm;
    const struct survey_options *options;
    uint64_t begun_ms; /* since 1970 */
    struct announce announce;
    bool announced;
    struct job listing;
    bool listed; /* its worker has left */
    struct jobs jobs;
    struct bond bond;
    bool stopped, quit;
    struct quit dismissal;
    struct pollfd *fds;
    size_t fd_capacity;
};

int rank_create(struct comm *comm, const struct survey_options *options, struct rank **out_rank,
                struct err *err)
{
    double now_s = clock_monotonic_s();
    struct rank *rank = mem_array(1, sizeof *rank);
    if (!rank)
        return err_no_memory(err);
    rank->begun_ms = clock_utc_ms();
    rank->comm = comm;
    rank->options = options;
    rank->bond = (struct bond){.leads = comm_leads(comm), .ranks = comm->size};
    rank->jobs = (struct jobs){.comm = comm, .options = options, .announce = &rank->announce};
    int rc = listing_introduce(options, &rank->announce, err);
    if (rc) {
        rank_destroy(rank);
        return rc;
    }
    /* Without a worker there is nothing to list: that is announced. */
    job_start(&rank->listing, comm, options, WORKER_LIST, NULL, now_s);
    *out_rank = rank;
    return 0;
}

static int announce(struct rank *rank, struct err *err)
{
    struct strbuf payload = {0};
    int rc = listing_adopt(&rank->listing, rank->options, &rank->announce, err);
    if (rc)
        return rc;
    announce_encode(&rank->announce, &payload);
    rank->announced = true;
    return comm_send_payload(rank->comm, rank->comm->root, MESSAGE_ANNOUNCE, &payload, err);
}

static bool told_all(const struct rank *rank)
{
    return rank->jobs.assigned && !jobs_unacknowledged(&rank->jobs);
}

static bool orphaned(const struct rank *rank)
{
    return !rank->quit && bond_orphaned(&rank->bond, told_all(rank));
}

static bool given_up(const struct rank *rank)
{
    double limit_s = rank->jobs.assigned ? rank->jobs.time_limit_s : rank->options->time_limit_s;
    return orphaned(rank) && (rank->stopped || bond_given_up(&rank->bond, told_all(rank), limit_s));
}

static void beat(struct rank *rank, double now_s)
{
    struct err ignored = {0};
    struct strbuf payload = {0};
    if (!bond_tick(&rank->bond, now_s) || rank->quit)
        return;
    const struct doing doing = jobs_slowest(&rank->jobs, now_s);
    doing_encode(&doing, &payload);
    comm_send_payload(rank->comm, rank->comm->root, MESSAGE_BEAT, &payload, &ignored);
}

/* The list is announced when it is there; the driver may take its time to let go of the worker. */
static int hear_listing(struct rank *rank, double now_s, struct err *err)
{
    struct job *job = &rank->listing;
    if (rank->listed)
        return 0;
    rank->listed = job->child.over || job_hear(job, listing_limit_s(rank->options), now_s);
    if (rank->listed)
        job_remark(job, "the list of GPUs");
    bool known = rank->listed || job->outcome.done;
    return known && !rank->announced ? announce(rank, err) : 0;
}

int rank_step(struct rank *rank, double now_s, struct err *err)
{
    beat(rank, now_s);
    int rc = hear_listing(rank, now_s, err);
    if (!rc)
        rc = jobs_step(&rank->jobs, now_s, err);
    /* To a rank 0 that is not heard nothing large is sent: it stays in memory until it is taken. */
    if (!rc && !orphaned(rank))
        rc = jobs_resend(&rank->jobs, now_s, err);
    return rc;
}

static int take_assignment(struct rank *rank, const struct frame *frame, struct err *err)
{
    struct assignment assignment = {0};
    int rc = assignment_decode(frame, &assignment, err);
    if (rc)
        return rc;
    rc = jobs_assign(&rank->jobs, &assignment, err);
    assignment_fini(&assignment);
    return rc;
}

/* It may be the second one, of a result that was sent twice. */
static int take_ack(struct rank *rank, const struct frame *frame, struct err *err)
{
    uint32_t position = 0;
    int rc = ack_decode(frame, &position, err);
    if (!rc)
        jobs_acknowledge(&rank->jobs, position);
    return rc;
}

int rank_take(struct rank *rank, const struct comm_message *message, struct err *err)
{
    bond_hear(&rank->bond);
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
    return rank->quit || (given_up(rank) && jobs_done(&rank->jobs));
}

void rank_settle(struct rank *rank)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct err ignored = {0};
    for (;;) {
        double now_s = clock_monotonic_s();
        bool settled = jobs_settle(&rank->jobs, now_s);
        if (rank->announced)
            hear_listing(rank, now_s, &ignored);
        if (settled && (rank->listed || !rank->announced))
            return;
        nanosleep(&pause, NULL);
    }
}

/* Nothing was assigned and nothing will be: the GPUs are told all the same. Rank 0 may have got as
 * far as to assign one of them to another rank that sees it: what that one measured stays. */
void rank_abandon(struct rank *rank)
{
    if (rank->quit || rank->jobs.assigned)
        return;
    char reason[80];
    snprintf(reason, sizeof reason, "rank %d was lost before it assigned the GPUs",
             rank->comm->root);
    char *folder = spooling_folder(rank->options, rank->options->output);
    if (folder && spooling_join(&rank->jobs.spooling, rank->options, folder, "") == 0)
        mkdir(folder, 0777);
    for (size_t i = 0; folder && i < rank->announce.gpu_count; i++) {
        struct gpu_result gpu = rank->announce.gpus[i]; /* a view */
        gpu.rank = rank->comm->rank;
        gpu.status = GPU_LOST;
        gpu.reason = reason;
        spooling_lost(&rank->jobs.spooling, &gpu, rank->begun_ms);
    }
    free(folder);
}

bool rank_orphaned(const struct rank *rank, double *out_unheard_s, const char **out_spool)
{
    *out_unheard_s = bond_unheard_s(&rank->bond);
    *out_spool = rank->jobs.spooling.folder;
    return orphaned(rank);
}

bool rank_saw_loss(const struct rank *rank)
{
    return !rank->quit || rank->dismissal.lost_ranks;
}

void rank_unspool(const struct rank *rank)
{
    if (!rank->options->spool && (comm_leads(rank->comm) || rank->dismissal.spool_done))
        jobs_unspool(&rank->jobs);
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
