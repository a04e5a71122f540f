/* Keeper processes: small processes that hide the death of a rank from a launcher which would then
 * end all other ranks. Rank 0 notices the silence of the rank instead. */
#ifndef GPUMEMTOPO_SURVEY_START_KEEPER_H
#define GPUMEMTOPO_SURVEY_START_KEEPER_H

/* The internal first arguments that make the program a keeper. */
#define KEEPER_PMIX_ARGUMENT "--keeper"
#define KEEPER_HYDRA_ARGUMENT "--hydra-keeper"

/* Under Slurm. Its PMIx plugin kills the whole step when a rank's connection closes before
 * MPI_Finalize (seen with 22.05): one rank that runs out of memory would end all others. The keeper
 * holds the same sockets, so that Slurm does not notice. Call it right after MPI_Init, and only in
 * a task that srun started, since Slurm must end the keeper. If it cannot be started, the survey
 * runs without it. */
void keeper_pmix_start(void);
void keeper_pmix_release(void); /* the rank has ended MPI: the keeper may exit */
int keeper_pmix_main(void);     /* the keeper process */

/* Under Hydra, the mpiexec of MPICH. Returns in a new process, which is the rank; the old one
 * becomes its keeper. Hydra 4.0 ends all ranks of a node when a process that it has started is
 * killed by a signal, also with -disable-auto-cleanup. If there can be no new process, the rank
 * goes on without a keeper. */
void keeper_hydra_start(void);

/* The keeper: waits for the rank and returns its exit code, or 0 if a signal ended it. */
int keeper_hydra_main(void);

#endif
