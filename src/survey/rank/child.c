/* One worker process seen from its rank. */
#include "survey/rank/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "survey/comm/limits.h"

extern char **environ;

/* SIGKILL does not end a worker that is inside the driver until the driver returns. After this many
 * seconds the rank leaves the worker to init; sooner after an interruption, since rank 0 waits only
 * LIMIT_INTERRUPTED_S. */
static const double give_up_after_s = 4.0, give_up_interrupted_s = LIMIT_INTERRUPTED_S - 1;

/* The rank's ends of the pipes are at or above this number and the fixed descriptors of the worker
 * below it, so no dup2 overwrites one of them. */
enum { ABOVE = 10 };

static void child_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int child_make_pipe(int out_ends[2], struct err *err)
{
    int ends[2], high[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC))
        return err_set(err, -errno, "pipe: %s", strerror(errno));
    int rc = 0;
    for (int i = 0; i < 2; i++) {
        high[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, ABOVE);
        if (high[i] < 0 && !rc)
            rc = err_set(err, -errno, "pipe: %s", strerror(errno));
        close(ends[i]);
    }
    if (rc) {
        child_close(&high[0]);
        child_close(&high[1]);
        return rc;
    }
    memcpy(out_ends, high, sizeof high);
    return 0;
}

/* The record is a file in memory, so that it survives whatever ends the worker. -1: no such file;
 * the GPU is still measured, the worker is not asked for a record, and its record is empty. */
static int child_make_record(const struct worker_request *request)
{
    int fd = request->record ? memfd_create("gpumemtopo-record", MFD_CLOEXEC) : -1;
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, ABOVE) : -1;
    if (fd >= 0)
        close(fd);
    return high;
}

/* The worker's ends of its pipes; record -1: none. */
struct worker_fds {
    int request, answers, text, record;
};

static int child_add_descriptors(posix_spawn_file_actions_t *actions, const struct worker_fds *fds)
{
    int rc = posix_spawn_file_actions_adddup2(actions, fds->request, STDIN_FILENO);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(actions, fds->text, STDERR_FILENO);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_adddup2(actions, fds->answers, WORKER_ANSWER_FD);
    if (rc || fds->record < 0)
        return rc;
    return posix_spawn_file_actions_adddup2(actions, fds->record, WORKER_RECORD_FD);
}

/* The worker leads a process group and starts with default signal handling. */
static int child_set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int rc = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    if (rc)
        return rc;
    rc = posix_spawnattr_setsigmask(attributes, &none);
    if (rc)
        return rc;
    return posix_spawnattr_setsigdefault(attributes, &all);
}

