/* Messages between ranks over MPI. Only comm_mpi.c calls MPI. */
#ifndef GPUMEMTOPO_SURVEY_COMM_COMM_MPI_H
#define GPUMEMTOPO_SURVEY_COMM_COMM_MPI_H

#include <stddef.h>

#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/start/launcher.h"

/* Initialises MPI. Blocks until every rank has called it. */
int comm_mpi_start(int *argc, char ***argv, struct err *err);

/* Ends MPI. May wait for ranks that are gone: set an alarm before the call. */
int comm_mpi_stop(struct err *err);

/* The transport over all ranks. Freed with comm_destroy, before comm_mpi_stop. */
int comm_mpi_world(const struct comm_place *place, struct comm **out_comm, struct err *err);

/* How the MPI of this build finds the other ranks. */
enum launcher_pmi comm_mpi_pmi(void);

/* The MPI library's version text for --version; "" if unknown. Works before MPI is up. */
const char *comm_mpi_version(char *buffer, size_t buffer_size);

#endif
