/* Whole writes to descriptors. */
#include "base/io.h"

#include <errno.h>
#include <unistd.h>

int io_write_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}
