/* What a rank makes of a worker: whole answers, garbage, half records, signals, silence. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "survey/rank/child.h"
#include "survey/rank/outcome.h"

static const struct gpu_result gpu = {
    .uuid = (char *)"GPU-1", .node = (char *)"n1", .pci = (char *)"0000:01:00.0", .index = 3};

static void put_result(struct strbuf *stream, enum worker_message type, double value)
{
    struct gpu_result result = {0};
    struct strbuf payload = {0};
    gpu_result_copy(&result, &gpu);
    assert_non_null(measures_add(&result.measures, "l1_data.size", value, "B", "test"));
    facts_set_int(&result.health, "pcie_replays", 3);
    facts_set_real(&result.timings, "opening", 0.5);
    gpu_result_encode(&result, &payload);
    frame_write(stream, type, payload.data, payload.length);
    strbuf_fini(&payload);
    gpu_result_fini(&result);
}

static void put_begin(struct strbuf *stream, const char *probe)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, probe);
    frame_write(stream, WORKER_BEGIN, payload.data, payload.length);
    strbuf_fini(&payload);
}

static void put_fail(struct strbuf *stream)
{
    struct strbuf payload = {0};
    struct err err = {0};
    err_set(&err, -EIO, "the device fell off the bus");
    message_put_err(&payload, &err);
    frame_write(stream, WORKER_FAIL, payload.data, payload.length);
    strbuf_fini(&payload);
}

static void put_ended(struct strbuf *stream)
{
    struct strbuf payload = {0};
    wire_put_u32(&payload, GPU_LOST);
    wire_put_text(&payload, "rank 3 fell silent");
    wire_put_u32(&payload, GPU_CRASHED);
    wire_put_text(&payload, "the first worker crashed");
    frame_write(stream, WORKER_ENDED, payload.data, payload.length);
    strbuf_fini(&payload);
}

static void flip(struct strbuf *stream)
{
    stream->data[stream->length / 2] ^= 0x10;
}

static void cut(struct strbuf *stream)
{
    stream->length -= 7;
}

static void spew(struct strbuf *stream)
{
    strbuf_puts(stream, "Segmentation of the world at 0xdeadbeef, goodbye cruel rank\n");
}

/* A worker by script: the frames it sends, then how it ends. */
struct worker_case {
    const char *name;
    bool partial, done, fail, ended;
    void (*damage)(struct strbuf *stream);
    const char *text; /* on stderr */
    int signal;       /* it kills itself with */
    int exit_code;
    bool hang; /* ignores SIGTERM too */
    enum gpu_status status;
    const char *reason;
    bool keeps; /* the partial result survives */
};

static const struct worker_case cases[] = {
    {"complete", true, true, .status = GPU_OK, .keeps = true},
    {"complete, then crashes", true, true, .signal = SIGABRT, .status = GPU_OK, .keeps = true},
    {"says why", true, .fail = true, .status = GPU_FAILED,
     .reason = "the device fell off the bus during l1_data.size", .keeps = true},
    {"replays an end", true, .ended = true, .status = GPU_LOST, .reason = "rank 3 fell silent",
     .keeps = true},
    {"replays an end at once", .ended = true, .status = GPU_LOST, .reason = "rank 3 fell silent"},
    {"killed", true, .signal = SIGKILL, .status = GPU_CRASHED,
     .reason = "killed by signal 9 (Killed) during l1_data.size", .keeps = true},
    {"crashes with a word", true, .signal = SIGSEGV, .text = "oh\n\x1b[31m no\n",
     .status = GPU_CRASHED, .reason = "during l1_data.size; stderr: oh [31m no", .keeps = true},
    {"leaves early", true, .exit_code = 5, .status = GPU_FAILED,
     .reason = "exited with code 5 without a result during l1_data.size", .keeps = true},
    {"says nothing", .status = GPU_FAILED, .reason = "exited with code 0 without a result"},
    {"half a record", true, true, .damage = cut, .status = GPU_CRASHED,
     .reason = "half a record during l1_data.size", .keeps = true},
    {"flipped bit", true, true, .damage = flip, .status = GPU_CRASHED, .reason = "garbage"},
    {"spews text", true, .damage = spew, .status = GPU_CRASHED,
     .reason = "garbage on the worker's pipe", .keeps = true},
    {"garbage after the end", true, true, .damage = spew, .status = GPU_CRASHED,
     .reason = "garbage", .keeps = true},
    {"hangs", true, .hang = true, .status = GPU_TIMED_OUT,
     .reason = "no answer in 1 s during l1_data.size", .keeps = true},
};

static void write_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t n = write(fd, data, length);
        if (n <= 0)
            _exit(99);
        data += n;
        length -= (size_t)n;
    }
}

static void act(const struct worker_case *c, int answer_fd, int text_fd)
{
    struct strbuf stream = {0};
    setpgid(0, 0);
    if (c->partial) {
        put_begin(&stream, "l1_data.size");
        put_result(&stream, WORKER_PARTIAL, 1);
    }
    if (c->done)
        put_result(&stream, WORKER_DONE, 2);
    if (c->fail)
        put_fail(&stream);
    if (c->ended)
        put_ended(&stream);
    if (c->damage)
        c->damage(&stream);
    if (c->text)
        write_all(text_fd, c->text, strlen(c->text));
    write_all(answer_fd, stream.data ? stream.data : "", stream.length);
    strbuf_fini(&stream);
    if (c->hang) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    if (c->signal)
        kill(getpid(), c->signal);
    _exit(c->exit_code);
}

