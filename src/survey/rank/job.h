/* One worker of a rank, which lists or measures, and its time limit. */
#ifndef GPUMEMTOPO_SURVEY_RANK_JOB_H
#define GPUMEMTOPO_SURVEY_RANK_JOB_H

#include <stdbool.h>

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/options.h"
#include "survey/rank/child.h"
#include "survey/rank/outcome.h"
#include "survey/worker/request.h"

/* Zero-initialised: never started. */
struct job {
    enum worker_task task;
    struct child child;
    struct outcome outcome;
    struct err garbage;
    double done_s; /* when the end of its answer was first seen; 0: not yet */
};

/* What a worker measures. probes: NULL for those of the options. */
struct job_target {
    const char *uuid;
    const char *probes;
    uint32_t session, attempt; /* of device_source */
    double limit_s, stagger_s; /* of the worker's request */
    uint64_t region_bytes;     /* likewise */
};

/* target: only for WORKER_MEASURE. A system error is also stored in the outcome, as if the worker
 * had sent it; the job is over then. */
int job_start(struct job *job, const struct comm *comm, const struct survey_options *options,
              enum worker_task task, const struct job_target *target, double now_s);

/* Lets the worker that has listed the GPUs measure one: its driver is initialised already. False if
 * that worker does not wait for a request; it is dismissed then. */
bool job_take_over(struct job *job, struct job *listing, const struct comm *comm,
                   const struct survey_options *options, const struct job_target *target,
                   double now_s);

/* True if no worker runs for this job: it has ended, or could not be started. */
bool job_is_over(const struct job *job);

/* Reads from the worker and enforces its time limit. Returns job_is_over. */
bool job_hear(struct job *job, double limit_s, double now_s);

/* How the worker ended; valid as long as the job. */
struct ending job_ending(const struct job *job, double limit_s);

/* For --verbose: logs what a worker did after its complete answer. */
void job_remark(const struct job *job, const char *what);

void job_fini(struct job *job); /* kills a worker that still runs */

#endif
