/* The part of the device interface that all backends share. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../check.h"
#include "bench.h"
#include "inventory/throttle.h"

static const char plain[] = "l2: {size: 1 MiB, line: 128, ways: 16}\n"
                            "caches: {l1: {size: 16 KiB, line: 128, ways: 4}}\n"
                            "paths: {global_ca: [l1: 30, l2: 200, main: 500], "
                            "global_cg: [l2: 200, main: 500], shared: 20}\n";

static void bins_cover_all_cycles(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 256; c++) {
        assert_int_equal(device_bin_of(c), c);
        assert_true(device_bin_cycles(c) == c);
    }
    uint32_t before = 255;
    for (uint32_t c = 256; c < 1u << 24; c += 1 + c / 300) {
        uint32_t bin = device_bin_of(c);
        assert_true(bin >= before && bin < DEVICE_BIN_COUNT);
        assert_true(fabs(device_bin_cycles(bin) - c) <= 0.004 * c + 0.5);
        before = bin;
    }
    assert_int_equal(device_bin_of(256), 256);
    assert_int_equal(device_bin_of(UINT32_MAX), DEVICE_BIN_COUNT - 1);
}

struct bad_job {
    const char *what;
    void (*spoil)(struct device_job *job);
    const char *text; /* part of the message */
};

static void no_stride(struct device_job *job)
{
    job->steps[1].array.stride_bytes = 0;
}
static void odd_stride(struct device_job *job)
{
    job->steps[1].array.stride_bytes = 6;
}
static void no_element(struct device_job *job)
{
    job->steps[1].array.size_bytes = 64;
}
static void past_memory(struct device_job *job)
{
    job->steps[1].array.offset_bytes = UINT64_C(1) << 30;
}
static void size_overflows(struct device_job *job)
{
    job->steps[1].array.offset_bytes = 128;
    job->steps[1].array.size_bytes = UINT64_MAX - 63;
    job->steps[1].loads = 1;
}
static void past_constant(struct device_job *job)
{
    job->steps[1].array = bench_array(DEVICE_CONSTANT, 65 << 10, 64);
}
static void start_outside(struct device_job *job)
{
    job->steps[1].start = 32;
}
static void bad_agent(struct device_job *job)
{
    job->steps[1].agent = 1;
}
static void no_agents(struct device_job *job)
{
    job->agent_count = 0;
}
static void bad_sm(struct device_job *job)
{
    job->agents[0].sm = 8;
}
static void first_is_other(struct device_job *job)
{
    job->agents[0].sm = DEVICE_SM_OTHER;
}
static void bad_warp(struct device_job *job)
{
    job->agents[0].warp = 32;
}
static void many_steps(struct device_job *job)
{
    job->step_count = DEVICE_STEPS_MAX + 1;
}
static void many_lanes(struct device_job *job)
{
    job->steps[1].lanes = 33;
}
static void much_shared(struct device_job *job)
{
    job->shared_bytes = 1 << 20;
}
static void bad_path(struct device_job *job)
{
    job->steps[1].array.path = DEVICE_PATH_COUNT;
}
static void many_loads(struct device_job *job)
{
    job->steps[1].loads = UINT64_C(1) << 32;
}
static void much_kept(struct device_job *job)
{
    job->steps[1].loads = job->steps[1].keep = DEVICE_KEEP_ONE + 1;
}
static void much_kept_of_two(struct device_job *job)
{
    job->steps[0].kind = DEVICE_CHASE;
    job->steps[1].loads = job->steps[1].keep = DEVICE_KEEP_SEVERAL + 1;
}

static const struct bad_job bad_jobs[] = {
    {"no stride", no_stride, "stride"},
    {"odd stride", odd_stride, "stride"},
    {"no element", no_element, "no element"},
    {"past memory", past_memory, "ends past"},
    {"size overflows", size_overflows, "ends past"},
    {"past constant bank", past_constant, "ends past the memory's 65536"},
    {"start outside", start_outside, "start 32"},
    {"bad agent", bad_agent, "no agent 1"},
    {"no agents", no_agents, "0 agents"},
    {"bad SM", bad_sm, "no SM 8"},
    {"first is other", first_is_other, "no SM"},
    {"bad warp", bad_warp, "warp 32"},
    {"many steps", many_steps, "7 steps"},
    {"many lanes", many_lanes, "33 lanes"},
    {"much shared", much_shared, "shared memory"},
    {"bad path", bad_path, "no such path"},
    {"many loads", many_loads, "histogram"},
    {"much kept", much_kept, "3585 latencies to keep: at most 3584"},
    {"much kept of two chases", much_kept_of_two, "673 latencies to keep: at most 672"},
};

static void bad_jobs_are_refused(void **state)
{
    (void)state;
    struct device *device = bench_open(plain);
    for (size_t i = 0; i < COUNT_OF(bad_jobs); i++) {
        struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 4096, 128));
        bad_jobs[i].spoil(&job);
        struct device_batch batch = {.jobs = &job, .job_count = 1};
        struct device_answer answer;
        struct err err = {0};
        int rc = device_run(device, &batch, &answer, &err);
        if (rc != -EINVAL || !strstr(err.text, bad_jobs[i].text))
            fail_msg("%s: %d %s", bad_jobs[i].what, rc, err.text);
    }
    device_destroy(device);
}