static void start(const struct worker_case *c, struct child *out_child)
{
    int answers[2], text[2];
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    assert_int_equal(pipe2(text, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        act(c, answers[1], text[1]);
    setpgid(pid, pid);
    close(answers[1]);
    close(text[1]);
    fcntl(answers[0], F_SETFL, O_NONBLOCK);
    fcntl(text[0], F_SETFL, O_NONBLOCK);
    *out_child = (struct child){.state = CHILD_RUNNING,
                                .pid = pid,
                                .answer_fd = answers[0],
                                .text_fd = text[0],
                                .record_fd = -1,
                                .started_s = clock_monotonic_s()};
}

static int take(void *user, const struct frame *frame, struct err *err)
{
    return outcome_take_measuring(user, frame, err);
}

static void run_case(const struct worker_case *c)
{
    const double limit_s = 1;
    struct child child;
    struct outcome outcome = {0};
    struct gpu_result result = {0};
    struct err garbage = {0};
    double value = 0;
    start(c, &child);
    double begin_s = clock_monotonic_s();
    while (child.state == CHILD_RUNNING && clock_monotonic_s() - begin_s < 10) {
        child_read(&child, clock_monotonic_s(), take, &outcome, &garbage);
        if (c->hang && clock_monotonic_s() - begin_s > limit_s)
            child_stop(&child, CHILD_TIME_LIMIT, clock_monotonic_s());
        usleep(1000);
    }
    assert_int_not_equal(child.state, CHILD_RUNNING);
    const struct ending ending = {
        .end = child.end,
        .reaped = child.state == CHILD_REAPED,
        .wait_status = child.wait_status,
        .limit_s = limit_s,
        .half_record = frame_reader_pending(&child.frames) > 0,
        .garbage = garbage.text,
        .tail = child.tail,
    };
    outcome_result(&outcome, &ending, &gpu, 7, &result);
    if (result.status != c->status)
        fail_msg("%s: status %s, reason %s", c->name, gpu_status_name(result.status),
                 result.reason ? result.reason : "none");
    if (c->reason && !(result.reason && strstr(result.reason, c->reason)))
        fail_msg("%s: reason \"%s\"", c->name, result.reason ? result.reason : "none");
    assert_string_equal(result.uuid, "GPU-1");
    assert_int_equal(result.rank, 7);
    if (measures_value(&result.measures, "l1_data.size", &value) != c->keeps)
        fail_msg("%s: what was measured is %s", c->name, c->keeps ? "lost" : "there");
    assert_int_equal(facts_int(&result.health, "pcie_replays", 0), c->keeps ? 3 : 0);
    assert_int_equal(result.timings.count, c->keeps ? 1 : 0);
    gpu_result_fini(&result);
    outcome_fini(&outcome);
    pid_t pid = child.pid;
    child_fini(&child);
    assert_int_equal(kill(pid, 0), -1);
}

static void workers_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        run_case(&cases[i]);
}

/* Children that reap themselves: how they ended is not known, that they did is. */
static void workers_that_nobody_can_wait_for(void **state)
{
    (void)state;
    static const struct worker_case unknown[] = {
        {"complete", true, true, .status = GPU_OK, .keeps = true},
        {"killed", true, .signal = SIGKILL, .status = GPU_FAILED,
         .reason = "worker ended without a result during l1_data.size", .keeps = true},
        {"half a record", true, true, .damage = cut, .status = GPU_CRASHED,
         .reason = "half a record", .keeps = true},
    };
    signal(SIGCHLD, SIG_IGN);
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        run_case(&unknown[i]);
    signal(SIGCHLD, SIG_DFL);
}

/* Every cut and every flipped byte of a good stream is either noticed or harmless, never a crash
 * and never a different value. */
static void no_damage_passes(void **state)
{
    (void)state;
    struct strbuf stream = {0};
    put_begin(&stream, "p");
    put_result(&stream, WORKER_DONE, 4096);
    for (size_t i = 0; i < stream.length; i++) {
        struct frame_reader reader = {0};
        struct outcome outcome = {0};
        struct frame frame;
        struct err err = {0};
        double value = 0;
        stream.data[i] ^= 0x41;
        frame_reader_add(&reader, stream.data, stream.length);
        while (frame_reader_next(&reader, &frame, &err) > 0)
            if (outcome_take_measuring(&outcome, &frame, &err))
                break;
        assert_false(outcome.done &&
                     measures_value(&outcome.result.measures, "l1_data.size", &value) &&
                     value != 4096);
        assert_false(outcome.done && i >= stream.length / 2);
        stream.data[i] ^= 0x41;
        frame_reader_fini(&reader);
        outcome_fini(&outcome);
    }
    strbuf_fini(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_end),
        cmocka_unit_test(workers_that_nobody_can_wait_for),
        cmocka_unit_test(no_damage_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
