/* A rank and a rank 0 that is silent for a while: what it says, and when it leaves. This program is
 * its worker, too. */
#include "../check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/yaml.h"
#include "fake_comm.h"
#include "inventory/wire/spool.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/rank/rank.h"
#include "survey/worker.h"

static const struct survey_options plain = {.spool = "nowhere"};

/* Seconds that nobody waited for. */
static double skipped_s;

static double now_s(void)
{
    return clock_monotonic_s() + skipped_s;
}

static int deliver(struct rank *rank, uint32_t type, struct strbuf *payload)
{
    struct comm_message message = {
        .from = 0, .frame = {.type = type, .payload = payload->data, .length = payload->length}};
    struct err err = {0};
    int rc = rank_take(rank, &message, &err);
    strbuf_fini(payload);
    return rc;
}

static void say(struct rank *rank, enum message_type type)
{
    struct strbuf nothing = {0};
    assert_int_equal(deliver(rank, type, &nothing), 0);
}

static void assign(struct rank *rank, double limit_s, size_t count)
{
    uint32_t first = 0;
    const struct assignment assignment = {
        .time_limit_s = limit_s, .positions = &first, .count = count, .survey = (char *)"s"};
    struct strbuf payload = {0};
    assignment_encode(&assignment, &payload);
    assert_int_equal(deliver(rank, MESSAGE_ASSIGN, &payload), 0);
}

/* Lives until `count` messages of the type have left it. */
static void live_until(struct rank *rank, struct fake *fake, enum message_type type, int count)
{
    double begin_s = now_s();
    while (fake->sent[0][type] < count && now_s() - begin_s < 30) {
        rank_step(rank, now_s());
        usleep(1000);
    }
    assert_int_equal(fake->sent[0][type], count);
}

/* Rank 1 of two, which has announced itself and was answered. */
static struct rank *create(struct fake *fake, const struct survey_options *options)
{
    fake_init(fake, 1, 2);
    struct rank *rank = rank_create(&fake->base, options, now_s());
    live_until(rank, fake, MESSAGE_ANNOUNCE, 1);
    say(rank, MESSAGE_BEAT);
    return rank;
}

/* Seconds in which rank 0 says nothing. */
static void pass(struct rank *rank, double seconds)
{
    const double step_s = 0.25;
    for (double s = 0; s < seconds; s += step_s) {
        skipped_s += step_s;
        rank_step(rank, now_s());
    }
}

static bool lost_rank_0(const struct rank *rank)
{
    const struct rank_end end = rank_end(rank);
    assert_true(end.lost_rank_0 == (end.silent_s > limit_silence_s(2)));
    return end.lost_rank_0;
}

static void a_pause_of_rank_0_is_survived(void **state)
{
    (void)state;
    struct fake fake;
    struct rank *rank = create(&fake, &plain);
    pass(rank, limit_silence_s(2) - 1);
    assert_false(lost_rank_0(rank));
    pass(rank, 3);
    assert_true(lost_rank_0(rank));
    assert_false(rank_may_leave(rank));
    int beats = fake.sent[0][MESSAGE_BEAT];
    pass(rank, 2);
    assert_true(fake.sent[0][MESSAGE_BEAT] > beats);
    assign(rank, 120, 1); /* rank 0 goes on */
    assert_false(lost_rank_0(rank));
    live_until(rank, &fake, MESSAGE_RESULT, 1);
    pass(rank, limit_silence_s(2) - 1);
    assert_int_equal(fake.sent[0][MESSAGE_RESULT], 1);
    assert_false(rank_may_leave(rank));
    rank_destroy(rank);
}

struct leaving_case {
    const char *name;
    double given_s;    /* --time-limit */
    double assigned_s; /* 0: nothing is assigned */
    bool stopped;
    double silences; /* after which it leaves */
};

