/* The start of MPI, with patience. MPI_Init returns only when every rank has entered it: one that
 * died before would hold all others for ever. */
#ifndef GPUMEMTOPO_SURVEY_START_MPI_START_H
#define GPUMEMTOPO_SURVEY_START_MPI_START_H

#include <stdbool.h>

#include "base/err.h"

/* Starts MPI. When that takes longer than patience_s, give_up is called in another thread and does
 * not return: this one stays in MPI_Init meanwhile, and keeps the launcher's connection open.
 *
 * unfenced: another rank may still be in its MPI_Init when this one has left it, and a message
 * would kill it (Open MPI 4.1). So this rank stays silent for as long as its own start took, and a
 * second at least. */
int mpi_start(int *argc, char ***argv, bool unfenced, double patience_s,
              void (*give_up)(void *user), void *user, struct err *err);

#endif
