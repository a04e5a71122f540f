/* The GPUs that a rank was assigned: each has a worker, whose result is spooled and sent. */
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

/* The upper ones are set by the rank, before anything is assigned. */
struct jobs {
    struct comm *comm;
    const struct survey_options *options;
    const struct announce *announce; /* whose GPUs they are */
    struct job *listing;             /* that listed them; its worker measures the first */
    struct spooling spooling;
    bool assigned, stopped;
    double time_limit_s;
    struct gpu_job *items;
    size_t count;
    size_t next;    /* first that was not started */
    size_t running; /* workers alive */
};

/* -EBADMSG: for the second time, or a GPU that was not announced; -ENOMEM. */
int jobs_assign(struct jobs *jobs, const struct assignment *assignment, struct err *err);

/* Hears the workers, reports those that have told all or are over, starts the next ones. */
int jobs_step(struct jobs *jobs, double now_s, struct err *err);

/* Descriptors to poll, up to CHILD_POLL_MAX for each that runs; how many. */
size_t jobs_poll(const struct jobs *jobs, struct pollfd *out_fds);

/* Ends all workers; their GPUs, and those not begun, are reported as interrupted. */
void jobs_stop(struct jobs *jobs, double now_s);

/* Hears the workers that have told all; true when they have left. */
bool jobs_settle(struct jobs *jobs, double now_s);

/* All that was assigned is measured or has failed, and is spooled, and the workers have left. */
bool jobs_done(const struct jobs *jobs);

/* The worker that runs longest. */
struct doing jobs_slowest(const struct jobs *jobs, double now_s);

void jobs_fini(struct jobs *jobs); /* ends what still runs */

#endif
