/* Whether the files and the memory that rank 0 may have are enough for what it will collect. This
 * is checked before anything is measured, so that a limit is not met in the middle of a survey. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_RESOURCES_H
#define GPUMEMTOPO_SURVEY_ROOT_RESOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Raises the limit of open files of this process if `ranks` connections may need more. -EMFILE and
 * what to do if the hard limit is too low. MPI over InfiniBand or shared memory needs no file for
 * each rank, so this is a reason for a warning only. */
int resources_for_ranks(int ranks, struct err *err);

/* Memory that this process may take. */
struct resources_memory {
    uint64_t bytes;
    const char *by; /* what limits it */
};

/* The least of: what is free on the node, the limit of the cgroup and of those above it, and the
 * limit of the address space. `proc` and `cgroups` are /proc and /sys/fs/cgroup but in tests. What
 * cannot be read limits nothing. */
enum { RESOURCES_FEW_GPUS = 1000 }; /* fewer take hardly more than the process itself */
struct resources_memory resources_find_memory(const char *proc, const char *cgroups);

enum resources_verdict { RESOURCES_ENOUGH, RESOURCES_SCARCE, RESOURCES_TOO_SMALL };

/* Whether the memory is enough for the results of so many GPUs: to collect and to write them, only
 * to collect them (scarce), or not even that. err has what is needed and what to do, unless there
 * is enough. */
enum resources_verdict resources_for_gpus(const struct resources_memory *memory, size_t gpus,
                                          struct err *err);

#endif
