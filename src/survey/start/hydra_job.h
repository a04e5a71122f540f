/* A name for a job that the mpiexec of MPICH (Hydra) has started. */
#ifndef GPUMEMTOPO_SURVEY_START_HYDRA_JOB_H
#define GPUMEMTOPO_SURVEY_START_HYDRA_JOB_H

#include <stddef.h>

/* Writes the name, the same on all nodes and usable in a file name; "" if it cannot be found. Hydra
 * sets no variable for it. The command line of its proxy, an ancestor of this process on every
 * node, has the host and port of the mpiexec. */
void hydra_job_name(char *out_name, size_t size);

/* The same from a command line as /proc has it: words that end with a zero byte. */
void hydra_job_name_of(const char *words, size_t length, char *out_name, size_t size);

#endif
