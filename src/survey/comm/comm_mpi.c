/* Messages between ranks over MPI: point to point and non-blocking. No collectives: one missing
 * rank would block them for all. */
#include "survey/comm/comm_mpi.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MPI_MESSAGE_TAG = 1 };

/* A message on its way in or out; MPI owns the bytes until the request is done. */
struct transfer {
    MPI_Request request;
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
    MPI_Comm handle;
    struct transfers sends;
    struct transfers receives;
    bool one_by_one; /* MPI_ANY_SOURCE fails: probe the ranks one after the other */
    int next_peer;   /* if so, the rank to probe first */
};

static int mpi_error(int code, const char *call, struct err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    return err_set(err, -EIO, "%s: %s", call, text);
}

/* The next free entry; it counts only when list->count is raised. */
static struct transfer *transfer_prepare(struct transfers *list)
{
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    struct transfer *transfer = &list->items[list->count];
    *transfer = (struct transfer){.request = MPI_REQUEST_NULL};
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
static enum transfer_state transfer_poll(struct transfer *transfer)
{
    int done = 0;
    if (MPI_Test(&transfer->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        if (transfer->request != MPI_REQUEST_NULL)
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
        if (transfer_poll(transfer) == TRANSFER_RUNNING) {
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
    int code = MPI_Isend(transfer->bytes.data, (int)transfer->bytes.length, MPI_BYTE, to,
                         MPI_MESSAGE_TAG, self->handle, &transfer->request);
    if (code != MPI_SUCCESS) {
        strbuf_fini(bytes);
        return mpi_error(code, "MPI_Isend", err);
    }
    self->sends.count++;
    return 0;
}

/* Starts to receive a message that has arrived. */
static int mpi_begin_receive(struct mpi_comm *self, MPI_Message *message, const MPI_Status *status,
                             struct err *err)
{
    int length = 0;
    int code = MPI_Get_count(status, MPI_BYTE, &length);
    if (code != MPI_SUCCESS)
        return mpi_error(code, "MPI_Get_count", err);
    struct transfer *transfer = transfer_prepare(&self->receives);
    char *data = mem_array((size_t)length + 1, 1);
    code = MPI_Imrecv(data, length, MPI_BYTE, message, &transfer->request);
    if (code != MPI_SUCCESS) {
        free(data);
        mpi_error(code, "MPI_Imrecv", err);
        err_prefix(err, "from rank %d", status->MPI_SOURCE);
        return -EIO;
    }
    transfer->bytes =
        (struct strbuf){.data = data, .length = (size_t)length, .capacity = (size_t)length + 1};
    transfer->peer = status->MPI_SOURCE;
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
static int mpi_probe_one_by_one(struct mpi_comm *self, int *arrived, MPI_Message *message,
                                MPI_Status *status, struct err *err)
{
    int code = MPI_SUCCESS, failed = 0, size = self->base.size;
    for (int i = 0; i < size; i++) {
        int peer = (self->next_peer + i) % size;
        if (peer == self->base.rank)
            continue;
        int own = MPI_Improbe(peer, MPI_MESSAGE_TAG, self->handle, arrived, message, status);
        if (own == MPI_SUCCESS && *arrived) {
            self->next_peer = peer + 1;
            return 0;
        }
        code = own == MPI_SUCCESS ? code : own;
        failed += own != MPI_SUCCESS;
    }
    *arrived = 0;
    return failed && failed == size - 1 ? mpi_error(code, "MPI_Improbe", err) : 0;
}

/* Takes the first complete message: 1, or 0 if there is none. An incomplete receive never blocks
 * the others: a rank may die in the middle of a long message. */
static int transfer_take_received(struct transfers *receives, int *out_from,
                                  struct strbuf *out_bytes)
{
    for (size_t i = 0; i < receives->count; i++) {
        if (transfer_must_wait(receives, i))
            continue;
        enum transfer_state state = transfer_poll(&receives->items[i]);
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
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int arrived = 0;
    mpi_flush(comm);
    /* A fault-tolerant MPI returns an error for MPI_ANY_SOURCE once one rank is dead. */
    if (!self->one_by_one)
        self->one_by_one = MPI_Improbe(MPI_ANY_SOURCE, MPI_MESSAGE_TAG, self->handle, &arrived,
                                       &message, &status) != MPI_SUCCESS;
    int rc = 0;
    if (self->one_by_one)
        rc = mpi_probe_one_by_one(self, &arrived, &message, &status, err);
    if (!rc && arrived)
        rc = mpi_begin_receive(self, &message, &status, err);
    return transfer_take_received(&self->receives, out_from, out_bytes) ? 1 : rc;
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

int comm_mpi_start(int *argc, char ***argv, struct err *err)
{
    int provided = MPI_THREAD_SINGLE;
    int code = MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
    if (code != MPI_SUCCESS)
        return err_set(err, -EIO, "MPI_Init_thread: error %d", code);
    return 0;
}

int comm_mpi_stop(struct err *err)
{
    int code = MPI_Finalize();
    return code == MPI_SUCCESS ? 0 : err_set(err, -EIO, "MPI_Finalize: error %d", code);
}

int comm_mpi_world(const struct comm_place *place, struct comm **out_comm, struct err *err)
{
    static const struct comm_ops ops = {
        .send = mpi_send,
        .receive = mpi_receive,
        .flush = mpi_flush,
        .destroy = mpi_destroy,
    };
    const MPI_Comm handle = MPI_COMM_WORLD;
    int rank = 0, size = 0;
    int code = MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS)
        return mpi_error(code, "MPI_Comm_set_errhandler", err);
    code = MPI_Comm_rank(handle, &rank);
    if (code != MPI_SUCCESS)
        return mpi_error(code, "MPI_Comm_rank", err);
    code = MPI_Comm_size(handle, &size);
    if (code != MPI_SUCCESS)
        return mpi_error(code, "MPI_Comm_size", err);
    struct mpi_comm *self = mem_array(1, sizeof *self);
    comm_init(&self->base, &ops, rank, size, place);
    self->base.place.task = rank; /* MPI's number replaces the launcher's */
    self->base.place.tasks = size;
    self->handle = handle;
    *out_comm = &self->base;
    return 0;
}

enum launcher_pmi comm_mpi_pmi(void)
{
#ifdef OPEN_MPI
    return LAUNCHER_PMIX;
#else
    return LAUNCHER_PMI;
#endif
}

const char *comm_mpi_version(char *buffer, size_t buffer_size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    snprintf(buffer, buffer_size, "%s", text);
    return buffer;
}
