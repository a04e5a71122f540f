/* The GPUs that a rank was assigned. Each has a worker, whose result is spooled and sent. */
#ifndef GPUMEMTOPO_SURVEY_RANK_JOBS_H
#define GPUMEMTOPO_SURVEY_RANK_JOBS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/comm/message.h"
#include "survey/rank/job.h"
#include "survey/rank/spooling.h"

struct gpu_job;

/* The rank sets the first four before anything is assigned. */
struct jobs {
    struct comm *comm;
    const struct survey_options *options;
    const struct announce *announce; /* lists the GPUs */
    struct job *listing; /* the job that listed them; its worker measures the first GPU */
    struct spooling spooling;
    bool assigned, stopped;
    double time_limit_s;
    double stagger_s;      /* of loads */
    uint64_t region_bytes; /* of the memory test */
    struct gpu_job *items;
    size_t count, capacity;
    size_t next;    /* index of the first GPU that was not started */
    size_t running; /* workers alive */
};

/* -EBADMSG: called twice, or a GPU was not announced; -ENOMEM. */
int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err);

/* Adds a second measurement of a GPU; takes over again->probes. -EBADMSG: the GPU was not assigned;
 * -ENOMEM. */
int jobs_again(struct jobs *jobs, struct again *again, struct err *err);

/* Reads from the workers, reports results that are complete or whose worker is over, starts the
 * next workers. */
int jobs_step(struct jobs *jobs, double now_s, struct err *err);

/* Fills in up to CHILD_POLL_MAX descriptors for each running worker; returns how many. */
size_t jobs_poll(const struct jobs *jobs, struct pollfd *out_fds);

/* Kills all workers. Their GPUs, and those not begun, are reported as interrupted. */
void jobs_stop(struct jobs *jobs, double now_s);

/* Reads from the workers whose results are reported. True when they have exited. */
bool jobs_settle(struct jobs *jobs, double now_s);

/* True when every assigned GPU is measured or has failed, its result is spooled, and its worker has
 * exited. */
bool jobs_done(const struct jobs *jobs);

/* Describes the worker that has been running longest. */
struct doing jobs_slowest(const struct jobs *jobs, double now_s);

void jobs_fini(struct jobs *jobs); /* kills workers that still run */

#endif
