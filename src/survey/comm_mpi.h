/* Messages between ranks over MPI: the only file of the project that calls it. */
#ifndef GPUMEMTOPO_SURVEY_COMM_MPI_H
#define GPUMEMTOPO_SURVEY_COMM_MPI_H

#include <stddef.h>

#include "base/err.h"
#include "survey/comm.h"

/* Initialises MPI. Blocks as long as the launcher makes it: call it under a watchdog. */
int comm_mpi_start(int *argc, char ***argv, struct err *err);

/* Ends MPI; may wait for ranks that are no more: call it under a watchdog. */
int comm_mpi_stop(struct err *err);

/* The transport over all ranks. What is sent in the first quiet_s seconds leaves after them. Freed
 * with comm_destroy, before comm_mpi_stop. */
int comm_mpi_world(double quiet_s, struct comm **out_comm, struct err *err);

/* The library's own version text for --version; "" where unknown. Works before MPI is up. */
const char *comm_mpi_version(char *buffer, size_t buffer_size);

#endif
