/* Who owns a spool folder: one survey at a time, stale owners recognised, the last process known.
 */
#include "../check.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_owner.h"

static char parent[] = "/tmp/gpumemtopo-test-XXXXXX";
static char *folder;

static int set_up(void **state)
{
    (void)state;
    strcpy(parent + sizeof parent - 7, "XXXXXX");
    if (!mkdtemp(parent))
        return -1;
    folder = str_format("%s/spool", parent);
    return folder ? 0 : -1;
}

/* Removes all that is two folders deep. */
static int tear_down(void **state)
{
    (void)state;
    char *command = str_format("rm -rf %s", parent);
    int rc = command ? system(command) : -1;
    free(command);
    free(folder);
    return rc;
}

static int join_as(int rank, const char *job, const char *survey, struct spool_owner *out_owner,
                   char **out_aside)
{
    const struct spool_candidate candidate = {
        .folder = folder,
        .rank = rank,
        .exclusive = true,
        .job = job,
        .output = "/there/out.yaml",
        .who = survey,
        .survey = survey,
    };
    struct err err = {0};
    int rc = spool_owner_join(&candidate, out_owner, out_aside, &err);
    if (rc == -EBUSY)
        assert_non_null(strstr(err.text, "another survey is running"));
    return rc;
}

static void put_result(const char *survey)
{
    const struct spool_origin origin = {
        .survey = (char *)survey, .version = (char *)"1", .backend = (char *)"sim"};
    const struct gpu_result gpu = {.uuid = (char *)"GPU-1", .node = (char *)"n"};
    struct err err = {0};
    assert_int_equal(spool_write_gpu(folder, &origin, &gpu, &err), 0);
}

static int join(const char *job, const char *survey, struct spool_owner *out_owner,
                char **out_aside)
{
    return join_as(3, job, survey, out_owner, out_aside);
}

/* In a process of its own, which is killed when the pipe's other end closes. */
static pid_t join_elsewhere(int rank, const char *job, const char *survey, int *out_rc)
{
    int ends[2], rc = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct spool_owner owner = {0};
        char *aside = NULL;
        rc = join_as(rank, job, survey, &owner, &aside);
        if (write(ends[1], &rc, sizeof rc) != sizeof rc)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &rc, sizeof rc), sizeof rc);
    close(ends[0]);
    *out_rc = rc;
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void one_survey_at_a_time(void **state)
{
    (void)state;
    struct spool_owner owner = {0}, joined = {0};
    char *aside = NULL;
    int rc = 0;
    pid_t other = join_elsewhere(5, "job-1", "first", &rc);
    assert_int_equal(rc, 0);
    put_result("first");
    assert_int_equal(join("job-2", "second", &owner, &aside), -EBUSY);
    assert_int_equal(join("", "second", &owner, &aside), -EBUSY);
    assert_int_equal(join("job-1", "third", &joined, &aside), 0); /* the same job joins */
    assert_string_equal(joined.identity.survey, "first");
    end(other);
    assert_int_equal(join("job-2", "second", &owner, &aside), -EBUSY); /* one of them is left */
    spool_owner_fini(&joined);
    assert_null(aside);
    assert_int_equal(join("job-2", "second", &owner, &aside), 0);
    assert_non_null(aside); /* nobody's any more, but not lost */
    assert_true(spool_has_files(aside));
    assert_false(spool_has_files(folder));
    assert_string_equal(owner.identity.survey, "second");
    assert_string_equal(owner.identity.output, "/there/out.yaml");
    spool_owner_fini(&owner);
    free(aside);
}

/* A process that is stopped is not gone. */
static void who_stands_still_owns_it(void **state)
{
    (void)state;
    struct spool_owner owner = {0};
    char *aside = NULL;
    int rc = 0;
    pid_t other = join_elsewhere(5, "job-1", "first", &rc);
    assert_int_equal(kill(other, SIGSTOP), 0);
    assert_int_equal(join("job-2", "second", &owner, &aside), -EBUSY);
    end(other);
    assert_int_equal(join("job-2", "second", &owner, &aside), 0);
    assert_null(aside); /* nothing was in it */
    spool_owner_fini(&owner);
}

static void a_late_rank_finds_its_survey(void **state)
{
    (void)state;
    struct spool_owner owner = {0};
    char *aside = NULL;
    int rc = 0;
    end(join_elsewhere(5, "job-1", "first", &rc));
    put_result("first");
    assert_int_equal(join("job-1", "second", &owner, &aside), 0);
    assert_null(aside);
    assert_string_equal(owner.identity.survey, "first");
    assert_true(spool_has_files(folder));
    spool_owner_fini(&owner);
}

