/* Finds the launcher of this process: none, or one that MPI can use. */
#ifndef GPUMEMTOPO_SURVEY_START_LAUNCHER_H
#define GPUMEMTOPO_SURVEY_START_LAUNCHER_H

#include <stdbool.h>

#include "base/err.h"

struct launcher {
    bool present;  /* false: MPI must not be initialised */
    int rank;      /* from the environment, before MPI is up; 0 without a launcher */
    int size;      /* from the environment; 0: not known */
    char job[96];  /* name of the job, the same for all ranks, usable in a file name; "": unknown */
    bool slurm;    /* started by srun, not by an mpirun inside a step */
    bool unfenced; /* MPI_Init may return here while other ranks are still inside it */
};

/* get_variable: getenv, or a table in tests. -EINVAL if MPI cannot use the launcher (a Slurm step
 * of several tasks without PMIx). out_launcher is filled even then, since only rank 0 should print
 * the error and --no-mpi needs it. */
int launcher_detect(char *(*get_variable)(const char *name), struct launcher *out_launcher,
                    struct err *err);

#endif
