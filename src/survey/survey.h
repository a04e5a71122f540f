/* One rank's run of the survey, from listing to the inventory. */
#ifndef GPUMEMTOPO_SURVEY_SURVEY_H
#define GPUMEMTOPO_SURVEY_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "survey/comm.h"
#include "survey/options.h"

enum survey_exit {
    SURVEY_EXIT_OK,
    SURVEY_EXIT_NO_REPORT,
    SURVEY_EXIT_BAD_INPUT,
    SURVEY_EXIT_OUTLIERS,
    SURVEY_EXIT_INCOMPLETE,
};

struct survey_end {
    enum survey_exit code; /* SURVEY_EXIT_OK on all ranks but 0 */
    int ranks;
    size_t lost_ranks;  /* on the others than rank 0: whether there are any, or quiet ones */
    bool late;          /* rank 0 alone: the others have reported without it, and are gone */
    size_t quiet_ranks; /* may be gone as well: MPI_Finalize would wait for them */
};

/* Runs to the end: rank 0 writes the inventory and speaks to the user, the others work for it and
 * are silent. argv: the command line for the inventory. SIGINT, SIGTERM and SIGHUP end it early. */
struct survey_end survey_run(struct comm *comm, const struct survey_options *options, int argc,
                             char *const *argv);

/* survey_run does it too; who has to wait before that does it first, and looks whether one came. */
void survey_catch_signals(void);
bool survey_interrupted(void);

#endif
