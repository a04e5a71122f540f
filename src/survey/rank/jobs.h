/* The jobs of a rank. A job is one worker, which lists the GPUs or measures one, and its time
 * limit. Each GPU that the rank was assigned has one, whose result is spooled and sent. */
#ifndef GPUMEMTOPO_SURVEY_RANK_JOBS_H
#define GPUMEMTOPO_SURVEY_RANK_JOBS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/comm/message.h"
#include "survey/options.h"
#include "survey/rank/child.h"
#include "survey/rank/outcome.h"
#include "survey/rank/spooling.h"
#include "survey/worker.h"

/* Zero-initialised: never started. */
struct job {
    enum worker_task task;
    struct child child;
    struct outcome outcome;
    struct err garbage;
    double done_s; /* when the end of its answer was first seen; 0: not yet */
};

/* Starts a worker that lists the GPUs. A system error is also stored in the outcome, as if the
 * worker had sent it; the job is over then. */
int job_start_listing(struct job *job, const struct comm *comm,
                      const struct survey_options *options, double now_s);

/* True if no worker runs for this job: it has ended, or could not be started. */
bool job_is_over(const struct job *job);

/* Reads from the worker and enforces its time limit. Returns job_is_over. */
bool job_read(struct job *job, double limit_s, double now_s);

/* How the worker ended; valid as long as the job. */
struct ending job_ending(const struct job *job, double limit_s);

/* For --verbose: logs what a worker did after its complete answer. */
void job_log_end(const struct job *job, const char *what);

void job_fini(struct job *job); /* kills a worker that still runs */

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

/* -EBADMSG: called twice, or a GPU was not announced. */
int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err);

/* Adds a second measurement of a GPU; takes over again->probes. -EBADMSG: the GPU was not
 * assigned. */
int jobs_again(struct jobs *jobs, struct again *again, struct err *err);

/* Reads from the workers, reports results that are complete or whose worker is over, starts the
 * next workers. */
void jobs_step(struct jobs *jobs, double now_s);

/* Fills in up to CHILD_POLL_MAX descriptors for each running worker; returns how many. */
size_t jobs_poll(const struct jobs *jobs, struct pollfd *out_fds);

/* Kills all workers. Their GPUs, and those not begun, are reported as interrupted. */
void jobs_stop(struct jobs *jobs, double now_s);

/* Reads from the workers whose results are reported. True when they have exited. */
bool jobs_reap_workers(struct jobs *jobs, double now_s);

/* True when every assigned GPU is measured or has failed, its result is spooled, and its worker has
 * exited. */
bool jobs_done(const struct jobs *jobs);

/* Describes the worker that has been running longest. */
struct doing jobs_slowest(const struct jobs *jobs, double now_s);

void jobs_fini(struct jobs *jobs); /* kills workers that still run */

#endif
