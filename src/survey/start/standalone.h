/* A survey without a rank 0 that gathers the results: because of --no-mpi, because MPI did not
 * start, or because rank 0 is lost. Each process spools its results, and the last one makes the
 * inventory from the spool. */
#ifndef GPUMEMTOPO_SURVEY_START_STANDALONE_H
#define GPUMEMTOPO_SURVEY_START_STANDALONE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/options.h"
#include "survey/survey.h"

/* Measures the GPUs that no other process of this machine has claimed, and spools the results. Then
 * waits until all other processes have begun, for start_timeout_s at most, and until those that
 * measure have ended. Sets `code` and `reported` on the process that made the inventory, `code` on
 * one that failed. */
struct survey_end standalone_run(const struct comm_place *place,
                                 const struct survey_options *options, int argc, char *const *argv,
                                 double start_timeout_s);

/* A process that has finished its part and has closed its own lock on the spool. */
struct standalone_part {
    const char *folder; /* of the spool */
    const char *owner;  /* its lock file */
    int rank;
    const struct survey_options *options;
    bool rank_0_lost; /* rank 0 may have begun to write to a pipe or device */
    size_t tasks;     /* without MPI: wait until the spool has this many plans; 0: do not wait */
    const char *node_ranks; /* of comm_place */
    bool local;             /* the folder is on a file system of this node */
    bool others_due;        /* tasks of other nodes must have begun by now */
};

enum standalone_state {
    STANDALONE_OTHERS_RUN,   /* other ranks hold locks */
    STANDALONE_RANK_0_HANGS, /* only rank 0 holds a lock */
    STANDALONE_TOO_EARLY,    /* no process measures, but some tasks have not begun */
    STANDALONE_DONE,         /* another process has made the inventory */
    STANDALONE_MADE,         /* this process has made it, and printed the summary */
};

/* Makes the inventory from the spool if this process is the last one; tries once. *out_code: set
 * with STANDALONE_MADE, and with STANDALONE_DONE if ranks are lost. A negative errno if the
 * inventory could not be made; the spooled results are kept. */
int standalone_merge_if_last(const struct standalone_part *part, enum survey_exit *out_code,
                             struct err *err);

#endif
