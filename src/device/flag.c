/* A raised flag is the bound name of an abstract datagram socket. The kernel frees the name with
 * its process. To look at a flag, a process connects to the name; nothing is ever sent. */
#include "device/flag.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t flag_make_address(uint64_t name, struct sockaddr_un *out_address)
{
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    /* A first byte of zero makes the name abstract: there is no file. */
    int length = snprintf(out_address->sun_path + 1, sizeof out_address->sun_path - 1,
                          "gpumemtopo/flag/%016" PRIx64, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int flag_open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int flag_raise(struct flag *flag)
{
    struct sockaddr_un address;
    socklen_t length = flag_make_address(flag->name, &address);
    if (flag->raised)
        return 0;
    int fd = flag_open_socket();
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
    socklen_t length = flag_make_address(name, &address);
    int fd = flag_open_socket();
    if (fd < 0)
        return false;
    bool up = connect(fd, (const struct sockaddr *)&address, length) == 0;
    close(fd);
    return up;
}
