/* Whether rank 0 has room for what it will collect. This is looked at before anything is measured,
 * so that a limit is not met in the middle of a survey. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_ROOM_H
#define GPUMEMTOPO_SURVEY_ROOT_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Raises the limit of open files of this process if `ranks` connections may need more. -EMFILE and
 * what to do if the hard limit is too low. MPI over InfiniBand or shared memory needs no file for
 * each rank, so this is a reason for a warning only. */
int room_for_ranks(int ranks, struct err *err);

/* Memory that this process may take. */
struct room {
    uint64_t bytes;
    const char *by; /* what limits it */
};

/* The least of: what is free on the node, the limit of the cgroup and of those above it, and the
 * limit of the address space. `proc` and `cgroups` are /proc and /sys/fs/cgroup but in tests. What
 * cannot be read limits nothing. */
enum { ROOM_FEW_GPUS = 1000 }; /* fewer take hardly more than the process itself */
struct room room_find(const char *proc, const char *cgroups);

enum room_verdict { ROOM_ENOUGH, ROOM_SCARCE, ROOM_TOO_SMALL };

/* Whether the results of so many GPUs find room: to collect and to write them, only to collect them
 * (scarce), or not even that. err has what is needed and what to do, unless there is enough. */
enum room_verdict room_for_gpus(const struct room *room, size_t gpus, struct err *err);

#endif
