/* Messages between ranks over MPI, by a plug-in (mpi_plugin.h): point to point and non-blocking. */
#include "survey/comm/comm_mpi.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A message on its way in or out; MPI owns the bytes until the request is done. */
struct transfer {
    struct mpi_handle request;
    struct strbuf bytes;
    int peer;
};

struct transfers {
    struct transfer *items;
    size_t count;
    size_t capacity;
};

struct mpi_comm {
    struct comm base;
    const struct mpi_plugin *mpi;
    struct transfers sends;
    struct transfers receives;
    bool one_by_one; /* COMM_MPI_ANY_RANK fails: probe the ranks one after the other */
    int next_peer;   /* if so, the rank to probe first */
};

static int mpi_error(const struct mpi_plugin *mpi, int code, const char *call, struct err *err)
{
    char text[ERR_TEXT_MAX];
    mpi->error_text(code, text, sizeof text);
    return err_set(err, -EIO, "%s: %s", call, text);
}

/* The next free entry; it counts only when list->count is raised. */
static struct transfer *transfer_prepare(struct transfers *list)
{
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    struct transfer *transfer = &list->items[list->count];
    *transfer = (struct transfer){0};
    return transfer;
}

/* Keeps the order: messages of one rank must not overtake each other. */
static void transfer_remove(struct transfers *list, size_t i)
{
    list->count--;
    memmove(&list->items[i], &list->items[i + 1], (list->count - i) * sizeof *list->items);
}

enum transfer_state { TRANSFER_RUNNING, TRANSFER_DONE, TRANSFER_FAILED };

/* An error says something about the other rank, which is gone and will miss its deadline: the
 * transfer is over, and this rank goes on. MPI may still own the bytes then, so they are not
 * freed. */
static enum transfer_state transfer_poll(const struct mpi_plugin *mpi, struct transfer *transfer)
{
    bool done = false, released = false;
    if (mpi->test(&transfer->request, &done, &released)) {
        if (!released)
            transfer->bytes = (struct strbuf){0};
        return TRANSFER_FAILED;
    }
    return done ? TRANSFER_DONE : TRANSFER_RUNNING;
}

static int mpi_flush(struct comm *comm)
{
    struct mpi_comm *self = (struct mpi_comm *)comm;
    for (size_t i = 0; i < self->sends.count;) {
        struct transfer *transfer = &self->sends.items[i];
        if (transfer_poll(self->mpi, transfer) == TRANSFER_RUNNING) {
            i++;
            continue;
        }
        strbuf_fini(&transfer->bytes);
        transfer_remove(&self->sends, i);
    }
    return self->sends.count > INT_MAX ? INT_MAX : (int)self->sends.count;
}

static int mpi_send(struct comm *comm, int to, struct strbuf *bytes, struct err *err)
{
    struct mpi_comm *self = (struct mpi_comm *)comm;
    if (bytes->length > INT_MAX) {
        err_set(err, -EMSGSIZE, "a message of %zu bytes", bytes->length);
        strbuf_fini(bytes);
        return -EMSGSIZE;
    }
    mpi_flush(comm);
    struct transfer *transfer = transfer_prepare(&self->sends);
    transfer->peer = to;
    transfer->bytes = *bytes;
    int code =
        self->mpi->send(transfer->bytes.data, (int)transfer->bytes.length, to, &transfer->request);
    if (code) {
        strbuf_fini(bytes);
        return mpi_error(self->mpi, code, "MPI_Isend", err);
    }
    self->sends.count++;
    return 0;
}

/* Starts to receive a message that has arrived. */
static int mpi_begin_receive(struct mpi_comm *self, const struct mpi_arrived *arrived,
                             struct err *err)
{
    const size_t length = (size_t)arrived->length;
    struct transfer *transfer = transfer_prepare(&self->receives);
    char *data = mem_array(length + 1, 1);
    int code = self->mpi->receive(data, arrived, &transfer->request);
    if (code) {
        free(data);
        mpi_error(self->mpi, code, "MPI_Imrecv", err);
        err_prefix(err, "from rank %d", arrived->from);
        return -EIO;
    }
    transfer->bytes = (struct strbuf){.data = data, .length = length, .capacity = length + 1};
    transfer->peer = arrived->from;
    self->receives.count++;
    return 0;
}

