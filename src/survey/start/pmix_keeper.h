/* Keeps the launcher's connection of a rank open beyond the rank's death.
 *
 * Slurm's PMIx plugin kills the whole step when a rank's connection closes before MPI_Finalize
 * (seen with 22.05): one rank out of memory would cost all others. A small process that holds the
 * same sockets keeps that from being noticed; the rank is missed by its silence instead. */
#ifndef GPUMEMTOPO_SURVEY_START_PMIX_KEEPER_H
#define GPUMEMTOPO_SURVEY_START_PMIX_KEEPER_H

/* The internal first argument that makes the program a keeper. */
#define KEEPER_ARGUMENT "--keeper"

/* Right after MPI_Init, in a task of Slurm's own, since it is Slurm that ends it: starts it.
 * Without one the survey runs all the same. */
void pmix_keeper_start(void);

/* The rank leaves in order: the keeper may go. */
void pmix_keeper_release(void);

/* The keeper itself. */
int pmix_keeper_main(void);

#endif
