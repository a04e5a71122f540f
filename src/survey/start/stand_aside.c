/* A rank that has run out of memory waits for the end of the others. Nothing here allocates. */
#include "survey/start/stand_aside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* Without a spool nothing tells when the others have ended. The launcher ends this process then; if
 * it does not, this limit does. */
enum { BLIND_LIMIT_S = 120, PAUSE_MS = 200 };

static struct {
    int owner_fd, rank;
    pid_t parent;
} watched = {.owner_fd = -1};

void stand_aside_watch(int owner_fd, int rank)
{
    watched.owner_fd = owner_fd;
    watched.rank = rank;
}

/* True if a rank from `first` on holds its lock. Locks of this process's own file description do
 * not count. */
static bool stand_aside_others_hold_locks(int owner_fd, int first)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = 0};
    return fcntl(owner_fd, F_OFD_GETLK, &any) == 0 && any.l_type != F_UNLCK;
}

/* Until the others, from rank `first` on, have ended; SIGTERM and SIGINT end it. */
static void stand_aside_wait(int owner_fd, int first)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    double begin_s = clock_monotonic_s();
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    while (getppid() == watched.parent &&
           (owner_fd >= 0 ? stand_aside_others_hold_locks(owner_fd, first)
                          : clock_monotonic_s() - begin_s < BLIND_LIMIT_S))
        nanosleep(&pause, NULL);
}

void stand_aside_for_others(const char *owner)
{
    int fd = open(owner, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) /* the last one has removed it */
        return;
    stand_aside_wait(fd, 1); /* a rank 0 that hangs keeps its lock */
    close(fd);
}

static void stand_aside(size_t bytes)
{
    struct flock own = {
        .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = watched.rank, .l_len = 1};
    char wanted[48] = "";
    if (bytes)
        snprintf(wanted, sizeof wanted, ": %zu bytes were wanted", bytes);
    log_error("out of memory%s; results that this rank has not sent or spooled yet are lost, the "
              "other ranks go on",
              wanted);
    /* The last rank that holds a lock makes the inventory: it must not wait for this one. */
    if (watched.owner_fd >= 0)
        fcntl(watched.owner_fd, F_OFD_SETLK, &own);
    stand_aside_wait(watched.owner_fd, 0);
}

void stand_aside_when_exhausted(void)
{
    watched.parent = getppid();
    mem_on_exhausted(stand_aside);
}
