/* What a process that is held up for too long leaves behind. */
#include "../check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "survey/watchdog.h"

enum { CODE = 7 };

static void last_word(void)
{
    ssize_t written = write(STDERR_FILENO, "last", 4);
    (void)written;
}

/* Its exit code; what it wrote to stderr goes to `out_said`. */
static int held_up(const char *line, void (*last)(void), char *out_said, size_t capacity)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        watchdog_start(1, line, last, CODE);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ssize_t length = read(ends[0], out_said, capacity - 1);
    assert_true(length >= 0);
    out_said[length] = '\0';
    close(ends[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says_calls_and_leaves(void **state)
{
    (void)state;
    char said[64];
    assert_int_equal(held_up("line ", last_word, said, sizeof said), CODE);
    assert_string_equal(said, "line last");
    assert_int_equal(held_up(NULL, NULL, said, sizeof said), CODE);
    assert_string_equal(said, "");
}

static void one_that_is_stopped_does_nothing(void **state)
{
    (void)state;
    watchdog_start(1, "line", last_word, CODE);
    watchdog_stop();
    assert_int_equal(alarm(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_calls_and_leaves),
        cmocka_unit_test(one_that_is_stopped_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
