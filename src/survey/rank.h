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

/* Starts to list the GPUs. comm and options outlive the rank. Freed with rank_destroy. */
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

/* Rank 0 said QUIT, or has been silent longer than it said it would be. */
bool rank_may_leave(const struct rank *rank, double now_s);

/* Results that rank 0 has not acknowledged: only an acknowledgement proves that it has them. */
size_t rank_unacknowledged(const struct rank *rank);

void rank_destroy(struct rank *rank); /* accepts NULL; ends what still runs */

#endif
