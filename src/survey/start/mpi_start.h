/* Starts MPI, with a time limit. MPI_Init returns only when every rank has entered it: a rank that
 * died before would block all others for ever. */
#ifndef GPUMEMTOPO_SURVEY_START_MPI_START_H
#define GPUMEMTOPO_SURVEY_START_MPI_START_H

#include <stdbool.h>

#include "base/err.h"

/* Starts MPI. If that takes longer than patience_s, give_up is called in another thread and must
 * not return. This thread stays in MPI_Init, which keeps the connection to the launcher open.
 *
 * unfenced: other ranks may still be in MPI_Init when this one has left it, and a message would
 * kill them (Open MPI 4.1). Then this rank waits as long as its start took, and at least one
 * second. */
int mpi_start(int *argc, char ***argv, bool unfenced, double patience_s,
              void (*give_up)(void *user), void *user, struct err *err);

#endif
