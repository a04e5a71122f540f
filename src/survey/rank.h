/* A rank's own part: lists its GPUs, announces them, measures those it is assigned, reports. */
#ifndef GPUMEMTOPO_SURVEY_RANK_H
#define GPUMEMTOPO_SURVEY_RANK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "survey/comm.h"
#include "survey/options.h"

struct rank;

/* Starts to list the GPUs; a worker that cannot be started is announced like any other failure of
 * listing. comm and options outlive the rank. -ENOMEM. Freed with rank_destroy.
 *
 * Each result is spooled, then sent, and sent again until rank 0 has acknowledged it. */
int rank_create(struct comm *comm, const struct survey_options *options, struct rank **out_rank,
                struct err *err);

/* Takes a message of rank 0: 0, or -EBADMSG for one that makes no sense. */
int rank_take(struct rank *rank, const struct comm_message *message, struct err *err);

/* Hears the workers, starts the next ones, sends what is known. Never blocks. */
int rank_step(struct rank *rank, double now_s, struct err *err);

/* The descriptors to wait for; NULL when out of memory. The array is the rank's. */
struct pollfd *rank_poll(struct rank *rank, size_t *out_count);

/* Ends all workers; their GPUs are reported as interrupted. */
void rank_stop(struct rank *rank, double now_s);

/* Rank 0 said QUIT; or it was not heard for long, and all that was assigned is done and spooled. */
bool rank_may_leave(const struct rank *rank);

/* When leaving: where rank 0 never assigned anything, spools the GPUs as lost. */
void rank_abandon(struct rank *rank);

/* Rank 0 fell silent, out_unheard_s ago; any word of it ends that. out_spool: where the results
 * are; NULL: nowhere. */
bool rank_orphaned(const struct rank *rank, double *out_unheard_s, const char **out_spool);

/* Some rank is lost, as far as this one was told or saw: no use in waiting for all. */
bool rank_saw_loss(const struct rank *rank);

/* Removes what this rank has spooled: rank 0 has it all. */
void rank_unspool(const struct rank *rank);

/* Waits for workers that have told all to leave, for some seconds at most. */
void rank_settle(struct rank *rank);

void rank_destroy(struct rank *rank); /* accepts NULL; ends what still runs */

#endif
