/* Batches of the CUDA backend on a stand-in driver: every job runs, on an SM of its own, and loads
 * just the elements that the interface says. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 11 };

static void run(const struct device_job *jobs, size_t count, uint32_t at_once,
                struct device_answer *answers)
{
    const struct device_batch batch = {.jobs = jobs, .job_count = count, .at_once = at_once};
    struct err err = {0};
    memset(answers, 0, count * sizeof *answers);
    int rc = device_run(device, &batch, answers, &err);
    if (rc)
        fail_msg("device_run: %d: %s", rc, err.text);
}

/* The stand-in's latency of a load at this offset. */
static uint32_t cycles_at(uint64_t offset)
{
    return 1 + (uint32_t)(offset / 8 % 256);
}

/* Sequential chases of every path: from the start element on, round and round. */
static void sequential(void **state)
{
    (void)state;
    static const enum device_path paths[] = {DEVICE_GLOBAL_CA, DEVICE_GLOBAL_CG, DEVICE_READ_ONLY,
                                             DEVICE_TEXTURE,   DEVICE_CONSTANT,  DEVICE_SHARED,
                                             DEVICE_HOST};
    enum { ELEMENTS = 10, LOADS = 33, START = 3, STRIDE = 24, OFFSET = 48 };
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        const struct device_array array = {.path = paths[p],
                                           .offset_bytes = OFFSET,
                                           .size_bytes = ELEMENTS * STRIDE,
                                           .stride_bytes = STRIDE};
        struct device_job job = {
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 3};
        job.steps[0] = (struct device_step){
            .kind = DEVICE_CHASE, .array = array, .start = START, .loads = LOADS, .keep = LOADS};
        job.steps[1] = job.steps[0];
        job.steps[2] = (struct device_step){.kind = DEVICE_AVERAGE, .array = array};
        struct device_answer answer;
        run(&job, 1, 1, &answer);
        assert_int_equal(answer.sample_count, 3);
        uint64_t element = START, sum = 0;
        for (uint32_t s = 0; s < 2; s++) {
            assert_int_equal(answer.samples[s].kept_count, LOADS);
            for (uint32_t i = 0; i < LOADS; i++, element = (element + 1) % ELEMENTS)
                assert_int_equal(answer.samples[s].kept[i], cycles_at(OFFSET + element * STRIDE));
        }
        for (uint32_t i = 0; i < ELEMENTS; i++)
            sum += cycles_at(OFFSET + i * STRIDE);
        assert_int_equal(answer.samples[2].total_cycles, sum);
        device_answers_fini(&answer, 1);
    }
}

