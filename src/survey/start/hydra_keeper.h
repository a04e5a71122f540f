/* Under Hydra (the mpiexec of MPICH): a parent for the rank, which outlives it. */
#ifndef GPUMEMTOPO_SURVEY_START_HYDRA_KEEPER_H
#define GPUMEMTOPO_SURVEY_START_HYDRA_KEEPER_H

#define HYDRA_KEEPER_ARGUMENT "--hydra-keeper"

/* Returns in a new process, which is the rank; the old one becomes its keeper. Hydra 4.0 ends all
 * ranks of a node when a process that it has started is killed by a signal, also with
 * -disable-auto-cleanup. If there can be no new process, the rank goes on without a keeper. */
void hydra_keeper_start(void);

/* The keeper: waits for the rank and returns its exit code, or 0 if a signal ended it. */
int hydra_keeper_main(void);

#endif
