/* One worker process seen from its rank: started, heard, stopped, reaped. */
#ifndef GPUMEMTOPO_SURVEY_RANK_CHILD_H
#define GPUMEMTOPO_SURVEY_RANK_CHILD_H

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "inventory/wire/frame.h"
#include "survey/worker.h"

enum { CHILD_TAIL_BYTES = 2048, CHILD_POLL_MAX = 2 };

/* Why the rank ended the worker. CHILD_BY_ITSELF: it did not. */
enum child_end {
    CHILD_BY_ITSELF,
    CHILD_TIME_LIMIT,
    CHILD_INTERRUPTED,
    CHILD_GARBAGE,
    CHILD_LINGERED, /* answered completely, but did not exit */
};

enum child_state {
    CHILD_NONE, /* not started, or another job has taken the process over */
    CHILD_RUNNING,
    CHILD_REAPED,   /* it ended; wait_status is valid */
    CHILD_VANISHED, /* it ended; its wait status is not known */
    CHILD_GIVEN_UP, /* it was killed but did not end in time */
};

/* Zero-initialised: CHILD_NONE. */
struct child {
    enum child_state state;
    pid_t pid;              /* 0: none */
    int answer_fd, text_fd; /* -1: closed at end of file */
    int request_fd;         /* open while a second request may follow; -1: closed */
    int record_fd;          /* file in memory for its record; -1: none */
    struct frame_reader frames;
    char tail[CHILD_TAIL_BYTES + 1]; /* the last of its stderr */
    size_t tail_length;
    double started_s;
    double give_up_s; /* when the rank stops waiting for its end; 0: it was not told to end */
    enum child_end end;
    int wait_status; /* as from waitpid */
};

/* Called for each whole frame; a non-zero return means garbage. */
typedef int child_frame_taker(void *user, const struct frame *frame, struct err *err);

/* Starts this program as a worker and writes the request to it. A worker that lists then waits for
 * a second request, or until it is dismissed. now_s: clock_monotonic_s. */
int child_start(struct child *child, const struct worker_request *request, double now_s,
                struct err *err);

/* Writes a second request to a worker that waits for one. Its time limit starts again. -EPIPE if
 * the worker can no longer be asked. */
int child_ask(struct child *child, const struct worker_request *request, double now_s);

/* Tells a worker that waits for a second request to exit. */
void child_dismiss(struct child *child);

/* Appends what it has recorded so far. */
int child_record(const struct child *child, struct strbuf *out_record, struct err *err);

/* Fills in up to CHILD_POLL_MAX descriptors to poll; returns how many. */
size_t child_poll(const struct child *child, struct pollfd *out_fds);

/* Reads what has arrived, passes on whole frames, reaps. Garbage stops the worker and fills err. */
void child_read(struct child *child, double now_s, child_frame_taker *take, void *user,
                struct err *err);

/* Sends SIGKILL. A worker ignores other signals, because Slurm sends a job's signals to all its
 * processes. If called twice, the first reason is kept. */
void child_stop(struct child *child, enum child_end end, double now_s);

/* Kills the process if it lives, and releases everything. */
void child_fini(struct child *child);

#endif
