/* One rank's run of the survey, from listing to the inventory. */
#ifndef GPUMEMTOPO_SURVEY_SURVEY_H
#define GPUMEMTOPO_SURVEY_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "survey/comm/comm.h"
#include "survey/exit_code.h"
#include "survey/options.h"

struct survey_end {
    enum survey_exit code; /* of a rank that does not report: OK, unless it failed without MPI */
    bool reported;         /* this process made the inventory, or failed to as the last */
    bool lost_ranks;       /* some are lost, or silent: MPI_Finalize would wait for them */
    /* Other ranks than 0 that lost it, and processes without MPI: */
    bool orphaned;    /* rank 0 fell silent; */
    double unheard_s; /* so long ago */
    bool assigned;    /* this process was told which GPUs to measure */
    double limit_s;   /* how long the measuring of a GPU may take */
    char *spool;      /* where the results are; NULL: nowhere. Freed with survey_end_fini */
    char *owner;      /* the file that is locked there */
};
void survey_end_fini(struct survey_end *end);

/* Runs to the end: rank 0 writes the inventory and speaks to the user, the others work for it and
 * are silent. A process apart (comm_is_apart) spools only. argv: the command line for the
 * inventory. SIGINT, SIGTERM and SIGHUP end it early. */
struct survey_end survey_run(struct comm *comm, const struct survey_options *options, int argc,
                             char *const *argv);

/* Such a signal came. */
bool survey_interrupted(void);

#endif
