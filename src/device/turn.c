/* A turn is held, and a flag is up, by the bound name of an abstract socket: the kernel gives it to
 * one process, and frees it when that process ends, however it ends. */
#include "device/turn.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

enum { BACKLOG = 128, RETRY_US = 200, AFTER_YOU_US = 1000 };

static socklen_t socket_address(const char *folder, uint64_t name, struct sockaddr_un *out_address)
{
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* A first byte of zero makes the name abstract: no file, no permissions, nothing to clean
     * up. */
    int length = snprintf(out_address->sun_path + 1, sizeof out_address->sun_path - 1,
                          "gpumemtopo/%s%016" PRIx64, folder, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int socket_open(int type)
{
    return socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A process that waits for a turn is connected to its socket and notices when it closes. */

int turn_try(struct turn *turn)
{
    struct sockaddr_un address;
    socklen_t length = socket_address("", turn->name, &address);
    int fd = socket_open(SOCK_STREAM);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, length) || listen(fd, BACKLOG)) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    turn->fd = fd;
    turn->held = true;
    return 0;
}

bool turn_claim(const char *what, const char *name)
{
    char *whole = str_format("%s/%s", what, name);
    struct turn turn = {.name = whole ? str_hash(whole) : 0};
    int rc = whole ? turn_try(&turn) : 0; /* never closed: held until the process ends */
    free(whole);
    return rc != -EADDRINUSE;
}

void turn_await(const struct turn *turn, int ms)
{
    struct sockaddr_un address;
    socklen_t length = socket_address("", turn->name, &address);
    int fd = socket_open(SOCK_STREAM);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, length) == 0) {
        struct pollfd wait = {.fd = fd};
        poll(&wait, 1, ms);
    } else {
        usleep(RETRY_US); /* the holder has just left, or does not listen yet */
    }
    if (fd >= 0)
        close(fd);
}

bool turn_take(struct turn *turn, int patience_ms)
{
    const uint64_t begin_ns = clock_monotonic_ns();
    if (turn->contended && !turn->impatient)
        usleep(AFTER_YOU_US);
    for (;;) {
        int rc = turn_try(turn);
        if (!rc)
            return true;
        int waited_ms = (int)((clock_monotonic_ns() - begin_ns) / 1000000);
        if (rc != -EADDRINUSE || turn->impatient || waited_ms >= patience_ms) {
            turn->impatient = true;
            return false;
        }
        turn_await(turn, patience_ms - waited_ms);
    }
}

void turn_give(struct turn *turn)
{
    if (!turn->held)
        return;
    struct pollfd waiting = {.fd = turn->fd, .events = POLLIN};
    turn->contended = poll(&waiting, 1, 0) > 0;
    close(turn->fd);
    turn->held = false;
}

/* To look at a flag, a process connects to its name; nothing is ever sent. */

int flag_raise(struct flag *flag)
{
    struct sockaddr_un address;
    socklen_t length = socket_address("flag/", flag->name, &address);
    if (flag->raised)
        return 0;
    int fd = socket_open(SOCK_DGRAM);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, length)) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    flag->fd = fd;
    flag->raised = true;
    return 0;
}

void flag_lower(struct flag *flag)
{
    if (flag->raised)
        close(flag->fd);
    flag->raised = false;
}

bool flag_is_up(uint64_t name)
{
    struct sockaddr_un address;
    socklen_t length = socket_address("flag/", name, &address);
    int fd = socket_open(SOCK_DGRAM);
    if (fd < 0)
        return false;
    bool up = connect(fd, (const struct sockaddr *)&address, length) == 0;
    close(fd);
    return up;
}

/* A member lowers none of its flags before it leaves. So a member whose flag of the phase before is
 * down has left. */

static uint64_t meeting_flag_name(const struct meeting *meeting, size_t member,
                                  enum meeting_phase phase)
{
    return meeting->names[member] + (uint64_t)phase;
}

void meeting_init(struct meeting *meeting, size_t count, size_t own)
{
    *meeting = (struct meeting){.count = count, .own = own};
}

int meeting_enter(struct meeting *meeting, enum meeting_phase phase)
{
    meeting->flags[phase].name = meeting_flag_name(meeting, meeting->own, phase);
    return flag_raise(&meeting->flags[phase]);
}

bool meeting_reached(struct meeting *meeting, enum meeting_phase phase)
{
    bool all = true;
    for (size_t i = 0; i < meeting->count; i++) {
        /* Who is not known yet may still begin, as long as others are waited for. */
        if (i == meeting->own || (meeting->absent[i] && phase != MEETING_HERE))
            continue;
        /* Whether it may still come is looked at before the phase itself, so that no step is
         * missed. */
        bool may = flag_is_up(phase == MEETING_HERE ? meeting->coming[i]
                                                    : meeting_flag_name(meeting, i, phase - 1));
        bool there = flag_is_up(meeting_flag_name(meeting, i, phase));
        meeting->absent[i] = !there && !may;
        all = all && (there || !may);
    }
    return all;
}

size_t meeting_present(const struct meeting *meeting)
{
    size_t present = 0;
    for (size_t i = 0; i < meeting->count; i++)
        present += !meeting->absent[i];
    return present;
}

void meeting_leave(struct meeting *meeting)
{
    for (int phase = MEETING_PHASES - 1; phase >= 0; phase--)
        flag_lower(&meeting->flags[phase]);
}