/* 0 or a positive errno. */
static int child_spawn(const struct worker_fds *fds, pid_t *out_pid)
{
    char *const argv[] = {(char *)"gpumemtopo-worker", (char *)WORKER_ARGUMENT, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc)
        goto out_actions;
    rc = child_add_descriptors(&actions, fds);
    if (rc)
        goto out;
    rc = child_set_attributes(&attributes);
    if (rc)
        goto out;
    rc = posix_spawn(out_pid, "/proc/self/exe", &actions, &attributes, argv, environ);
out:
    posix_spawnattr_destroy(&attributes);
out_actions:
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Does not block: the pipe is made large enough for the request. False if not all of it was
 * written. A worker that died before is also noticed when it is reaped. */
static bool child_write_request(int fd, const struct strbuf *bytes)
{
    enum { PIPE_BYTES = 65536 };
    if (bytes->length > PIPE_BYTES)
        fcntl(fd, F_SETPIPE_SZ, (int)bytes->length);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return write(fd, bytes->data, bytes->length) == (ssize_t)bytes->length;
}

int child_start(struct child *child, const struct worker_request *request, double now_s,
                struct err *err)
{
    int request_ends[2] = {-1, -1}, answer_ends[2] = {-1, -1}, text_ends[2] = {-1, -1};
    int record_fd = child_make_record(request);
    struct worker_request asked = *request; /* a view */
    struct strbuf bytes = {0};
    pid_t pid = 0;
    asked.record = record_fd >= 0;
    worker_request_write(&asked, &bytes);
    int rc = child_make_pipe(request_ends, err);
    if (!rc)
        rc = child_make_pipe(answer_ends, err);
    if (!rc)
        rc = child_make_pipe(text_ends, err);
    if (rc)
        goto out;
    const struct worker_fds fds = {request_ends[0], answer_ends[1], text_ends[1], record_fd};
    int code = child_spawn(&fds, &pid);
    if (code) {
        rc = err_set(err, -code, "a worker process cannot be started: %s", strerror(code));
        goto out;
    }
    child_write_request(request_ends[1], &bytes);
    *child = (struct child){.state = CHILD_RUNNING,
                            .pid = pid,
                            .answer_fd = answer_ends[0],
                            .text_fd = text_ends[0],
                            .request_fd = request->task == WORKER_LIST ? request_ends[1] : -1,
                            .record_fd = record_fd,
                            .started_s = now_s};
    fcntl(child->answer_fd, F_SETFL, O_NONBLOCK);
    fcntl(child->text_fd, F_SETFL, O_NONBLOCK);
    answer_ends[0] = text_ends[0] = record_fd = -1;
    if (child->request_fd >= 0)
        request_ends[1] = -1;
out:
    for (int i = 0; i < 2; i++) {
        child_close(&request_ends[i]);
        child_close(&answer_ends[i]);
        child_close(&text_ends[i]);
    }
    child_close(&record_fd);
    strbuf_fini(&bytes);
    return rc;
}

int child_ask(struct child *child, const struct worker_request *request, double now_s)
{
    struct strbuf bytes = {0};
    if (child->state != CHILD_RUNNING || child->give_up_s > 0 || child->request_fd < 0)
        return -EPIPE;
    worker_request_write(request, &bytes);
    bool asked = child_write_request(child->request_fd, &bytes);
    strbuf_fini(&bytes);
    child_dismiss(child); /* what was written stays in the pipe */
    child->started_s = now_s;
    return asked ? 0 : -EPIPE;
}

void child_dismiss(struct child *child)
{
    if (child->pid)
        child_close(&child->request_fd);
}

int child_record(const struct child *child, struct strbuf *out_record, struct err *err)
{
    enum { BLOCK_BYTES = 65536 };
    char block[BLOCK_BYTES];
    ssize_t n = 0;
    if (!child->pid || child->record_fd < 0)
        return 0;
    for (off_t at = 0; (n = pread(child->record_fd, block, sizeof block, at)) > 0; at += n)
        strbuf_append(out_record, block, (size_t)n);
    return n < 0 ? err_set(err, -errno, "cannot read back what the worker recorded: %s",
                           strerror(errno))
                 : 0;
}

size_t child_poll(const struct child *child, struct pollfd *out_fds)
{
    size_t count = 0;
    if (child->state != CHILD_RUNNING)
        return 0;
    if (child->answer_fd >= 0)
        out_fds[count++] = (struct pollfd){.fd = child->answer_fd, .events = POLLIN};
    if (child->text_fd >= 0)
        out_fds[count++] = (struct pollfd){.fd = child->text_fd, .events = POLLIN};
    return count;
}

static void child_keep_stderr(struct child *child, const char *data, size_t length)
{
    if (length > CHILD_TAIL_BYTES) {
        data += length - CHILD_TAIL_BYTES;
        length = CHILD_TAIL_BYTES;
    }
    size_t excess = child->tail_length + length > CHILD_TAIL_BYTES
                        ? child->tail_length + length - CHILD_TAIL_BYTES
                        : 0;
    child->tail_length -= excess;
    memmove(child->tail, child->tail + excess, child->tail_length);
    memcpy(child->tail + child->tail_length, data, length);
    child->tail_length += length;
    child->tail[child->tail_length] = '\0';
}

/* Returns the number of bytes read; 0: nothing more for now. child_read_pipes limits the number of
 * blocks, so that a worker that floods its pipes does not block the rank. */
static ssize_t child_read_block(int *fd, char *block, size_t size)
{
    if (*fd < 0)
        return 0;
    ssize_t n = read(*fd, block, size);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        child_close(fd);
    return n > 0 ? n : 0;
}

static int child_take_frames(struct child *child, child_frame_taker *take, void *user,
                             struct err *err)
{
    struct frame frame;
    int rc = 0;
    while ((rc = frame_reader_next(&child->frames, &frame, err)) > 0) {
        rc = take(user, &frame, err);
        if (rc)
            return rc;
    }
    return rc;
}

static void child_read_pipes(struct child *child, double now_s, child_frame_taker *take, void *user,
                             struct err *err)
{
    enum { BLOCK_BYTES = 16384, BLOCKS_MAX = 64 };
    char block[BLOCK_BYTES];
    ssize_t n = 0;
    for (int i = 0; i < BLOCKS_MAX && (n = child_read_block(&child->text_fd, block, sizeof block));
         i++)
        child_keep_stderr(child, block, (size_t)n);
    for (int i = 0;
         i < BLOCKS_MAX && (n = child_read_block(&child->answer_fd, block, sizeof block)); i++) {
        if (child->end == CHILD_GARBAGE)
            continue;
        frame_reader_add(&child->frames, block, (size_t)n);
        if (child_take_frames(child, take, user, err))
            child_stop(child, CHILD_GARBAGE, now_s);
    }
}

/* Returns the state that the worker has now. */
static enum child_state child_reap(struct child *child)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT))
        return errno == ECHILD ? CHILD_VANISHED : CHILD_RUNNING;
    if (!info.si_pid)
        return CHILD_RUNNING;
    /* Kills the processes that the worker started. This comes before waitpid, while the group id
     * still belongs to the worker. */
    kill(-child->pid, SIGKILL);
    return waitpid(child->pid, &child->wait_status, 0) == child->pid ? CHILD_REAPED : CHILD_RUNNING;
}

