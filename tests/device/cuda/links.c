/* Links to other GPUs and to the host, on a stand-in driver with three GPUs. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/turn.h"

uint64_t cuda_turn_name(const char *uuid);

static const struct device_host_share share = {
    .kind = DEVICE_STREAM_H2D, .bytes = 4 << 20, .window_ms = 50, .limit_ms = 600000};

/* Holds the turn of a GPU for a moment, in another process. */
static void hold_for_a_moment(const char *uuid)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    if (fork() == 0) {
        struct turn turn = {.name = cuda_turn_name(uuid)};
        if (turn_try(&turn) || write(ready[1], &byte, 1) != 1)
            _exit(1);
        usleep(200000);
        _exit(0);
    }
    close(ready[1]); /* so that the read ends if the other process could not take the turn */
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
}

/* A link on which the driver hangs costs its own time, and the links after it. */
static void check_hanging_link(struct device_peer_test test)
{
    struct device_peer_answer answer;
    struct err err = {0};
    int status;
    if (fork() == 0) { /* its thread is left behind */
        test.limit_ms = 100;
        setenv("FAKE_CUDA_HANG", "1", 1);
        bool right = device_test_peer(device, &test, &answer, &err) == -ETIMEDOUT &&
                     device_test_peer(device, &test, &answer, &err) == -ECANCELED;
        _exit(!right);
    }
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
}

/* A stand-in with three GPUs: what is copied comes back right; an error, and data that arrive
 * wrong, are those of the pair; a peer that is being measured is waited for. */
static void links(void **state)
{
    (void)state;
    const struct device_peer_test test = {
        .peer = 2, .bytes = 4 << 20, .loads = 8, .wait_ms = 60000, .limit_ms = 60000};
    struct device_peer_answer answer;
    struct facts gpus = {0};
    struct err err = {0};
    assert_int_equal(device_list_peers(device, &gpus, &err), 0);
    assert_memory_equal(facts_text(&gpus, "own"), "GPU-00112233-4455-6677-8899-aabb", 32);
    assert_memory_equal(facts_text(&gpus, "2"), "GPU-02112233-4455-6677-8899-aabb", 32);
    assert_null(facts_get(&gpus, "3"));
    struct device_peer_test hasty = test;
    hasty.wait_ms = 0;
    hold_for_a_moment(facts_text(&gpus, "2"));
    assert_int_equal(device_test_peer(device, &hasty, &answer, &err), -EAGAIN);
    assert_int_equal(device_test_peer(device, &test, &answer, &err), 0);
    assert_int_equal(wait(NULL) > 0, 1);
    assert_true(answer.mapped && answer.wrong_words == 0);
    assert_true(answer.copy_read_ns == 1000000 && answer.copy_both_ns == 1000000 &&
                answer.read_ns == 1000000 && answer.write_ns == 1000000 &&
                answer.both_ns == 1000000 && answer.chase_ns == 1000000);
    assert_int_equal(setenv("FAKE_CUDA_APART", "1", 1), 0);
    assert_int_equal(device_test_peer(device, &test, &answer, &err), 0);
    assert_true(!answer.mapped && answer.read_ns == 0 && answer.copy_write_ns == 1000000);
    assert_int_equal(unsetenv("FAKE_CUDA_APART"), 0);
    assert_int_equal(setenv("FAKE_CUDA_WRONG", "64", 1), 0);
    assert_int_equal(device_test_peer(device, &test, &answer, &err), 0);
    assert_int_equal(answer.wrong_words, 1);
    assert_int_equal(unsetenv("FAKE_CUDA_WRONG"), 0);
    static const char *const faults[] = {"cuMemcpyPeerAsync:2:719", "cuCtxEnablePeerAccess:1:217",
                                         "cuDevicePrimaryCtxRetain:1:2", "cuLaunchKernel:3:719"};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        assert_int_equal(setenv("FAKE_CUDA_FAULT", faults[i], 1), 0);
        assert_true(device_test_peer(device, &test, &answer, &err) < 0);
        assert_int_equal(unsetenv("FAKE_CUDA_FAULT"), 0);
        assert_int_equal(device_test_peer(device, &test, &answer, &err), 0);
    }
    struct device_peer_test itself = test;
    itself.peer = 0;
    assert_int_equal(device_test_peer(device, &itself, &answer, &err), -EINVAL);
    check_hanging_link(test);
    facts_fini(&gpus);
}

/* Another worker of the node, which copies too, or ends in the middle. */
static void start_other(size_t own, bool ends)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    if (fork() == 0) {
        struct device_source *seen = NULL;
        struct device *other = NULL;
        struct device_host_share_answer answer;
        struct err err = {0};
        if (device_source_cuda(&seen, &err) || device_source_open(seen, own, &other, &err) ||
            write(ready[1], &byte, 1) != 1)
            _exit(2);
        if (ends)
            usleep(50000);
        _exit(ends || device_share_host(other, &share, &answer, &err) == 0 ? 0 : 1);
    }
    close(ready[1]); /* so that the read ends if the other process could not take the turn */
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
}

/* Workers that are there copy together. One that ended is not waited for. */
static void host_links_at_once(void **state)
{
    (void)state;
    struct device_host_share_answer answer = {0};
    struct err err = {0};
    int status;
    assert_int_equal(device_share_host(device, &share, &answer, &err), -EAGAIN);
    for (int round = 0; round < 2; round++) {
        start_other(1, false);
        start_other(2, round == 1);
        int rc = device_share_host(device, &share, &answer, &err);
        if (rc)
            fail_msg("%s", err.text);
        assert_int_equal(answer.gpus, round == 0 ? 3 : 2);
        assert_true(answer.bytes > 0 && answer.elapsed_ns > 0);
        for (int i = 0; i < 2; i++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
    }
}

static int set_up_three(void **state)
{
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    return set_up(state);
}

static int tear_down_three(void **state)
{
    unsetenv("FAKE_CUDA_DEVICES");
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links, set_up_three, tear_down_three),
        cmocka_unit_test_setup_teardown(host_links_at_once, set_up_three, tear_down_three),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
