/* A rank's own part: lists its GPUs, announces them, measures those it is assigned, reports. */
#ifndef GPUMEMTOPO_SURVEY_RANK_RANK_H
#define GPUMEMTOPO_SURVEY_RANK_RANK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/options.h"

struct rank;

/* Starts to list the GPUs; a worker that cannot be started is announced like any other failure of
 * listing. comm and options outlive the rank. -ENOMEM. Freed with rank_destroy.
 *
 * Each result is spooled, then sent. */
int rank_create(struct comm *comm, const struct survey_options *options, double now_s,
                struct rank **out_rank, struct err *err);

/* Takes a message of rank 0: 0, or -EBADMSG for one that makes no sense. now_s, here and below:
 * clock_awake. */
int rank_take(struct rank *rank, const struct comm_message *message, struct err *err);

/* Hears the workers, starts the next ones, sends what is known. Never blocks. */
int rank_step(struct rank *rank, double now_s, struct err *err);

/* The descriptors to wait for; NULL when out of memory. The array is the rank's. */
struct pollfd *rank_poll(struct rank *rank, size_t *out_count);

/* Ends all workers; their GPUs are reported as interrupted. */
void rank_stop(struct rank *rank, double now_s);

/* Rank 0 said QUIT; or it was not heard for long, and all that was assigned is done and spooled. */
bool rank_may_leave(const struct rank *rank);

/* What a rank knows when it leaves. */
struct rank_end {
    bool orphaned;     /* rank 0 fell silent; any message of it would have ended that */
    bool assigned;     /* rank 0 had told which GPUs to measure, and where to spool them */
    double unheard_s;  /* since rank 0 was last heard */
    const char *spool; /* where the results are; NULL: nowhere */
    const char *owner; /* the file that is locked there; NULL: none */
    bool saw_loss;     /* some rank is lost, as far as this one was told or saw */
    double listing_s;  /* from its creation until its GPUs were known; 0: never */
};
struct rank_end rank_end(const struct rank *rank);

/* Waits for workers that have told all to leave, for some seconds at most. */
void rank_settle(struct rank *rank, struct clock_awake *clock);

void rank_destroy(struct rank *rank); /* accepts NULL; ends what still runs */

#endif
