/* Keeps a rank's connection to the launcher open after the rank has died.
 *
 * Slurm's PMIx plugin kills the whole step when a rank's connection closes before MPI_Finalize
 * (seen with 22.05): one rank that runs out of memory would end all others. The keeper is a small
 * process that holds the same sockets, so that Slurm does not notice. Rank 0 notices the rank's
 * silence instead. */
#ifndef GPUMEMTOPO_SURVEY_START_PMIX_KEEPER_H
#define GPUMEMTOPO_SURVEY_START_PMIX_KEEPER_H

/* The internal first argument that makes the program a keeper. */
#define KEEPER_ARGUMENT "--keeper"

/* Starts the keeper. Call it right after MPI_Init, and only in a task that srun started, since
 * Slurm must end the keeper. If it cannot be started, the survey runs without it. */
void pmix_keeper_start(void);

/* The rank has ended MPI: the keeper may exit. */
void pmix_keeper_release(void);

/* The keeper process. */
int pmix_keeper_main(void);

#endif
