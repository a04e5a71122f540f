/* Standard descriptors that are closed; files that must not be replaced. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/new_file.h"

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

/* A rename would replace a pipe or device; as root even /dev/null. */
static void new_file_replaces_files_only(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpumemtopo-io-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(symlink("pipe", "link"), 0);
    static const struct {
        const char *path;
        int code;
    } rows[] = {{"pipe", -EINVAL}, {"link", -EINVAL}, {".", -EISDIR}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct new_file file = {0};
        struct err err = {0};
        assert_int_equal(new_file_create(rows[i].path, &file, &err), rows[i].code);
        assert_true(err.text[0]);
    }
    assert_int_equal(unlink("link") + unlink("pipe") + chdir("/") + rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_closed_descriptors),
        cmocka_unit_test(new_file_replaces_files_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