static void the_last_one_is_known(void **state)
{
    (void)state;
    struct spool_owner owner = {0}, second = {0};
    struct err err = {0};
    char *aside = NULL;
    int rc = 0;
    /* First of all: a process keeps what was locked before it was forked. */
    pid_t other = join_elsewhere(5, "job-1", "first", &rc);
    pid_t rank_0 = join_elsewhere(0, "job-1", "first", &rc);
    assert_int_equal(join("job-1", "first", &owner, &aside), 0);
    assert_int_equal(spool_owner_open(owner.path, 7, &second, &err), 0);
    spool_owner_fini(&owner);
    assert_int_equal(spool_owner_leave(&second), SPOOL_OTHERS);
    end(other);
    assert_int_equal(spool_owner_leave(&second), SPOOL_RANK_0);
    end(rank_0);
    assert_int_equal(spool_owner_leave(&second), SPOOL_NOBODY);
    assert_int_equal(second.identity.merged, 0);
    spool_owner_set_merged(&second, 17, 4);
    spool_owner_fini(&second);
    assert_int_equal(join("job-1", "first", &owner, &aside), 0);
    assert_int_equal(owner.identity.merged, 17);
    assert_int_equal(owner.identity.exit_code, 4);
    spool_owner_remove(&owner);
    assert_int_equal(spool_owner_leave(&owner), SPOOL_GONE);
    assert_int_equal(spool_owner_open(owner.path, 7, &second, &err), -ENOENT);
    spool_owner_fini(&owner);
}

/* A folder that a user named may serve several surveys, each with an output of its own. */
static void a_named_folder_is_shared(void **state)
{
    (void)state;
    struct spool_candidate candidate = {.folder = folder, .job = "", .survey = "s", .who = "w"};
    struct spool_owner owners[2] = {{0}}, third = {0};
    struct err err = {0};
    char *aside = NULL;
    candidate.output = "/a.yaml";
    assert_int_equal(spool_owner_join(&candidate, &owners[0], &aside, &err), 0);
    put_result("s");
    candidate.output = "/b.yaml";
    assert_int_equal(spool_owner_join(&candidate, &owners[1], &aside, &err), 0);
    assert_int_equal(spool_owner_join(&candidate, &third, &aside, &err), -EBUSY);
    assert_null(aside);
    assert_true(spool_has_files(folder));
    spool_owner_fini(&owners[0]);
    spool_owner_fini(&owners[1]);
}

/* Many that come and go at once: never two that believe to be alone, nor one that waits in vain. */
static void hundreds_come_and_go(void **state)
{
    (void)state;
    enum { PROCESSES = 40, TIMES = 25 };
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid)
            continue;
        char *mark = str_format("%s/mark", parent);
        for (int k = 0; k < TIMES; k++) {
            struct spool_owner owner = {0};
            char *aside = NULL;
            if (join_as(i, "job", "s", &owner, &aside))
                _exit(1);
            if (spool_owner_leave(&owner) == SPOOL_NOBODY && (mkdir(mark, 0777) || rmdir(mark)))
                _exit(2); /* somebody else is last, too */
            spool_owner_fini(&owner);
        }
        _exit(0);
    }
    for (int status, left = PROCESSES; left; left--) {
        assert_true(wait(&status) > 0);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
}

/* Of processes that leave at the same moment exactly one is the last, and does what is left to do
 * before another could be. */
static void one_is_last(void **state)
{
    (void)state;
    enum { ROUNDS = 300, PROCESSES = 3, LAST = 9 };
    for (int round = 0; round < ROUNDS; round++) {
        struct spool_owner first = {0};
        char *aside = NULL;
        int gate[2], there[2], last = 0;
        assert_int_equal(join_as(0, "job", "s", &first, &aside), 0);
        assert_int_equal(pipe(gate), 0);
        assert_int_equal(pipe(there), 0);
        for (int i = 1; i <= PROCESSES; i++) {
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid)
                continue;
            struct spool_owner owner = {0};
            struct err err = {0};
            char byte = 0;
            close(gate[1]);
            close(first.fd);
            if (spool_owner_open(first.path, i, &owner, &err) || write(there[1], &byte, 1) != 1 ||
                read(gate[0], &byte, 1))
                _exit(1);
            if (spool_owner_leave(&owner) != SPOOL_NOBODY)
                _exit(0);
            spool_owner_remove(&owner);
            _exit(LAST);
        }
        spool_owner_fini(&first); /* rank 0 is gone */
        for (int i = 0; i < PROCESSES; i++)
            assert_int_equal(read(there[0], &(char){0}, 1), 1);
        close(gate[1]);
        close(gate[0]);
        close(there[0]);
        close(there[1]);
        for (int status, left = PROCESSES; left; left--) {
            assert_true(wait(&status) > 0);
            assert_true(status == 0 || WEXITSTATUS(status) == LAST);
            last += WEXITSTATUS(status) == LAST;
        }
        assert_int_equal(last, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_survey_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_stands_still_owns_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_late_rank_finds_its_survey, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_one_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_named_folder_is_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hundreds_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_is_last, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