/* What the rule allows comes back whole: every backend has room for it. */
static void kept_latencies_come_back(void **state)
{
    (void)state;
    struct device *device = bench_open(plain);
    for (uint32_t timed = 1; timed <= 3; timed++) {
        struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 4096, 128));
        job.steps[1].loads = 10000;
        for (uint32_t i = 1; i < timed; i++)
            job.steps[job.step_count++] = job.steps[1];
        assert_int_equal(device_keep_max(&job), timed > 1 ? 672 : 3584);
        for (uint32_t i = 1; i < job.step_count; i++)
            job.steps[i].keep = device_keep_max(&job);
        struct device_batch batch = {.jobs = &job, .job_count = 1};
        struct device_answer answer;
        struct err err = {0};
        assert_int_equal(device_run(device, &batch, &answer, &err), 0);
        assert_int_equal(answer.sample_count, timed);
        for (uint32_t i = 0; i < timed; i++)
            assert_int_equal(answer.samples[i].kept_count, device_keep_max(&job));
        device_answers_fini(&answer, 1);
    }
    device_destroy(device);
}

static void missing_path_is_not_supported(void **state)
{
    (void)state;
    struct device *device = bench_open(plain);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_TEXTURE, 4096, 128));
    struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer;
    struct err err = {0};
    assert_int_equal(device_run(device, &batch, &answer, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "texture"));
    device_destroy(device);
}

static void bad_streams_are_refused(void **state)
{
    (void)state;
    static const struct device_stream good = {.path = DEVICE_GLOBAL_CG,
                                              .footprint_bytes = 1 << 20,
                                              .total_bytes = 1 << 22,
                                              .width_bytes = 16,
                                              .threads = 256};
    struct device_stream bad[7];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].width_bytes = 3;
    bad[1].threads = 0;
    bad[2].footprint_bytes = 0;
    bad[3].total_bytes = 4;
    bad[4].kind = DEVICE_STREAM_WRITE;
    bad[4].path = DEVICE_TEXTURE;
    bad[5].footprint_bytes = bad[5].total_bytes = UINT64_C(1) << 31;
    bad[6].path = DEVICE_HOST;
    struct device *device = bench_open(plain);
    struct device_stream_answer answer;
    struct err err = {0};
    assert_int_equal(device_stream(device, &good, &answer, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(device_stream(device, &bad[i], &answer, &err), -EINVAL);
    device_destroy(device);
}

static void bad_tickets_are_refused(void **state)
{
    (void)state;
    static const struct device_tickets good = {.footprint_bytes = 1 << 20,
                                               .total_bytes = 1 << 22,
                                               .threads = 256,
                                               .blocks_per_sm = 2,
                                               .unroll = 4,
                                               .chunk_bytes = 1 << 14,
                                               .equal_percent = 100,
                                               .ends = true};
    struct device_tickets bad[9];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = good;
    bad[0].kind = DEVICE_STREAM_H2D;
    bad[1].threads = 100;
    bad[2].blocks_per_sm = 0;
    bad[3].unroll = 3;
    bad[4].chunk_bytes = 1000;
    bad[5].chunk_bytes = 1 << 21;
    bad[6].equal_percent = 101;
    bad[7].total_bytes = UINT64_MAX;
    bad[8].footprint_bytes = UINT64_C(1) << 31;
    struct device *device = bench_open(plain);
    struct device_tickets_answer answer;
    struct err err = {0};
    assert_int_equal(device_stream_tickets(device, &good, &answer, &err), 0);
    assert_int_equal(answer.bytes, 1 << 22);
    assert_int_equal(answer.end_count, 8);
    assert_true(answer.end_ns[0] && answer.end_ns[0] <= answer.end_ns[1]);
    device_tickets_answer_fini(&answer);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(device_stream_tickets(device, &bad[i], &answer, &err), -EINVAL);
    device_destroy(device);
}

static void throttling_in_words(void **state)
{
    (void)state;
    static const struct {
        uint64_t reasons;
        const char *text;
    } cases[] = {{0, "none"},
                 {1, "none"},
                 {0x4, "power_cap"},
                 {0x25, "power_cap,sw_thermal"},
                 {0x1fe, "applications_clocks,power_cap,hw_slowdown,sync_boost,sw_thermal,"
                         "hw_thermal,hw_power_brake,display"},
                 {0x1000, "0x1000"},
                 {0x1041, "hw_thermal,0x1000"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strbuf text = {0};
        throttle_put_text(cases[i].reasons, &text);
        assert_string_equal(text.data, cases[i].text);
        strbuf_fini(&text);
    }
}

static void nothing_is_destroyed(void **state)
{
    (void)state;
    device_destroy(NULL);
    device_answers_fini(NULL, 0);
    sim_model_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_cover_all_cycles),    cmocka_unit_test(bad_jobs_are_refused),
        cmocka_unit_test(kept_latencies_come_back), cmocka_unit_test(missing_path_is_not_supported),
        cmocka_unit_test(bad_streams_are_refused),  cmocka_unit_test(bad_tickets_are_refused),
        cmocka_unit_test(throttling_in_words),      cmocka_unit_test(nothing_is_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
