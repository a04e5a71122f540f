/* A step of Slurm that runs a survey: what it lacks, and the way to the inventory if it ends early.
 *
 * With MPI, Slurm's PMIx plug-in ends a step when a task is killed. The results are in the spool
 * then. Without MPI the other tasks go on. */
#ifndef GPUMEMTOPO_SURVEY_START_SLURM_H
#define GPUMEMTOPO_SURVEY_START_SLURM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "survey/comm/comm.h"
#include "survey/config.h"
#include "survey/options.h"

/* The flag that this step lacks if its tasks see no GPU, as a sentence; NULL: there is no step, or
 * Slurm has given it GPUs. get_variable: getenv, or a table in tests. */
const char *slurm_missing_gpus(char *(*get_variable)(const char *name));

/* The command that makes the inventory from the spool; "": there is no spool. output: as the user
 * gave it. */
void slurm_way_back(const char *output, const char *spool, struct strbuf *out_text);

/* On task 0, before MPI starts: writes a plan into the spool in which every rank is lost. Rank 0
 * replaces it when the GPUs are assigned. Without it, a step that Slurm ends in MPI_Init or while
 * the GPUs are listed would leave no trace of its ranks. Failures are ignored: the survey itself
 * reports them. */
void slurm_note_write(const struct comm_place *place, const struct survey_options *options,
                      const struct survey_config *config, int nodes, int argc, char *const *argv);

/* Releases the lock on the spool: the survey itself takes it now. */
void slurm_note_release(void);

/* The survey has ended. Removes the note if it is still there, and the spool if it is empty. */
void slurm_note_remove(void);

#endif
