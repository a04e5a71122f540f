/* Standard descriptors that are closed. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* In a child of its own: 0 when fine, else which check failed. */
static int look(int closed)
{
    close(closed);
    io_fill_standard();
    if (open("/dev/null", O_RDWR) <= STDERR_FILENO)
        return 1;
    char byte = 0;
    ssize_t n = closed == STDIN_FILENO ? read(closed, &byte, 1) : write(closed, &byte, 1);
    return n == -1 && errno == EBADF ? 0 : 2;
}

static void fills_closed_descriptors(void **state)
{
    (void)state;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child)
            _exit(look(fd));
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fills_closed_descriptors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
