/* Messages between ranks, independent of the transport. Only comm_flush blocks. */
#ifndef GPUMEMTOPO_SURVEY_COMM_COMM_H
#define GPUMEMTOPO_SURVEY_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/wire/frame.h"

struct comm;
struct comm_own_message;

/* The functions of a transport. send takes ownership of the bytes, also when it fails, and has
 * started to send them when it returns. receive gives the bytes of one message from another rank:
 * 1, 0 if there is none, or a negative errno. flush makes progress on pending sends and returns how
 * many are left. */
struct comm_ops {
    int (*send)(struct comm *comm, int to, struct strbuf *bytes, struct err *err);
    int (*receive)(struct comm *comm, int *out_from, struct strbuf *out_bytes, struct err *err);
    int (*flush)(struct comm *comm);
    void (*destroy)(struct comm *comm);
};

/* This process as its launcher sees it. */
struct comm_place {
    int task, tasks; /* number of this process, and of all processes; also without MPI */
    const char *job; /* the same for all processes; "": unknown */
    const char *
        node_ranks; /* without MPI: "0,4,8", the tasks of this node, if there are others; or NULL */
    double start_timeout_s; /* how long another rank may take until its first message */
};

/* First member of the struct of every transport. */
struct comm {
    const struct comm_ops *ops; /* NULL: there is no other rank */
    int rank;
    int size;
    struct comm_place place;
    uint64_t messages, bytes;                      /* received from other ranks */
    struct comm_own_message *own_first, *own_last; /* messages of this rank to itself */
};

/* A received message: one checked frame. Released with comm_message_fini. */
struct comm_message {
    int from;
    struct frame_reader reader;
    struct frame frame;
};

/* True if the survey has several tasks and this process measures its part without MPI. */
bool comm_is_standalone(const struct comm *comm);

/* A comm with one rank, without MPI. Freed with comm_destroy. */
struct comm *comm_alone_create(const struct comm_place *place);

/* Sends one message; a rank may send to itself. */
int comm_send(struct comm *comm, int to, uint32_t type, const void *payload, size_t length,
              struct err *err);

/* The same with a payload that was just encoded. Releases it. */
int comm_send_payload(struct comm *comm, int to, uint32_t type, struct strbuf *payload,
                      struct err *err);

/* 1: a message; 0: none now; -EBADMSG: a damaged message came and was dropped (the text names the
 * sender); other: the transport failed, for now or for good. */
int comm_receive(struct comm *comm, struct comm_message *out_message, struct err *err);
void comm_message_fini(struct comm_message *message);

/* Waits up to limit_s until all messages are sent. */
void comm_flush(struct comm *comm, double limit_s);
void comm_destroy(struct comm *comm); /* accepts NULL */

/* For transports. */
void comm_init(struct comm *comm, const struct comm_ops *ops, int rank, int size,
               const struct comm_place *place);

#endif
