/* One worker process seen from its rank: started, heard, stopped, reaped. */
#ifndef GPUMEMTOPO_SURVEY_RANK_CHILD_H
#define GPUMEMTOPO_SURVEY_RANK_CHILD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "inventory/wire/frame.h"
#include "survey/worker/request.h"

enum { CHILD_TAIL_BYTES = 2048, CHILD_POLL_MAX = 2 };

/* Why the rank ended it; CHILD_BY_ITSELF: it did not. */
enum child_end {
    CHILD_BY_ITSELF,
    CHILD_TIME_LIMIT,
    CHILD_INTERRUPTED,
    CHILD_GARBAGE,
    CHILD_LINGERED, /* said all but did not leave */
};

/* Zero-initialised: never started. */
struct child {
    pid_t pid;              /* 0: none */
    int answer_fd, text_fd; /* -1: at its end */
    int request_fd;         /* open while it may be asked for more; -1: not */
    int record_fd;          /* a file in memory, where it writes its record; -1: none */
    struct frame_reader frames;
    char tail[CHILD_TAIL_BYTES + 1]; /* the last of its stderr */
    size_t tail_length;
    double started_s;
    double give_up_s; /* until when its end is waited for; 0: it was not told to end */
    enum child_end end;
    bool over;       /* reaped, gone, or given up */
    bool reaped;     /* wait_status is valid */
    bool gone;       /* it has ended, and nobody knows how */
    int wait_status; /* as from waitpid */
};

/* Called for each whole frame; a non-zero return means garbage. */
typedef int child_frame_taker(void *user, const struct frame *frame, struct err *err);

/* Starts this same program as a worker and hands it the request. One that lists then waits for a
 * second request, or to be dismissed. now_s: clock_monotonic_s. */
int child_start(struct child *child, const struct worker_request *request, double now_s,
                struct err *err);

/* Hands a second request to a worker that waits for one; its time begins anew. -EPIPE when it can
 * no longer be asked. */
int child_ask(struct child *child, const struct worker_request *request, double now_s);

/* A worker that waits for a second request leaves. */
void child_dismiss(struct child *child);

/* Appends what it has recorded so far. */
int child_record(const struct child *child, struct strbuf *out_record, struct err *err);

/* Descriptors to poll: up to CHILD_POLL_MAX; how many. */
size_t child_poll(const struct child *child, struct pollfd *out_fds);

/* Reads what has come, hands out frames, reaps. Garbage stops the worker and fills err. */
void child_pump(struct child *child, double now_s, child_frame_taker *take, void *user,
                struct err *err);

/* SIGKILL: a worker heeds no other signal, since Slurm sends those of a job to all its processes.
 * The first reason stays. */
void child_stop(struct child *child, enum child_end end, double now_s);

/* Ends the process at once if it lives, and releases everything. */
void child_fini(struct child *child);

#endif
