/* Messages between ranks, without saying how they travel. Nothing here blocks. */
#ifndef GPUMEMTOPO_SURVEY_COMM_COMM_H
#define GPUMEMTOPO_SURVEY_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/wire/frame.h"

struct comm;
struct comm_parcel;

/* The functions of a transport. send takes over the bytes (also when it fails) and has them on
 * their way when it returns. receive gives the bytes of one message from another rank: 1, 0 when
 * there is none, or a negative errno. flush works on what is still being sent: the number left. */
struct comm_ops {
    int (*send)(struct comm *comm, int to, struct strbuf *bytes, struct err *err);
    int (*receive)(struct comm *comm, int *out_from, struct strbuf *out_bytes, struct err *err);
    int (*flush)(struct comm *comm);
    void (*destroy)(struct comm *comm);
};

/* What this process is to its launcher. */
struct comm_place {
    int task, tasks;   /* number of this process and of all, also where each is a world of one */
    const char *job;   /* the same for all processes; "": unknown */
    double patience_s; /* how long another rank may take until its first message */
};

/* First member of every transport's own struct. */
struct comm {
    const struct comm_ops *ops; /* NULL: there is no other rank */
    int rank;
    int size;
    struct comm_place place;
    uint64_t messages, bytes;                 /* received from other ranks */
    struct comm_parcel *own_first, *own_last; /* messages of this rank to itself */
};

/* A received message: one checked frame. Released with comm_message_fini. */
struct comm_message {
    int from;
    struct frame_reader reader;
    struct frame frame;
};

/* Whether this process measures its part alone, of a survey of several tasks. */
bool comm_is_apart(const struct comm *comm);

/* A world of one process, no MPI. -ENOMEM. */
int comm_alone_create(const struct comm_place *place, struct comm **out_comm, struct err *err);

/* Sends one message; a rank may send to itself. */
int comm_send(struct comm *comm, int to, uint32_t type, const void *payload, size_t length,
              struct err *err);

/* The same with a payload that was just encoded; releases it. -ENOMEM when encoding it failed. */
int comm_send_payload(struct comm *comm, int to, uint32_t type, struct strbuf *payload,
                      struct err *err);

/* 1: a message; 0: none now; -EBADMSG: one came but was damaged (it is dropped, the text names the
 * sender); other: the transport failed, for now or for good. */
int comm_receive(struct comm *comm, struct comm_message *out_message, struct err *err);
void comm_message_fini(struct comm_message *message);

/* Waits up to limit_s for the messages sent to leave. */
void comm_flush(struct comm *comm, double limit_s);
void comm_destroy(struct comm *comm); /* accepts NULL */

/* For transports. */
void comm_init(struct comm *comm, const struct comm_ops *ops, int rank, int size,
               const struct comm_place *place);

#endif
