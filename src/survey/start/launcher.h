/* Who started this process: nobody, or a launcher that MPI can talk to. */
#ifndef GPUMEMTOPO_SURVEY_START_LAUNCHER_H
#define GPUMEMTOPO_SURVEY_START_LAUNCHER_H

#include <stdbool.h>

#include "base/err.h"

struct launcher {
    bool present; /* false: MPI must not be initialised */
    int rank;     /* as the environment tells, before MPI is up; 0 without a launcher */
    int size;     /* likewise; 0: not told */
    char job[96]; /* names what it started, the same for all ranks, fit for a file name; "": unknown
                   */
    bool slurm;   /* a task of Slurm's own, not of an mpirun inside a step */
    bool unfenced; /* MPI_Init may end here while other ranks are still inside theirs */
};

/* get_variable: getenv, or a table in tests. -EINVAL when a launcher is there that MPI cannot use
 * (a Slurm step of several tasks without PMIx); out_launcher is then filled all the same, since
 * only rank 0 should complain, and --no-mpi works with it. */
int launcher_detect(char *(*get_variable)(const char *name), struct launcher *out_launcher,
                    struct err *err);

#endif
