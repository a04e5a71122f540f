/* Name and boot id of this machine. */
#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

void host_name(char out_name[HOST_NAME_MAX_BYTES])
{
    char name[HOST_NAME_MAX_BYTES] = "";
    bool known = gethostname(name, sizeof name - 1) == 0 && name[0];
    strcpy(out_name, known ? name : "localhost");
}

char *host_boot_id(void)
{
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    return n > 0 ? str_copy_n(text, (size_t)n) : NULL;
}
