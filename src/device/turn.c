/* A turn is held by binding the name of an abstract socket: the kernel gives it to one process, and
 * frees it when that process ends, however it ends. A waiting process is connected to the socket
 * and notices when it closes. */
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

static socklen_t turn_make_address(uint64_t name, struct sockaddr_un *out_address)
{
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* A first byte of zero makes the name abstract: no file, no permissions, nothing to clean
     * up. */
    int length = snprintf(out_address->sun_path + 1, sizeof out_address->sun_path - 1,
                          "gpumemtopo/%016" PRIx64, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int turn_open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int turn_try(struct turn *turn)
{
    struct sockaddr_un address;
    socklen_t length = turn_make_address(turn->name, &address);
    int fd = turn_open_socket();
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
    socklen_t length = turn_make_address(turn->name, &address);
    int fd = turn_open_socket();
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