/* Random chases of every path: each element once, the second half what the first left. */
static void in_random_order(void **state)
{
    (void)state;
    enum { ELEMENTS = 200, STRIDE = 8 };
    for (int path = 0; path < DEVICE_PATH_COUNT; path++) {
        const struct device_array array = {.path = (enum device_path)path,
                                           .size_bytes = ELEMENTS * STRIDE,
                                           .stride_bytes = STRIDE,
                                           .order = DEVICE_RANDOM,
                                           .seed = 5};
        struct device_job job = {
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
        job.steps[0] = job.steps[1] = (struct device_step){
            .kind = DEVICE_CHASE, .array = array, .loads = ELEMENTS / 2, .keep = ELEMENTS};
        struct device_answer answer;
        uint32_t seen[257] = {0};
        run(&job, 1, 1, &answer);
        uint32_t ascending = 0;
        for (uint32_t s = 0; s < 2; s++) {
            const struct device_sample *sample = &answer.samples[s];
            assert_int_equal(sample->kept_count, ELEMENTS / 2);
            for (uint32_t i = 0; i < sample->kept_count; i++) {
                assert_int_equal(seen[sample->kept[i]]++, 0);
                ascending += i && sample->kept[i] == sample->kept[i - 1] + 1;
            }
        }
        assert_true(ascending < ELEMENTS / 4);
        device_answers_fini(&answer, 1);
    }
}

/* More jobs than SMs, unequal ones, one of them pinned: all run, and no two of the same kind share
 * an SM in a wave. */
static void many_jobs(void **state)
{
    (void)state;
    struct device_job jobs[MANY];
    struct device_answer answers[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        jobs[i] = (struct device_job){
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
        jobs[i].steps[0] =
            (struct device_step){.kind = i % 3 ? DEVICE_CHASE : DEVICE_AVERAGE, .loads = 10 + i};
        jobs[i].steps[0].array =
            (struct device_array){.path = i % 2 ? DEVICE_GLOBAL_CA : DEVICE_CONSTANT,
                                  .size_bytes = 64 * (i + 1),
                                  .stride_bytes = 32};
    }
    jobs[7].agents[0].sm = 2;
    for (uint32_t at_once = 0; at_once <= SMS; at_once++) {
        run(jobs, MANY, at_once, answers);
        for (uint32_t i = 0; i < MANY; i++) {
            assert_int_equal(answers[i].sample_count, 1);
            assert_int_equal(answers[i].samples[0].loads, 10 + i);
            assert_in_range(answers[i].samples[0].sm, 0, SMS - 1);
            assert_true(answers[i].samples[0].total_cycles > 0);
        }
        assert_int_equal(answers[7].samples[0].sm, 2);
        device_answers_fini(answers, MANY);
    }
}

/* Chains of different jobs over the same words of the constant bank: none follows another's. */
static void constant_chains(void **state)
{
    (void)state;
    enum { JOBS = 4, STRIDE = 32, PASSES = 3 };
    static const uint32_t elements[JOBS] = {2, 8, 2, 5};
    struct device_job jobs[JOBS];
    struct device_answer answers[JOBS];
    for (uint32_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct device_job){
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
        jobs[i].steps[0] = (struct device_step){.kind = DEVICE_AVERAGE,
                                                .loads = PASSES * elements[i],
                                                .array = {.path = DEVICE_CONSTANT,
                                                          .size_bytes = elements[i] * STRIDE,
                                                          .stride_bytes = STRIDE}};
    }
    run(jobs, JOBS, 0, answers);
    for (uint32_t i = 0; i < JOBS; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < elements[i]; k++)
            sum += PASSES * cycles_at(k * STRIDE);
        assert_int_equal(answers[i].samples[0].total_cycles, sum);
    }
    device_answers_fini(answers, JOBS);
}

/* Loads come back in their bin, also in the last bins, which only very slow loads fill. Jobs that
 * time loads through L1 have fewer bins, since what they keep must leave L1 its largest size: the
 * slowest loads are in the last one. */
static void slow_loads(void **state)
{
    (void)state;
    enum { LOADS = 40 };
    static const struct {
        const char *cycles;
        uint32_t bin, l1_bin;
    } rows[] = {{"1", 1, 1},
                {"255", 255, 255},
                {"256", 256, 256},
                {"4095", 767, 767},
                {"15728640", DEVICE_BIN_COUNT - 16, 1535},
                {"4294967295", DEVICE_BIN_COUNT - 1, 1535}};
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
    job.steps[0] = (struct device_step){
        .kind = DEVICE_CHASE, .loads = LOADS, .array = {.size_bytes = 1024, .stride_bytes = 32}};
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        struct device_answer answer;
        bool l1 = i % 2;
        job.steps[0].array.path = l1 ? DEVICE_GLOBAL_CA : DEVICE_GLOBAL_CG;
        setenv("FAKE_CUDA_CYCLES", rows[i / 2].cycles, 1);
        run(&job, 1, 1, &answer);
        unsetenv("FAKE_CUDA_CYCLES");
        assert_int_equal(answer.samples[0].bin_count, 1);
        assert_int_equal(answer.samples[0].bins[0].bin, l1 ? rows[i / 2].l1_bin : rows[i / 2].bin);
        assert_int_equal(answer.samples[0].bins[0].count, LOADS);
        device_answers_fini(&answer, 1);
    }
}

/* As many latencies as a job may keep come back, each of its load, also if several chases are
 * timed.
 */
