/* One worker of a rank, whether it lists or measures: started, heard, held to its limit. */
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
    double done_s; /* when the end of its answer was first seen; 0 not yet */
};

/* uuid: WORKER_MEASURE. An error of the system stays in the outcome, too, as if the worker had said
 * it: such a job is over. */
int job_start(struct job *job, const struct comm *comm, const struct survey_options *options,
              enum worker_task task, const char *uuid, double now_s);

/* Takes over the worker of a listing that has told all, to measure a GPU: the driver is initialised
 * in it. False when it does not wait for that; then it is dismissed. */
bool job_take_over(struct job *job, struct job *listing, const struct comm *comm,
                   const struct survey_options *options, const char *uuid, double now_s);

/* Hears the worker and holds it to its limit. True when it is over. */
bool job_hear(struct job *job, double limit_s, double now_s);

/* How it ended; valid as long as the job. */
struct ending job_ending(const struct job *job, double limit_s);

/* Says for --verbose what a worker that had told all did then. */
void job_remark(const struct job *job, const char *what);

void job_fini(struct job *job); /* ends what still runs */

#endif
