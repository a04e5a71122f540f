/* The part of the survey that every rank does: lists its GPUs, announces them, measures those that
 * it is assigned, reports the results. */
#ifndef GPUMEMTOPO_SURVEY_RANK_RANK_H
#define GPUMEMTOPO_SURVEY_RANK_RANK_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "survey/comm/comm.h"
#include "survey/options.h"

/* What the environment says. NULL: not set. */
struct allocated_environment {
    const char *gpus_on_node;   /* SLURM_GPUS_ON_NODE */
    const char *visible;        /* CUDA_VISIBLE_DEVICES, of this task */
    const char *tasks_per_node; /* SLURM_STEP_TASKS_PER_NODE: "8(x3),2" */
    const char *node_number;    /* SLURM_NODEID: the place of this node in that list */
    const char *local_size;     /* OMPI_COMM_WORLD_LOCAL_SIZE */
};
struct allocated_environment allocated_environment_read(void);

/* The most GPUs that the tasks of this node can list together; 0: not known. listed: how many this
 * task lists. Without Slurm, CUDA_VISIBLE_DEVICES may name GPUs that do not exist; then only what
 * the task lists is certain. */
uint32_t rank_allocated_gpus(const struct allocated_environment *environment, uint32_t listed);

enum root_contact {
    ROOT_CONTACT_NONE,     /* an entry of the table: the event is refused */
    ROOT_CONTACT_UNHEARD,  /* rank 0 has not sent a message yet */
    ROOT_CONTACT_HEARD,    /* rank 0 lives */
    ROOT_CONTACT_SILENT,   /* no message for too long; rank 0 may come back */
    ROOT_CONTACT_GIVEN_UP, /* the rank leaves without rank 0's QUIT */
    ROOT_CONTACT_QUIT,     /* rank 0 has said QUIT: the rank leaves */
    ROOT_CONTACTS
};

enum root_contact_event {
    ROOT_CONTACT_EVENT_HEARD,       /* any message came; always before what the message says */
    ROOT_CONTACT_EVENT_SAID_QUIT,   /* the message is QUIT */
    ROOT_CONTACT_EVENT_FELL_SILENT, /* no message for too long */
    ROOT_CONTACT_EVENT_GAVE_UP,     /* nothing is left to do, and no message for even longer */
    ROOT_CONTACT_EVENTS
};

/* Moves *contact along the table. False: the event is refused and *contact is as it was. */
bool root_contact_apply(enum root_contact *contact, enum root_contact_event event);

struct rank;

/* Starts to list the GPUs. A worker that cannot be started is announced like any other failure of
 * listing. Each result is first spooled, then sent. comm and options outlive the rank. now_s, here
 * and below: clock_awake. Freed with rank_destroy. */
struct rank *rank_create(struct comm *comm, const struct survey_options *options, double now_s);

/* Takes a message of rank 0. 0, or -EBADMSG for an invalid message. */
int rank_take(struct rank *rank, const struct comm_message *message, struct err *err);

/* Reads from the workers, starts the next ones, sends what is known. Never blocks. */
void rank_step(struct rank *rank, double now_s);

/* Returns the descriptors to poll. The rank owns the array. */
struct pollfd *rank_poll(struct rank *rank, size_t *out_count);

/* Kills all workers. Their GPUs are reported as interrupted. */
void rank_stop(struct rank *rank, double now_s);

/* True if rank 0 said QUIT, or if rank 0 was silent for too long and everything assigned is done
 * and spooled. */
bool rank_may_leave(const struct rank *rank);

/* What a rank knows when it leaves. */
struct rank_end {
    bool lost_rank_0;  /* rank 0 is silent; a message would reset this */
    bool assigned;     /* rank 0 had sent the assignment: which GPUs to measure, where to spool */
    double silent_s;   /* seconds since rank 0 was last heard */
    const char *spool; /* spool folder; NULL: none */
    const char *owner; /* the lock file there; NULL: none */
    bool saw_loss;     /* some rank is lost, as rank 0 said or because rank 0 did not say QUIT */
    double listing_s;  /* seconds from creation until the GPUs were known; 0: they never were */
};
struct rank_end rank_end(const struct rank *rank);

/* Waits until workers that have answered completely have exited, for some seconds at most. */
void rank_wait_for_workers(struct rank *rank, struct clock_awake *clock);

void rank_destroy(struct rank *rank); /* accepts NULL; kills workers that still run */

#endif