static void kept_latencies(void **state)
{
    (void)state;
    enum { STRIDE = 64, ELEMENTS = 4000 };
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = ELEMENTS * STRIDE, .stride_bytes = STRIDE};
    for (uint32_t timed = 1; timed <= 3; timed++) {
        struct device_job job = {
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = timed};
        for (uint32_t s = 0; s < timed; s++)
            job.steps[s] = (struct device_step){.kind = DEVICE_CHASE, .array = array};
        for (uint32_t s = 0; s < timed; s++)
            job.steps[s].keep = device_keep_max(&job);
        struct device_answer answer;
        run(&job, 1, 1, &answer);
        for (uint32_t s = 0; s < timed; s++) {
            const struct device_sample *sample = &answer.samples[s];
            assert_int_equal(sample->kept_count, device_keep_max(&job));
            for (uint32_t i = 0; i < sample->kept_count; i++)
                assert_int_equal(sample->kept[i],
                                 cycles_at((uint64_t)i * ELEMENTS / sample->kept_count * STRIDE));
        }
        device_answers_fini(&answer, 1);
    }
}

/* Fills, another SM's agent and a second kind of chain between the steps of one job. */
static void segments(void **state)
{
    (void)state;
    const struct device_array random = {
        .path = DEVICE_GLOBAL_CG, .size_bytes = 4096, .stride_bytes = 64, .order = DEVICE_RANDOM};
    const struct device_array texture = {
        .path = DEVICE_TEXTURE, .size_bytes = 4096, .stride_bytes = 32};
    struct device_job job = {.agents = {{.sm = 1}, {.sm = DEVICE_SM_OTHER, .warp = 3}},
                             .agent_count = 2,
                             .step_count = 6,
                             .cold_l2 = true};
    job.steps[0] = (struct device_step){.kind = DEVICE_FILL, .array = random};
    job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = random, .keep = 64};
    job.steps[2] = (struct device_step){.kind = DEVICE_AVERAGE, .agent = 1, .array = texture};
    job.steps[3] = (struct device_step){.kind = DEVICE_CHASE, .array = random, .keep = 64};
    job.steps[4] = (struct device_step){.kind = DEVICE_CHASE, .array = random, .keep = 64};
    job.steps[5] = (struct device_step){.kind = DEVICE_CHASE, .array = random, .keep = 64};
    struct device_answer answer;
    run(&job, 1, 0, &answer);
    assert_int_equal(answer.sample_count, 5);
    for (uint32_t s = 0; s < 5; s++) {
        assert_int_equal(answer.samples[s].step, s + 1);
        assert_int_equal(answer.samples[s].sm == 1, s != 1);
        if (s > 1) /* whole passes: every one begins where the first did */
            assert_memory_equal(answer.samples[s].kept, answer.samples[0].kept,
                                64 * sizeof(uint32_t));
    }
    device_answers_fini(&answer, 1);
}

/* Chains of one wave together are larger than the memory: none may be written over another. */
static void memory_grows_and_ends(void **state)
{
    (void)state;
    enum { STRIDE = 4104 };
    struct device_job jobs[6];
    struct device_answer answers[6];
    uint64_t limit = device_limits(device)->global_bytes;
    for (uint32_t i = 0; i < 6; i++) {
        jobs[i] = (struct device_job){
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
        jobs[i].steps[0] = (struct device_step){.kind = DEVICE_AVERAGE};
        jobs[i].steps[0].array = (struct device_array){
            .size_bytes = limit / (i + 1) / STRIDE * STRIDE, .stride_bytes = STRIDE};
    }
    run(jobs, 6, 0, answers);
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t sum = 0;
        for (uint64_t k = 0; k < limit / (i + 1) / STRIDE; k++)
            sum += cycles_at(k * STRIDE);
        assert_int_equal(answers[i].samples[0].total_cycles, sum);
    }
    device_answers_fini(answers, 6);
    jobs[0].steps[0].array.size_bytes = limit + STRIDE;
    const struct device_batch batch = {.jobs = jobs, .job_count = 1};
    memset(answers, 0, sizeof answers);
    assert_int_equal(device_run(device, &batch, answers, NULL), -EINVAL);
}

