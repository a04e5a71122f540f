/* Finds the launcher of this process: none, or one that MPI can use. */
#ifndef GPUMEMTOPO_SURVEY_START_LAUNCHER_H
#define GPUMEMTOPO_SURVEY_START_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* How a launcher helps MPI to find the other ranks. It decides which MPI is used. */
enum launcher_pmi {
    LAUNCHER_NO_PMI, /* MPI must not be initialised */
    LAUNCHER_PMIX,   /* Open MPI */
    LAUNCHER_PMI,    /* PMI-1 or PMI-2: MPICH and MPIs made from it */
};

struct launcher {
    enum launcher_pmi pmi;
    int rank;     /* from the environment, before MPI is up; 0 without a launcher */
    int size;     /* from the environment; 0: not known */
    char job[96]; /* name of the job, the same for all ranks, usable in a file name; "": unknown */
    bool slurm;   /* started by srun, not by an mpirun inside a step */
    bool hydra;   /* started by the mpiexec of MPICH */
    int nodes;    /* of the step, under Slurm; 0: not known */
    const char
        *node_ranks; /* "0,4,8": of this node, if Slurm's step has several; NULL: not known */
    bool unfenced;   /* MPI_Init may return here while other ranks are still inside it */
};

/* get_variable: getenv, or a table in tests. Which MPI:
 *
 *   OMPI_COMM_WORLD_SIZE           LAUNCHER_PMIX: mpirun of Open MPI, also inside another launcher
 *   PMI_RANK and MPI_LOCALNRANKS   LAUNCHER_PMI: Hydra, also inside another launcher
 *   PMIX_RANK or PMIX_NAMESPACE    LAUNCHER_PMIX: srun --mpi=pmix and others
 *   PMI_RANK                       LAUNCHER_PMI: srun --mpi=pmi2, PALS, Flux
 *   none of them                   LAUNCHER_NO_PMI
 *
 * Hydra sets no variable that names the job: the name comes from its proxy, an ancestor of this
 * process. */
void launcher_detect(char *(*get_variable)(const char *name), struct launcher *out_launcher);

/* -EINVAL if this launcher has not what the MPI needs that the user has named. */
int launcher_check_mpi(const struct launcher *launcher, enum launcher_pmi needed, struct err *err);

/* -EINVAL if MPI has started this task alone, although the launcher has started several: all would
 * survey the same GPUs. */
int launcher_check_size(const struct launcher *launcher, enum launcher_pmi needed, int mpi_size,
                        struct err *err);

/* Writes the name of a job from the command line of Hydra's proxy, which has the host and port of
 * the mpiexec on every node. words: as /proc has it, each word ends with a zero byte. "": it is not
 * that proxy. */
void launcher_hydra_job(const char *words, size_t length, char *out_name, size_t size);

#endif
