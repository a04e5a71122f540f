/* A survey whose ranks do not communicate, because of --no-mpi or because MPI did not start. Each
 * rank measures the GPUs that no other process of its machine has claimed, and spools the results.
 * The last one makes the inventory. */
#ifndef GPUMEMTOPO_SURVEY_START_NO_MPI_H
#define GPUMEMTOPO_SURVEY_START_NO_MPI_H

#include "survey/comm/comm.h"
#include "survey/options.h"
#include "survey/survey.h"

/* Runs this process's part. Then waits until all others have begun, for patience_s at most, and
 * until those that measure have ended. Sets `code` and `reported` on the process that made the
 * inventory, `code` on one that failed. */
struct survey_end no_mpi_run(const struct comm_place *place, const struct survey_options *options,
                             int argc, char *const *argv, double patience_s);

#endif