/* True if an earlier message of the same rank is still incomplete: messages of one rank are
 * delivered in the order in which they were sent, whatever their size. */
static bool transfer_must_wait(const struct transfers *receives, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (receives->items[j].peer == receives->items[i].peer)
            return true;
    return false;
}

/* Probes each rank, starting with a different one every time. Skips ranks that fail. */
static int mpi_probe_one_by_one(struct mpi_comm *self, bool *out_any, struct mpi_arrived *out,
                                struct err *err)
{
    int code = 0, failed = 0, size = self->base.size;
    for (int i = 0; i < size; i++) {
        int peer = (self->next_peer + i) % size;
        if (peer == self->base.rank)
            continue;
        int own = self->mpi->probe(peer, out_any, out);
        if (!own && *out_any) {
            self->next_peer = peer + 1;
            return 0;
        }
        code = own ? own : code;
        failed += own != 0;
    }
    *out_any = false;
    return failed && failed == size - 1 ? mpi_error(self->mpi, code, "MPI_Improbe", err) : 0;
}

/* Takes the first complete message: 1, or 0 if there is none. An incomplete receive never blocks
 * the others: a rank may die in the middle of a long message. */
static int transfer_take_received(const struct mpi_plugin *mpi, struct transfers *receives,
                                  int *out_from, struct strbuf *out_bytes)
{
    for (size_t i = 0; i < receives->count; i++) {
        if (transfer_must_wait(receives, i))
            continue;
        enum transfer_state state = transfer_poll(mpi, &receives->items[i]);
        if (state == TRANSFER_RUNNING)
            continue;
        struct transfer finished = receives->items[i];
        transfer_remove(receives, i);
        if (state == TRANSFER_FAILED) {
            strbuf_fini(&finished.bytes);
            return 0;
        }
        *out_from = finished.peer;
        *out_bytes = finished.bytes;
        return 1;
    }
    return 0;
}

static int mpi_receive(struct comm *comm, int *out_from, struct strbuf *out_bytes, struct err *err)
{
    struct mpi_comm *self = (struct mpi_comm *)comm;
    struct mpi_arrived arrived = {0};
    bool any = false;
    mpi_flush(comm);
    /* A fault-tolerant MPI returns an error for any rank once one rank is dead. */
    if (!self->one_by_one)
        self->one_by_one = self->mpi->probe(COMM_MPI_ANY_RANK, &any, &arrived) != 0;
    int rc = 0;
    if (self->one_by_one)
        rc = mpi_probe_one_by_one(self, &any, &arrived, err);
    if (!rc && any)
        rc = mpi_begin_receive(self, &arrived, err);
    return transfer_take_received(self->mpi, &self->receives, out_from, out_bytes) ? 1 : rc;
}

/* MPI still owns the bytes of unfinished transfers, so they are not freed. */
static void mpi_destroy(struct comm *comm)
{
    struct mpi_comm *self = (struct mpi_comm *)comm;
    mpi_flush(comm);
    free(self->sends.items);
    free(self->receives.items);
    free(self);
}

int comm_mpi_start(const struct mpi_plugin *mpi, int *argc, char ***argv, struct err *err)
{
    int code = mpi->start(argc, argv);
    return code ? err_set(err, -EIO, "MPI_Init_thread: error %d", code) : 0;
}

int comm_mpi_stop(const struct mpi_plugin *mpi, struct err *err)
{
    int code = mpi->stop();
    return code ? err_set(err, -EIO, "MPI_Finalize: error %d", code) : 0;
}

int comm_mpi_world(const struct mpi_plugin *mpi, const struct comm_place *place,
                   struct comm **out_comm, struct err *err)
{
    static const struct comm_ops ops = {
        .send = mpi_send,
        .receive = mpi_receive,
        .flush = mpi_flush,
        .destroy = mpi_destroy,
    };
    int rank = 0, size = 0;
    const char *call = "";
    int code = mpi->world(&rank, &size, &call);
    if (code)
        return mpi_error(mpi, code, call, err);
    struct mpi_comm *self = mem_array(1, sizeof *self);
    comm_init(&self->base, &ops, rank, size, place);
    self->base.place.task = rank; /* MPI's number replaces the launcher's */
    self->base.place.tasks = size;
    self->mpi = mpi;
    *out_comm = &self->base;
    return 0;
}
