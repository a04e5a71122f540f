/* Keeper processes: small processes that hide the death of a rank from a launcher which would then
 * end all other ranks. Rank 0 notices the silence of the rank instead. */
#ifndef GPUMEMTOPO_SURVEY_START_KEEPER_H
#define GPUMEMTOPO_SURVEY_START_KEEPER_H

/* The internal first arguments that make the program a keeper. */
#define KEEPER_PMIX_ARGUMENT "--keeper"
#define KEEPER_HYDRA_ARGUMENT "--hydra-keeper"

/* Under Slurm with MPI. Its PMIx plugin kills the whole step when a rank's connection closes before
 * MPI_Finalize (seen with 22.05). The keeper holds the same sockets, so that Slurm does not notice
 * the end of one rank. It lives as long as Slurm lets it: with proctrack/cgroup and pgid until the
 * last task of its node has ended, so it helps only where a node has several tasks; with linuxproc
 * until the survey of the file `owner` in the spool is over ("": not known). Call it right after
 * MPI_Init, and only in a task that srun started. If it cannot be started, the survey runs without
 * it. */
void keeper_pmix_start(const char *owner);
void keeper_pmix_release(void); /* the rank has ended MPI: the keeper may exit */

/* The keeper process. launcher: the id of the process that started the rank, as text. */
int keeper_pmix_main(const char *launcher, const char *owner);

/* Under Hydra, the mpiexec of MPICH. Returns in a new process, which is the rank; the old one
 * becomes its keeper. Hydra 4.0 ends all ranks of a node when a process that it has started is
 * killed by a signal, also with -disable-auto-cleanup. If there can be no new process, the rank
 * goes on without a keeper. */
void keeper_hydra_start(void);

/* The keeper: waits for the rank and returns its exit code, or 0 if a signal ended it. */
int keeper_hydra_main(void);

#endif
