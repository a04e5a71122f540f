/* Ranks that speak by files in a folder. */
#include "../check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "survey/comm_folder.h"

static char base[] = "/tmp/gpumemtopo-test-XXXXXX";
static char folder[64];

static struct comm *join(int rank)
{
    struct comm *comm = NULL;
    struct err err = {0};
    assert_int_equal(comm_folder_create(folder, rank, 4, 1, NULL, &comm, &err), 0);
    assert_int_equal(comm->rank, rank);
    return comm;
}

static void say(struct comm *comm, int to, const char *text)
{
    struct err err = {0};
    assert_int_equal(comm_send(comm, to, 7, text, strlen(text), &err), 0);
}

/* The next message, within two seconds; its sender. */
static int hear(struct comm *comm, char *out_text, size_t capacity)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    struct comm_message message;
    struct err err = {0};
    for (int i = 0; i < 400; i++) {
        int rc = comm_receive(comm, &message, &err);
        assert_true(rc >= 0);
        if (rc == 1) {
            snprintf(out_text, capacity, "%.*s", (int)message.frame.length,
                     (const char *)message.frame.payload);
            int from = message.from;
            comm_message_fini(&message);
            return from;
        }
        nanosleep(&pause, NULL);
    }
    return -1;
}

static bool gone(void)
{
    struct stat info;
    return stat(folder, &info) && errno == ENOENT;
}

static void messages_come_in_order(void **state)
{
    (void)state;
    char text[32], expected[32];
    struct comm *zero = join(0), *one = join(1);
    assert_true(comm_leads(zero) && !comm_leads(one) && one->root == 0);
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "message %d", i);
        say(one, 0, text);
    }
    assert_int_equal(one->ops->flush(one), 300);
    for (int i = 0; i < 300; i++) {
        snprintf(expected, sizeof expected, "message %d", i);
        assert_int_equal(hear(zero, text, sizeof text), 1);
        assert_string_equal(text, expected);
    }
    assert_int_equal(one->ops->flush(one), 0);
    say(zero, 1, "answer");
    say(one, 1, "to itself");
    assert_int_equal(hear(one, text, sizeof text), 1);
    assert_int_equal(hear(one, text, sizeof text), 0);
    assert_string_equal(text, "answer");
    comm_destroy(one);
    assert_false(gone());
    comm_destroy(zero);
    assert_true(gone());
}

static void *join_three(void *out_comm)
{
    *(struct comm **)out_comm = join(3);
    return NULL;
}

/* The lowest that came leads; who comes later follows, be it rank 0. */
static void somebody_leads(void **state)
{
    (void)state;
    pthread_t thread;
    struct comm *three = NULL;
    assert_false(comm_folder_open(folder));
    assert_int_equal(pthread_create(&thread, NULL, join_three, &three), 0);
    struct comm *two = join(2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(comm_folder_open(folder));
    assert_true(comm_leads(two) && three->root == 2);
    struct comm *zero = join(0);
    assert_int_equal(zero->root, 2);
    comm_destroy(two);
    comm_destroy(zero);
    comm_destroy(three);
    assert_true(gone());
}

/* Who comes late must not take the time until somebody leads for one in which nobody meets. */
static void it_is_open_before_somebody_leads(void **state)
{
    (void)state;
    const struct timespec pause = {.tv_nsec = 5000000};
    char box[80];
    pthread_t thread;
    struct comm *three = NULL;
    snprintf(box, sizeof box, "%s/to-3", folder);
    assert_int_equal(pthread_create(&thread, NULL, join_three, &three), 0);
    while (access(box, F_OK))
        nanosleep(&pause, NULL);
    bool open = comm_folder_open(folder);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(open);
    comm_destroy(three);
    assert_true(gone());
}

static bool at_once(void)
{
    return true;
}

static void a_signal_hurries_them(void **state)
{
    (void)state;
    struct comm *comm = NULL;
    struct err err = {0};
    assert_int_equal(comm_folder_create(folder, 3, 4, 3600, at_once, &comm, &err), 0);
    assert_true(comm_leads(comm));
    comm_destroy(comm);
    assert_true(gone());
}

static void nothing_stays_of_who_never_came_or_died(void **state)
{
    (void)state;
    struct comm *zero = join(0), *one = join(1), *dead = join(2);
    say(zero, 3, "nobody");
    say(one, 3, "nobody");
    assert_int_equal(zero->ops->flush(zero), 0);
    say(zero, 2, "to the dead");
    comm_destroy(one);
    comm_destroy(zero);
    assert_true(gone());
    comm_destroy(dead);
}

static void nothing_stays_of_a_root_that_died(void **state)
{
    (void)state;
    char path[80];
    struct comm *zero = join(0), *one = join(1);
    say(one, 0, "to the dead");
    snprintf(path, sizeof path, "%s/to-0/00000001-5.tmp", folder);
    FILE *half = fopen(path, "w");
    assert_non_null(half);
    fclose(half);
    one->rootless = true;
    comm_destroy(one);
    assert_true(gone());
    comm_destroy(zero);
}

static void a_closed_folder_is_left_alone(void **state)
{
    (void)state;
    struct comm *comm = NULL;
    struct err err = {0};
    assert_int_equal(comm_folder_close(folder, &err), 1);
    assert_int_equal(comm_folder_close(folder, &err), 0);
    assert_false(comm_folder_open(folder));
    assert_int_equal(comm_folder_create(folder, 1, 4, 0.2, NULL, &comm, &err), -ESTALE);
    comm_folder_remove_closed(folder);
    assert_true(gone());
    comm = join(0);
    assert_int_equal(comm_folder_close(folder, &err), -EEXIST);
    comm_folder_remove_closed(folder);
    assert_true(comm_folder_open(folder));
    comm_destroy(comm);
    assert_true(gone());
}

static void put(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/to-0/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* What is no message costs itself. */
static void damage_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"00000001-000000000000", "00000009-000000000000",
                                        "garbage"};
    struct comm *zero = join(0);
    for (size_t i = 0; i < 3; i++) {
        const struct timespec pause = {.tv_nsec = 30000000};
        struct comm_message message;
        struct err err = {0};
        put(names[i], "no frame at all, and long enough to be one, it seems");
        nanosleep(&pause, NULL);
        assert_int_equal(comm_receive(zero, &message, &err), -EBADMSG);
        nanosleep(&pause, NULL);
        assert_int_equal(comm_receive(zero, &message, &err), 0);
    }
    comm_destroy(zero);
    assert_true(gone());
}

