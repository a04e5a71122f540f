/* Ranks that come together without MPI. MPI_Init ends only when all ranks are in it: one that died
 * before would cost all others. So a rank that waited there for long starts over, as the same
 * process, and goes to a folder whose name every rank knows by itself; those that come there survey
 * without the others. */
#ifndef GPUMEMTOPO_SURVEY_MEETING_H
#define GPUMEMTOPO_SURVEY_MEETING_H

#include <stdbool.h>

#include "base/err.h"
#include "survey/comm.h"
#include "survey/launcher.h"
#include "survey/options.h"

/* How long MPI has to start, in seconds. */
unsigned meeting_patience_s(const struct launcher *launcher, const struct survey_options *options);

/* Before MPI starts: gets everything ready for meeting_start_over. argv must stay valid. */
void meeting_prepare(const struct launcher *launcher, char **argv);

/* In a signal handler, too: the process starts over and will be called. Returns only where that is
 * not possible. */
void meeting_start_over(void);

/* Whether this rank should come instead of starting MPI: it has started over, or the others already
 * meet. */
bool meeting_called(const struct launcher *launcher, const struct survey_options *options);

/* MPI has started, took_s after this rank wanted it: where others may have stopped waiting they are
 * told not to meet. False: they were faster, and this rank has to come as well. */
bool meeting_call_off(const struct launcher *launcher, const struct survey_options *options,
                      double took_s);

/* Whether the output was written since the launcher began. MPI may start for a rank that comes when
 * the others have met without it, reported and left. */
bool meeting_reported(const struct survey_options *options);

/* At the end of a survey with MPI: removes what that left. */
void meeting_tidy(void);

/* Comes; hurried: as in comm_folder.h. -ESTALE: the others are done already, or have MPI. Freed
 * with comm_destroy. */
int meeting_join(const struct launcher *launcher, const struct survey_options *options,
                 bool (*hurried)(void), struct comm **out_comm, struct err *err);

/* At its end, for all but the root: waits a little for the root to leave first. mpirun without
 * --enable-recovery kills the others when the first one leaves that had begun with MPI. */
void meeting_outlast_root(const struct launcher *launcher, const struct survey_options *options);

#endif
