/* What a wrapper finds in its exit file, whoever writes first. */
#include "../check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "survey/start/exit_file.h"

static char path[] = "/tmp/gpumemtopo-test-XXXXXX";

static int empty_file(void **state)
{
    (void)state;
    setenv("GPUMEMTOPO_EXIT_FILE", path, 1);
    return truncate(path, 0);
}

static void assert_file(const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static void without_a_file_the_caller_decides(void **state)
{
    (void)state;
    static const char *const none[] = {NULL, "/nowhere/code"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        unsetenv("GPUMEMTOPO_EXIT_FILE");
        if (none[i])
            setenv("GPUMEMTOPO_EXIT_FILE", none[i], 1);
        assert_int_equal(exit_file_write(3, false), 3);
        assert_true(exit_file_claim_loss(true));
        assert_false(exit_file_claim_loss(false));
    }
}

static void the_first_tells(void **state)
{
    (void)state;
    assert_true(exit_file_claim_loss(false));
    assert_false(exit_file_claim_loss(true));
    assert_file("1 lost\n");
}

/* Before the others or after them. */
static void rank_0_has_the_last_word(void **state)
{
    (void)state;
    assert_int_equal(exit_file_write(4, true), 0);
    assert_file("4 lost\n");
    assert_false(exit_file_claim_loss(true));
    assert_file("4 lost\n");
    assert_int_equal(truncate(path, 0), 0);
    assert_true(exit_file_claim_loss(true));
    assert_int_equal(exit_file_write(0, false), 0);
    assert_file("0\n");
}

/* One that looks whether the file is empty, and then writes, is not come between. */
static void one_at_a_time(void **state)
{
    (void)state;
    enum { PAUSE_US = 200000 };
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(flock(fileno(file), LOCK_EX), 0);
    pid_t rank_0 = fork();
    if (rank_0 == 0) {
        fclose(file);
        _exit(exit_file_write(4, false));
    }
    usleep(PAUSE_US);
    fputs("1 lost\n", file);
    fclose(file);
    int status = 0;
    assert_int_equal(waitpid(rank_0, &status, 0), rank_0);
    assert_int_equal(status, 0);
    assert_file("4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_file_the_caller_decides, empty_file),
        cmocka_unit_test_setup(the_first_tells, empty_file),
        cmocka_unit_test_setup(rank_0_has_the_last_word, empty_file),
        cmocka_unit_test_setup(one_at_a_time, empty_file),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
