/* One rank's run of the survey, from listing to the inventory. */
#ifndef GPUMEMTOPO_SURVEY_SURVEY_H
#define GPUMEMTOPO_SURVEY_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "survey/comm/comm.h"
#include "survey/options.h"
#include "survey/start/exit_file.h"

struct survey_end {
    enum survey_exit code; /* OK on a rank that does not report, unless it failed without MPI */
    bool reported;         /* this process made the inventory, or was the last one and failed to */
    bool lost_ranks;       /* some ranks are lost or silent: MPI_Finalize would wait for them */
    enum survey_exit others_code; /* of another process that made the inventory; OK: unknown */
    /* Set on ranks that lost rank 0, and on processes without MPI: */
    bool lost_rank_0;       /* rank 0 fell silent */
    double rank_0_silent_s; /* seconds since rank 0 was last heard */
    bool assigned;          /* this process knows which GPUs to measure */
    double limit_s;         /* time limit for measuring one GPU */
    char *spool;            /* spool folder; NULL: none. Freed with survey_end_fini */
    char *owner;            /* the lock file there */
};
void survey_end_fini(struct survey_end *end);

/* Runs the whole survey. Rank 0 writes the inventory and prints messages; the other ranks work for
 * it and print nothing. A process without MPI (comm_is_standalone) only spools. argv: the command
 * line, for the inventory. SIGINT, SIGTERM and SIGHUP end the survey early. */
struct survey_end survey_run(struct comm *comm, const struct survey_options *options, int argc,
                             char *const *argv);

/* True if one of these signals came. */
bool survey_interrupted(void);

#endif