/* A full file system takes the name of a file but not what is in it. */
static void a_full_one_leaves_nothing(void **state)
{
    (void)state;
    struct rlimit was, none;
    struct err err = {0};
    struct comm *zero = join(0), *one = join(1);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int rc = comm_send(one, 0, 7, "text", 4, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, -EFBIG);
    char box[80];
    snprintf(box, sizeof box, "%s/to-0", folder);
    assert_int_equal(rmdir(box), 0); /* is empty */
    comm_destroy(one);
    comm_destroy(zero);
    assert_true(gone());
}

/* The root of an earlier job of that name leads when it has come, not before. */
static void a_root_is_waited_for(void **state)
{
    (void)state;
    char root[80];
    pthread_t thread;
    struct comm *three = NULL;
    snprintf(root, sizeof root, "%s/root", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(symlink("2", root), 0);
    assert_int_equal(pthread_create(&thread, NULL, join_three, &three), 0);
    const struct timespec pause = {.tv_sec = 1, .tv_nsec = 200000000};
    nanosleep(&pause, NULL);
    assert_null(three);
    struct comm *two = join(2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(three->root, 2);
    comm_destroy(three);
    comm_destroy(two);
    assert_true(gone());
}

static void others_folders_are_refused(void **state)
{
    (void)state;
    struct comm *comm = NULL;
    struct err err = {0};
    assert_int_equal(symlink(base, folder), 0);
    assert_int_equal(comm_folder_create(folder, 0, 2, 0.1, NULL, &comm, &err), -EPERM);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(comm_folder_create("/nowhere/at/all", 0, 2, 0.1, NULL, &comm, &err), -ENOENT);
    if (geteuid() == 0) {
        assert_int_equal(mkdir(folder, 0777), 0);
        assert_int_equal(chown(folder, 12345, 12345), 0);
        assert_int_equal(comm_folder_create(folder, 0, 2, 0.1, NULL, &comm, &err), -EPERM);
        assert_int_equal(rmdir(folder), 0);
    }
    assert_null(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_in_order),
        cmocka_unit_test(somebody_leads),
        cmocka_unit_test(it_is_open_before_somebody_leads),
        cmocka_unit_test(a_signal_hurries_them),
        cmocka_unit_test(nothing_stays_of_who_never_came_or_died),
        cmocka_unit_test(nothing_stays_of_a_root_that_died),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(a_full_one_leaves_nothing),
        cmocka_unit_test(a_root_is_waited_for),
        cmocka_unit_test(others_folders_are_refused),
        cmocka_unit_test(a_closed_folder_is_left_alone),
    };
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof folder, "%s/meeting", base);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(base) ? 1 : failed;
}