/* Jobs that reach further than the pool have memory of their own, until the next mark. */
static void wide_memory(void **state)
{
    (void)state;
    enum { STRIDE = (2 << 20) + 136, KEEP = 24 };
    const struct device_limits *limits = device_limits(device);
    assert_true(limits->wide_bytes > limits->global_bytes);
    struct device_job job = {.agents = {{.sm = 1}}, .agent_count = 1, .step_count = 2};
    const uint64_t count = limits->wide_bytes / STRIDE;
    for (int i = 0; i < 2; i++)
        job.steps[i] = (struct device_step){.kind = i ? DEVICE_CHASE : DEVICE_WARM,
                                            .keep = KEEP,
                                            .array = {.path = DEVICE_GLOBAL_CG,
                                                      .size_bytes = count * STRIDE,
                                                      .stride_bytes = STRIDE}};
    struct device_answer answer;
    for (int round = 0; round < 2; round++) {
        run(&job, 1, 1, &answer);
        for (uint32_t i = 0; i < answer.samples[0].kept_count; i++)
            assert_int_equal(answer.samples[0].kept[i],
                             cycles_at(i * count / answer.samples[0].kept_count * STRIDE));
        device_answers_fini(&answer, 1);
        device_mark(device, "next");
    }
    job.steps[0].kind = DEVICE_FILL; /* only chases may */
    const struct device_batch batch = {.jobs = &job, .job_count = 1};
    memset(&answer, 0, sizeof answer);
    assert_int_equal(device_run(device, &batch, &answer, NULL), -EINVAL);
}

