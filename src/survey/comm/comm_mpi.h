/* Messages between ranks over MPI, which a plug-in calls (mpi_plugin.h). */
#ifndef GPUMEMTOPO_SURVEY_COMM_COMM_MPI_H
#define GPUMEMTOPO_SURVEY_COMM_COMM_MPI_H

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/comm/mpi_plugin.h"

/* Initialises MPI. Blocks until every rank has called it. */
int comm_mpi_start(const struct mpi_plugin *mpi, int *argc, char ***argv, struct err *err);

/* Ends MPI. May wait for ranks that are gone: set an alarm before the call. */
int comm_mpi_stop(const struct mpi_plugin *mpi, struct err *err);

/* The transport over all ranks. Freed with comm_destroy, before comm_mpi_stop. */
int comm_mpi_world(const struct mpi_plugin *mpi, const struct comm_place *place,
                   struct comm **out_comm, struct err *err);

#endif