/* A second silence is waited for, but not beyond the limit, after which the job must end soon. */
static void without_rank_0_it_leaves(void **state)
{
    (void)state;
    static const struct leaving_case cases[] = {
        {"nothing known", 0, 0, false, 2},         {"short limit given", 5, 0, false, 1},
        {"long limit given", 300, 0, false, 2},    {"short limit assigned", 0, 5, false, 1},
        {"long limit assigned", 5, 300, false, 2}, {"interrupted", 0, 300, true, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct leaving_case *c = &cases[i];
        struct survey_options options = plain;
        struct fake fake;
        options.time_limit_s = c->given_s;
        struct rank *rank = create(&fake, &options);
        if (c->assigned_s > 0)
            assign(rank, c->assigned_s, 0);
        if (c->stopped)
            rank_stop(rank, now_s());
        double wait_s = c->silences * limit_silence_s(2);
        pass(rank, wait_s - 1);
        if (rank_may_leave(rank))
            fail_msg("%s: leaves early", c->name);
        pass(rank, 2);
        if (!rank_may_leave(rank))
            fail_msg("%s: stays", c->name);
        rank_destroy(rank);
    }
}

/* A rank 0 that was never heard may only be slow to start. */
static void a_slow_start_of_rank_0_is_waited_for(void **state)
{
    (void)state;
    struct fake fake;
    fake_init(&fake, 1, 2);
    struct rank *rank = rank_create(&fake.base, &plain, now_s());
    live_until(rank, &fake, MESSAGE_ANNOUNCE, 1);
    pass(rank, FAKE_START_TIMEOUT_S - 2);
    assert_false(rank_end(rank).lost_rank_0);
    assert_false(rank_may_leave(rank));
    pass(rank, 3);
    assert_true(rank_end(rank).lost_rank_0);
    assert_false(rank_end(rank).assigned);
    assert_true(rank_may_leave(rank));
    rank_destroy(rank);
}

/* An error of a send says something about rank 0. The rank goes on as if rank 0 were silent; when
 * messages can be sent again, its announcement is. */
static void a_send_that_fails_does_not_end_it(void **state)
{
    (void)state;
    for (int healed = 0; healed < 2; healed++) {
        struct fake fake;
        fake_init(&fake, 1, 2);
        fake.broken = 0;
        struct rank *rank = rank_create(&fake.base, &plain, now_s());
        live_until(rank, &fake, MESSAGE_ANNOUNCE, 1);
        pass(rank, limit_beat_s(2) + 1);
        int tried = fake.sent[0][MESSAGE_ANNOUNCE];
        assert_true(tried > 1);
        if (healed) {
            fake.broken = -1;
            live_until(rank, &fake, MESSAGE_ANNOUNCE, tried + 1);
            assign(rank, 120, 1);
            fake.broken = 0;
            live_until(rank, &fake, MESSAGE_RESULT, 1);
            pass(rank, 2 * limit_silence_s(2) + 1);
            assert_int_equal(fake.sent[0][MESSAGE_ANNOUNCE], tried + 1);
        } else
            pass(rank, FAKE_START_TIMEOUT_S);
        assert_true(rank_end(rank).lost_rank_0);
        assert_int_equal(rank_end(rank).assigned, healed);
        for (int i = 0; i < 3000 && !rank_may_leave(rank); i++) { /* until its worker has exited */
            usleep(10000);
            pass(rank, 0.25);
        }
        assert_true(rank_may_leave(rank));
        rank_destroy(rank);
    }
}

/* No room for a worker is no reason to have no rank, least of all rank 0. */
static void a_worker_that_cannot_start_is_announced(void **state)
{
    (void)state;
    struct survey_options simulated = plain;
    struct rlimit before, few;
    struct fake fake;
    simulated.simulate = "fleet.yaml"; /* which is not to blame */
    fake_init(&fake, 1, 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct rank *rank = rank_create(&fake.base, &simulated, now_s());
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    live_until(rank, &fake, MESSAGE_ANNOUNCE, 1);
    assert_int_equal(fake.listing, LISTING_FAILED);
    assert_non_null(strstr(fake.why.text, "Too many open files"));
    assign(rank, 10, 0);
    pass(rank, 1);
    rank_destroy(rank);
}

/* Variable of the environment, for the worker that lists: what it does then. */
static const char *const after_listing = "TEST_RANK_AFTER_LISTING";

/* Whoever listed measures the first GPU; one that leaves or dies instead costs no GPU. */
static void the_worker_that_listed_measures(void **state)
{
    (void)state;
    static const struct {
        const char *then;
        bool record;
        double requests; /* that the worker which measured was asked */
    } cases[] = {{"stay", false, 2}, {"stay", true, 1}, {"leave", false, 1}, {"die", false, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct survey_options options = plain;
        struct fake fake;
        options.record = cases[i].record ? "record.gmr" : NULL;
        assert_int_equal(setenv(after_listing, cases[i].then, 1), 0);
        struct rank *rank = create(&fake, &options);
        assign(rank, 120, 1);
        live_until(rank, &fake, MESSAGE_RESULT, 1);
        assert_int_equal(fake.status, GPU_OK);
        if (fake.elapsed_s != cases[i].requests)
            fail_msg("%s: the worker was asked %g times", cases[i].then, fake.elapsed_s);
        rank_destroy(rank);
    }
    assert_int_equal(unsetenv(after_listing), 0);
}

/* A GPU that gave no result is tried a second time, by a worker with the same time limit. Not if
 * somebody killed the worker, and not if the survey is replayed. */
static void a_gpu_without_a_result_is_tried_again(void **state)
{
    (void)state;
    static const struct {
        const char *then;
        double limit_s;
        const char *replay;
        enum gpu_status status, first_status;
        const char *first_reason;
    } cases[] = {
        {"begin_and_die", 120, NULL, GPU_CRASHED, GPU_OK, ""},
        {"all_die", 120, NULL, GPU_CRASHED, GPU_OK, ""},
        {"begin_and_crash", 120, NULL, GPU_OK, GPU_CRASHED,
         "worker killed by signal 6 (Aborted) during opening"},
        {"all_crash", 120, NULL, GPU_CRASHED, GPU_CRASHED, "worker killed by signal 6 (Aborted)"},
        {"fail", 120, NULL, GPU_OK, GPU_FAILED, "broken"},
        {"fail", 120, "record.gmr", GPU_FAILED, GPU_OK, ""},
        {"hang", 6, NULL, GPU_OK, GPU_TIMED_OUT, "no answer in 6 s"},
        {"all_hang", 0.3, NULL, GPU_TIMED_OUT, GPU_TIMED_OUT, "no answer in 0.3 s"},
        {"all_hang_later", 1, NULL, GPU_TIMED_OUT, GPU_CRASHED,
         "worker killed by signal 6 (Aborted)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct survey_options options = plain;
        struct fake fake;
        options.replay = cases[i].replay;
        assert_int_equal(setenv(after_listing, cases[i].then, 1), 0);
        struct rank *rank = create(&fake, &options);
        assign(rank, cases[i].limit_s, 1);
        live_until(rank, &fake, MESSAGE_RESULT, 1);
        if (fake.status != cases[i].status || fake.first_status != cases[i].first_status ||
            !str_equal(fake.first_reason, cases[i].first_reason))
            fail_msg("%s: the GPU is %s, before that %s: %s", cases[i].then,
                     gpu_status_name(fake.status), gpu_status_name(fake.first_status),
                     fake.first_reason);
        rank_destroy(rank);
    }
    assert_int_equal(unsetenv(after_listing), 0);
}

/* A survey that is interrupted starts no second worker. */
static void an_interruption_ends_the_tries(void **state)
{
    (void)state;
    struct fake fake;
    assert_int_equal(setenv(after_listing, "all_hang", 1), 0);
    struct rank *rank = create(&fake, &plain);
    assign(rank, 120, 1);
    pass(rank, 1);
    say(rank, MESSAGE_STOP);
    live_until(rank, &fake, MESSAGE_RESULT, 1);
    assert_int_equal(fake.status, GPU_FAILED);
    assert_int_equal(fake.first_status, GPU_OK);
    rank_destroy(rank);
    assert_int_equal(unsetenv(after_listing), 0);
}

/* A rank that has no GPU to measure does not hold on to the worker that listed. */
static void the_worker_that_listed_is_dismissed(void **state)
{
    (void)state;
    struct fake fake;
    struct clock_awake clock = {0};
    assert_int_equal(setenv(after_listing, "stay", 1), 0);
    struct rank *rank = create(&fake, &plain);
    pass(rank, 30); /* it waits as long as it takes */
    assign(rank, 120, 0);
    double begin_s = clock_monotonic_s();
    rank_wait_for_workers(rank, &clock);
    assert_true(clock_monotonic_s() - begin_s < 2);
    rank_destroy(rank);
    assert_int_equal(unsetenv(after_listing), 0);
}

static void tell(enum worker_message type, const struct strbuf *payload)
{
    struct strbuf frame = {0};
    frame_write(&frame, type, payload->data, payload->length);
    if (write(WORKER_ANSWER_FD, frame.data, frame.length) != (ssize_t)frame.length)
        _exit(1);
    strbuf_fini(&frame);
}

/* What the worker that listed does when it is asked to measure; "all_...": any other, too. */
static void fail_to_measure(const char *then, int served, uint32_t attempt)
{
    const struct err broken = {.code = -EIO, .text = "broken"};
    struct strbuf payload = {0};
    if (str_equal(then, "all_die"))
        raise(SIGKILL);
    if (str_equal(then, "all_crash") || (str_equal(then, "all_hang_later") && !attempt))
        raise(SIGABRT);
    if (str_equal(then, "all_hang") || str_equal(then, "all_hang_later"))
        pause();
    if (served == 1)
        return;
    if (str_equal(then, "hang"))
        pause();
    if (str_equal(then, "begin_and_die") || str_equal(then, "begin_and_crash")) {
        wire_put_text(&payload, "opening");
        tell(WORKER_BEGIN, &payload);
        raise(str_equal(then, "begin_and_die") ? SIGKILL : SIGABRT);
    }
    if (str_equal(then, "fail")) {
        message_put_err(&payload, &broken);
        tell(WORKER_FAIL, &payload);
        _exit(0);
    }
}

/* Lists one GPU, or measures nothing of it but how many requests this process was asked. */
static int serve(int served, enum worker_task *out_task)
{
    const struct gpu_result gpu = {
        .uuid = (char *)"GPU-1", .node = (char *)"n", .elapsed_s = served};
    struct worker_request request = {0};
    struct frame_reader reader = {0};
    struct strbuf payload = {0};
    struct frame frame;
    struct err err = {0};
    char block[4096];
    ssize_t n = read(STDIN_FILENO, block, sizeof block);
    if (n <= 0)
        return 1;
    frame_reader_add(&reader, block, (size_t)n);
    if (frame_reader_next(&reader, &frame, &err) != 1 ||
        worker_request_decode(&frame, &request, &err))
        return 1;
    if (request.task == WORKER_MEASURE && getenv(after_listing))
        fail_to_measure(getenv(after_listing), served, request.attempt);
    if (request.task == WORKER_LIST) {
        schema_encode(&message_identity, &gpu, &payload);
        tell(WORKER_INFO, &payload);
        payload.length = 0;
    } else
        gpu_result_encode(&gpu, &payload);
    tell(WORKER_DONE, &payload);
    strbuf_fini(&payload);
    *out_task = request.task;
    worker_request_fini(&request);
    frame_reader_fini(&reader);
    return 0;
}

static int work(void)
{
    const char *then = getenv(after_listing);
    enum worker_task task = WORKER_MEASURE;
    char none;
    int rc = serve(1, &task);
    if (rc || task != WORKER_LIST || !then || str_equal(then, "leave"))
        return rc;
    if (str_equal(then, "die"))
        return read(STDIN_FILENO, &none, 1) < 0 || raise(SIGKILL); /* when it is asked */
    return serve(2, &task);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_of_rank_0_is_survived),
        cmocka_unit_test(without_rank_0_it_leaves),
        cmocka_unit_test(a_slow_start_of_rank_0_is_waited_for),
        cmocka_unit_test(a_send_that_fails_does_not_end_it),
        cmocka_unit_test(a_worker_that_cannot_start_is_announced),
        cmocka_unit_test(the_worker_that_listed_measures),
        cmocka_unit_test(a_gpu_without_a_result_is_tried_again),
        cmocka_unit_test(an_interruption_ends_the_tries),
        cmocka_unit_test(the_worker_that_listed_is_dismissed),
    };
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0)
        _exit(work()); /* looking for leaks would take longer than all else */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
