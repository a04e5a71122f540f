/* Turns among processes: one at a time, freed by the holder's end, never waited for without bound.
 * Meetings of processes: all work while one measures, and who ends is not waited for. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "device/turn.h"

/* Between the processes of this test. */
static struct shared {
    atomic_int inside, overlaps, taken, ready;
} * shared;

static uint64_t name;

static int set_up(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    name = rng_derive((uint64_t)getpid(), "test_turn", clock_monotonic_ns());
    return shared == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(shared, sizeof *shared);
}

static void wait_until_ready(void)
{
    while (!atomic_load(&shared->ready))
        usleep(1000);
}

static double elapsed_s(double since_s)
{
    return clock_monotonic_s() - since_s;
}

static void one_at_a_time(void **state)
{
    (void)state;
    enum { PROCESSES = 4, ROUNDS = 25, PATIENCE_MS = 60000 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i])
            continue;
        struct turn turn = {.name = name};
        for (int round = 0; round < ROUNDS; round++) {
            if (!turn_take(&turn, PATIENCE_MS))
                _exit(1);
            if (atomic_fetch_add(&shared->inside, 1))
                atomic_fetch_add(&shared->overlaps, 1);
            atomic_fetch_add(&shared->taken, 1);
            usleep(500);
            atomic_fetch_sub(&shared->inside, 1);
            turn_give(&turn);
        }
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    assert_int_equal(atomic_load(&shared->taken), PROCESSES * ROUNDS);
}

/* Another process has the turn and keeps it until it is killed. */
static pid_t keep_it(void)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct turn turn = {.name = name};
        bool got = turn_take(&turn, 1000);
        atomic_store(&shared->ready, 1);
        for (;;)
            got ? pause() : _exit(1);
    }
    wait_until_ready();
    return child;
}

static void end(pid_t child)
{
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void ends_with_its_holder(void **state)
{
    (void)state;
    struct turn turn = {.name = name}, other = {.name = name + 1};
    pid_t child = keep_it();
    assert_true(turn_take(&other, 0)); /* another name is free */
    turn_give(&other);
    pid_t killer = fork();
    if (killer == 0) {
        usleep(100000);
        kill(child, SIGKILL);
        _exit(0);
    }
    double begin_s = clock_monotonic_s();
    assert_true(turn_take(&turn, 60000));
    assert_true(elapsed_s(begin_s) < 30);
    turn_give(&turn);
    turn_give(&turn); /* once more is harmless */
    end(child);
    assert_int_equal(waitpid(killer, NULL, 0), killer);
}

/* In vain once: afterwards one try each, until it is free again. */
static void patience_ends(void **state)
{
    (void)state;
    enum { PATIENCE_MS = 150 };
    struct turn turn = {.name = name};
    pid_t child = keep_it();
    double begin_s = clock_monotonic_s();
    assert_false(turn_take(&turn, PATIENCE_MS));
    assert_true(elapsed_s(begin_s) >= PATIENCE_MS / 1e3);
    begin_s = clock_monotonic_s();
    for (int i = 0; i < 1000; i++)
        assert_false(turn_take(&turn, 60000));
    assert_true(elapsed_s(begin_s) < 30);
    turn_give(&turn); /* what is not held */
    end(child);
    assert_true(turn_take(&turn, 60000));
    turn_give(&turn);
}

/* A member of a meeting. The last one ends as soon as it is there. */
static void take_part(size_t own, size_t count)
{
    struct meeting meeting;
    meeting_init(&meeting, count, own);
    for (size_t i = 0; i < count; i++) {
        meeting.names[i] = name + 10 * i;
        meeting.coming[i] = name + 10 * i + MEETING_PHASES;
    }
    struct flag coming = {.name = meeting.coming[own]};
    bool fine = flag_raise(&coming) == 0;
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < (int)count)
        usleep(1000);
    usleep(20000 * (useconds_t)own); /* some come later */
    fine = fine && meeting_enter(&meeting, MEETING_HERE) == 0;
    while (!meeting_reached(&meeting, MEETING_HERE))
        usleep(1000);
    if (own + 1 == count)
        _exit(0);
    atomic_fetch_add(&shared->inside, 1);
    fine = fine && meeting_enter(&meeting, MEETING_ACTIVE) == 0;
    while (!meeting_reached(&meeting, MEETING_ACTIVE))
        usleep(1000);
    fine = fine && meeting_present(&meeting) == count - 1;
    for (int i = 0; i < 20; i++, usleep(1000)) /* nobody leaves while one measures */
        atomic_fetch_add(&shared->overlaps, atomic_load(&shared->inside) != (int)count - 1);
    fine = fine && meeting_enter(&meeting, MEETING_DONE) == 0;
    while (!meeting_reached(&meeting, MEETING_DONE))
        usleep(1000);
    atomic_fetch_sub(&shared->inside, 1);
    meeting_leave(&meeting);
    _exit(!fine);
}

static void meetings(void **state)
{
    (void)state;
    enum { MEMBERS = 4 };
    for (size_t i = 0; i < MEMBERS; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            take_part(i, MEMBERS);
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(atomic_load(&shared->overlaps), 0);
    assert_false(flag_is_up(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_with_its_holder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(patience_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(meetings, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
