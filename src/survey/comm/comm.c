/* Messages between ranks: framing, a rank's messages to itself, and the world of one process. */
#include "survey/comm/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

struct comm_own_message {
    struct comm_own_message *next;
    struct strbuf bytes;
};

void comm_init(struct comm *comm, const struct comm_ops *ops, int rank, int size,
               const struct comm_place *place)
{
    *comm = (struct comm){.ops = ops, .rank = rank, .size = size, .place = *place};
}

bool comm_is_standalone(const struct comm *comm)
{
    return comm->place.tasks > comm->size;
}

/* 1, or 0 if there is none. */
static int comm_take_own(struct comm *comm, struct strbuf *out_bytes)
{
    struct comm_own_message *message = comm->own_first;
    if (!message)
        return 0;
    comm->own_first = message->next;
    if (!comm->own_first)
        comm->own_last = NULL;
    *out_bytes = message->bytes;
    free(message);
    return 1;
}

int comm_send(struct comm *comm, int to, uint32_t type, const void *payload, size_t length,
              struct err *err)
{
    struct strbuf bytes = {0};
    if (to < 0 || to >= comm->size)
        return err_set(err, -EINVAL, "no rank %d", to);
    frame_write(&bytes, type, payload, length);
    if (to != comm->rank)
        return comm->ops->send(comm, to, &bytes, err);
    struct comm_own_message *message = mem_array(1, sizeof *message);
    message->bytes = bytes;
    if (comm->own_last)
        comm->own_last->next = message;
    else
        comm->own_first = message;
    comm->own_last = message;
    return 0;
}

int comm_send_payload(struct comm *comm, int to, uint32_t type, struct strbuf *payload,
                      struct err *err)
{
    int rc = comm_send(comm, to, type, payload->data, payload->length, err);
    strbuf_fini(payload);
    return rc;
}

/* Takes ownership of the bytes. */
static int comm_unpack(int from, struct strbuf *bytes, struct comm_message *out, struct err *err)
{
    struct comm_message message = {.from = from, .reader.buffer = *bytes};
    *bytes = (struct strbuf){0};
    int rc = frame_reader_next(&message.reader, &message.frame, err);
    if (rc == 0)
        rc = err_set(err, -EBADMSG, "a message was cut short");
    if (rc < 0) {
        err_prefix(err, "from rank %d", from);
        comm_message_fini(&message);
        return rc;
    }
    *out = message;
    return 1;
}

int comm_receive(struct comm *comm, struct comm_message *out_message, struct err *err)
{
    struct strbuf bytes = {0};
    int from = comm->rank;
    int rc = comm_take_own(comm, &bytes);
    if (!rc && comm->ops)
        rc = comm->ops->receive(comm, &from, &bytes, err);
    if (rc > 0 && from != comm->rank) {
        comm->messages++;
        comm->bytes += bytes.length;
    }
    if (rc > 0)
        rc = comm_unpack(from, &bytes, out_message, err);
    strbuf_fini(&bytes);
    return rc;
}

void comm_message_fini(struct comm_message *message)
{
    frame_reader_fini(&message->reader);
}

void comm_flush(struct comm *comm, double limit_s)
{
    double end = clock_monotonic_s() + limit_s;
    while (comm->ops && comm->ops->flush(comm) > 0 && clock_monotonic_s() < end)
        usleep(1000);
}

void comm_destroy(struct comm *comm)
{
    struct strbuf bytes = {0};
    if (!comm)
        return;
    while (comm_take_own(comm, &bytes))
        strbuf_fini(&bytes);
    if (comm->ops)
        comm->ops->destroy(comm);
    else
        free(comm);
}

struct comm *comm_alone_create(const struct comm_place *place)
{
    struct comm *comm = mem_array(1, sizeof *comm);
    comm_init(comm, NULL, 0, 1, place);
    return comm;
}
