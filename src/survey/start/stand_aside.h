/* A rank that has run out of memory stands aside: it does nothing more, and exits when the other
 * ranks have.
 *
 * It must not exit before: mpirun ends all ranks when one of them exits without MPI_Finalize. Rank
 * 0 notices its silence; if it is rank 0 itself, the last of the others makes the inventory from
 * the spool. */
#ifndef GPUMEMTOPO_SURVEY_START_STAND_ASIDE_H
#define GPUMEMTOPO_SURVEY_START_STAND_ASIDE_H

/* From now on, for a process that a launcher has started. */
void stand_aside_when_exhausted(void);

/* The open file with the locks of the survey's ranks (inventory/wire/spool_owner.h), and this
 * process's rank: while others hold locks, they still run. -1: there is no such file (any more). */
void stand_aside_watch(int owner_fd, int rank);

/* A rank that lost rank 0 and has nothing left to do waits until no other rank but rank 0 holds a
 * lock on the file `owner`: under mpirun its exit would end those that still measure. */
void stand_aside_for_others(const char *owner);

#endif