static void what_cannot_run(void **state)
{
    (void)state;
    const struct device_step steps[] = {
        {.kind = DEVICE_CHASE, .array = {.size_bytes = 64, .stride_bytes = 4}},
        {.kind = DEVICE_AVERAGE, .lanes = 2, .array = {.size_bytes = 64, .stride_bytes = 8}},
        {.kind = DEVICE_FILL,
         .array = {.path = DEVICE_SHARED, .size_bytes = 64, .stride_bytes = 8}},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct device_job job = {
            .agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
        struct device_answer answer = {0};
        struct err err = {0};
        job.steps[0] = steps[i];
        const struct device_batch batch = {.jobs = &job, .job_count = 1};
        assert_int_equal(device_run(device, &batch, &answer, &err), -ENOTSUP);
        assert_true(err.text[0] != '\0');
    }
}

static void streams(void **state)
{
    (void)state;
    const struct {
        struct device_stream stream;
        int rc;
        uint64_t bytes;
    } rows[] = {
        {{DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 1 << 20, 8 << 20, 16, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_COPY, DEVICE_GLOBAL_CG, 1 << 20, 1 << 20, 4, 256, 2, 4}, 0, 1 << 20},
        {{DEVICE_STREAM_READ, DEVICE_SHARED, 1 << 14, 8 << 20, 16, 1024, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_BIDIR, DEVICE_GLOBAL_CG, 1 << 20, 8 << 20, 16, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_H2D, DEVICE_GLOBAL_CG, 1 << 20, 8 << 20, 16, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_WRITE, DEVICE_SHARED, 1 << 14, 8 << 20, 2, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CA, 1 << 14, 8 << 20, 16, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, 1 << 14, 8 << 20, 1, 512, 0, 8}, 0, 8 << 20},
        {{DEVICE_STREAM_READ, DEVICE_READ_ONLY, 1 << 14, 8 << 20, 4, 512, 0, 1}, 0, 8 << 20},
        {{DEVICE_STREAM_READ, DEVICE_TEXTURE, 1 << 14, 8 << 20, 8, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_READ, DEVICE_CONSTANT, 1 << 10, 8 << 20, 4, 512, 0, 0}, 0, 8 << 20},
        {{DEVICE_STREAM_READ, DEVICE_CONSTANT, 1 << 12, 8 << 20, 4, 512, 0, 0}, -EINVAL, 0},
        {{DEVICE_STREAM_WRITE, DEVICE_TEXTURE, 1 << 14, 8 << 20, 8, 512, 0, 0}, -EINVAL, 0},
        {{DEVICE_STREAM_COPY, DEVICE_SHARED, 1 << 14, 8 << 20, 16, 512, 0, 0}, -ENOTSUP, 0},
        {{DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 1 << 20, 8 << 20, 2, 512, 0, 0}, -ENOTSUP, 0},
        {{DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 1 << 20, 1 << 17, 16, 512, 2, 4}, 0, 1 << 17},
        {{DEVICE_STREAM_MUL, DEVICE_GLOBAL_CG, 1 << 20, 1 << 17, 16, 512, 2, 2}, 0, 1 << 17},
        {{DEVICE_STREAM_TRIAD, DEVICE_GLOBAL_CG, 3 << 20, 6 << 20, 16, 512, 0, 2}, 0, 6 << 20},
        {{DEVICE_STREAM_ADD, DEVICE_GLOBAL_CG, 3 << 20, 6 << 20, 8, 512, 0, 2}, -ENOTSUP, 0},
        {{DEVICE_STREAM_MUL, DEVICE_SHARED, 1 << 14, 1 << 14, 16, 512, 0, 2}, -ENOTSUP, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_stream_answer answer = {0};
        assert_int_equal(device_stream(device, &rows[i].stream, &answer, NULL), rows[i].rc);
        assert_int_equal(answer.bytes, rows[i].bytes);
        assert_int_equal(answer.elapsed_ns, rows[i].rc ? 0 : 1000000);
    }
}

/* One kernel for each number of accesses in flight; blocks that nobody chose fill the SMs. */
static void streams_in_their_shape(void **state)
{
    (void)state;
    static const struct {
        uint32_t threads, blocks, unroll;
        const char *launch;
    } rows[] = {
        {512, 0, 1, "stream_read_cg_16_1 12 512"},  {1024, 0, 2, "stream_read_cg_16_2 4 1024"},
        {512, 8, 3, "stream_read_cg_16_2 8 512"},   {512, 0, 4, "stream_read_cg_16_4 12 512"},
        {256, 12, 8, "stream_read_cg_16_8 12 256"}, {256, 0, 0, "stream_read_cg_16_4 24 256"},
    };
    assert_int_equal(device_limits(device)->threads_per_sm, 1536);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct device_stream stream = {.kind = DEVICE_STREAM_READ,
                                             .path = DEVICE_GLOBAL_CG,
                                             .footprint_bytes = 1 << 20,
                                             .total_bytes = 8 << 20,
                                             .width_bytes = 16,
                                             .threads = rows[i].threads,
                                             .blocks = rows[i].blocks,
                                             .unroll = rows[i].unroll};
        struct device_stream_answer answer;
        assert_int_equal(device_stream(device, &stream, &answer, NULL), 0);
        assert_string_equal(getenv("FAKE_STREAM"), rows[i].launch);
    }
}

/* By ticket: whole passes, and the blocks that were asked for on each of the four SMs. */
static void streams_by_ticket(void **state)
{
    (void)state;
    static const struct {
        struct device_tickets tickets;
        const char *launch;
        uint64_t bytes;
    } rows[] = {
        {{DEVICE_STREAM_READ, 1 << 20, 8 << 20, 256, 4, 4, 1 << 14, 85},
         "stream_ticket_read_4 16 256",
         8 << 20},
        {{DEVICE_STREAM_WRITE, 1 << 20, 3 << 19, 1024, 1, 1, 1 << 16, 0},
         "stream_ticket_write_1 4 1024",
         1 << 20},
        {{DEVICE_STREAM_COPY, 100000, 200000, 128, 8, 8, 1 << 14, 0},
         "stream_ticket_copy_8 32 128",
         2 * 6 * (1 << 14)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_tickets_answer answer = {0};
        assert_int_equal(device_stream_tickets(device, &rows[i].tickets, &answer, NULL), 0);
        assert_string_equal(getenv("FAKE_STREAM"), rows[i].launch);
        assert_int_equal(answer.bytes, rows[i].bytes);
        assert_int_equal(answer.elapsed_ns, 1000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sequential, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_random_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(constant_chains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_loads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kept_latencies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_grows_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wide_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_in_their_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_by_ticket, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