void child_read(struct child *child, double now_s, child_frame_taker *take, void *user,
                struct err *err)
{
    if (child->state != CHILD_RUNNING)
        return;
    /* Reap first, then read: everything that the worker wrote is then in the pipes. */
    enum child_state state = child_reap(child);
    child_read_pipes(child, now_s, take, user, err);
    if (state == CHILD_RUNNING && child->give_up_s > 0 && now_s >= child->give_up_s)
        state = CHILD_GIVEN_UP;
    child->state = state; /* not before child_read_pipes: garbage must still count as the reason */
    if (state == CHILD_RUNNING)
        return;
    child_close(&child->answer_fd);
    child_close(&child->text_fd);
}

void child_stop(struct child *child, enum child_end end, double now_s)
{
    if (child->state != CHILD_RUNNING)
        return;
    double give_up_s = now_s + (end == CHILD_INTERRUPTED ? give_up_interrupted_s : give_up_after_s);
    bool stopped = child->give_up_s > 0;
    if (!stopped || give_up_s < child->give_up_s)
        child->give_up_s = give_up_s;
    if (stopped)
        return;
    child->end = end;
    kill(-child->pid, SIGKILL);
}

void child_fini(struct child *child)
{
    enum { WAITS = 100, WAIT_US = 10000 };
    if (child->state == CHILD_RUNNING) {
        kill(-child->pid, SIGKILL);
        for (int i = 0; i < WAITS && waitpid(child->pid, NULL, WNOHANG) == 0; i++)
            usleep(WAIT_US);
    }
    if (child->pid) {
        child_close(&child->request_fd);
        child_close(&child->answer_fd);
        child_close(&child->text_fd);
        child_close(&child->record_fd);
    }
    frame_reader_fini(&child->frames);
    memset(child, 0, sizeof *child);
}
