/* Batches of the CUDA backend on a stand-in driver: every job runs, on an SM of its own, and loads
 * just the elements that the interface says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/source.h"
#include "device/turn.h"

enum { SMS = 4, MANY = 11 };

static struct device_source *source;
static struct device *device;

static int set_up(void **state)
{
    (void)state;
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    if (!rc)
        rc = device_source_open(source, 0, &device, &err);
    if (rc)
        print_error("%s\n", err.text);
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    device_destroy(device);
    device_source_destroy(source);
    device = NULL;
    source = NULL;
    return 0;
}

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

static void identity(void **state)
{
    (void)state;
    const struct device_info *info = device_source_info(source, 0);
    assert_string_equal(info->uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    assert_string_equal(info->pci, "ffff:1b:00.0");
    assert_string_equal(info->name, "Fake GPU");
    assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1"); /* before cuInit reads it */
    const struct device_limits *limits = device_limits(device);
    assert_int_equal(limits->sm_count, SMS);
    assert_int_equal(limits->constant_bytes, 65536);
    struct facts hardware = {0}, board = {0}, config = {0};
    assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
    assert_int_equal(facts_int(&hardware, "sms", 0), SMS);
    assert_string_equal(facts_text(&hardware, "compute_capability"), "9.9");
    assert_int_equal(facts_get(&hardware, "copy_engines")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&board, "serial")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&config, "ecc")->kind, FACT_UNKNOWN);
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
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

/* Loads come back in their bin, also in the last bins, which only very slow loads fill. */
static void slow_loads(void **state)
{
    (void)state;
    enum { LOADS = 40 };
    static const struct {
        const char *cycles;
        uint32_t bin;
    } rows[] = {{"1", 1},
                {"255", 255},
                {"256", 256},
                {"15728640", DEVICE_BIN_COUNT - 16},
                {"4294967295", DEVICE_BIN_COUNT - 1}};
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 1};
    job.steps[0] = (struct device_step){
        .kind = DEVICE_CHASE, .loads = LOADS, .array = {.size_bytes = 1024, .stride_bytes = 32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_answer answer;
        setenv("FAKE_CUDA_CYCLES", rows[i].cycles, 1);
        run(&job, 1, 1, &answer);
        unsetenv("FAKE_CUDA_CYCLES");
        assert_int_equal(answer.samples[0].bin_count, 1);
        assert_int_equal(answer.samples[0].bins[0].bin, rows[i].bin);
        assert_int_equal(answer.samples[0].bins[0].count, LOADS);
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
        {{DEVICE_STREAM_WRITE, DEVICE_SHARED, 1 << 14, 8 << 20, 16, 512, 0, 0}, -ENOTSUP, 0},
        {{DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 1 << 20, 8 << 20, 2, 512, 0, 0}, -ENOTSUP, 0},
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

/* Every region is tested with every pattern, whichever comes first; a bit that is always 1 is found
 * where it lies, as often as a pattern has a 0 there. */
static void memory_test(void **state)
{
    (void)state;
    enum { REGION = 4 << 20, STUCK = 9 * REGION + 96 };
    struct device_memory_test test = {.region_bytes = REGION, .loads = 8, .seed = 5};
    for (test.patterns = 1; test.patterns <= DEVICE_PATTERN_COUNT; test.patterns++) {
        struct device_memory_map map;
        struct err err = {0};
        assert_int_equal(setenv("FAKE_CUDA_STUCK", "37748832", 1), 0); /* STUCK */
        assert_int_equal(device_test_memory(device, &test, &map, &err), 0);
        uint64_t bytes = 0;
        for (size_t i = 0; i < map.region_count; i++) {
            const struct device_region *region = &map.regions[i];
            bytes += region->bytes;
            for (uint32_t p = 0; p < test.patterns; p++)
                assert_true(region->write_ns[p] == 1000000 && region->read_ns[p] == 1000000);
            assert_int_equal(region->wrong_words > 0, i == STUCK / REGION && test.patterns > 1);
        }
        assert_true(bytes > 0.95 * (double)map.free_bytes && bytes < map.free_bytes);
        const struct device_region *wrong = &map.regions[STUCK / REGION];
        assert_int_equal(wrong->wrong_offset, test.patterns > 1 ? STUCK % REGION : 0);
        assert_int_equal(wrong->wrong_bits, test.patterns > 1 ? 1 << 5 : 0);
        device_memory_map_fini(&map);
        assert_int_equal(unsetenv("FAKE_CUDA_STUCK"), 0);
    }
    static const struct device_memory_test refused[] = {{.patterns = 1, .region_bytes = 1000},
                                                        {.patterns = 1, .region_bytes = 3 * REGION},
                                                        {.patterns = 0, .region_bytes = REGION}};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct device_memory_map none;
        struct err err = {0};
        assert_int_equal(device_test_memory(device, &refused[i], &none, &err), -EINVAL);
    }
}

/* Every unit that the GPU has is checked on every sub-core; a wrong SM is the only one. */
static void unit_checks(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++)
        for (int unit = 0; unit < DEVICE_UNIT_COUNT; unit++) {
            const struct device_check check = {.unit = (enum device_unit)unit, .target_ms = 1};
            struct device_check_answer answer;
            struct err err = {0};
            if (wrong)
                setenv("FAKE_CUDA_WRONG", "1", 1);
            int rc = device_check_unit(device, &check, &answer, &err);
            unsetenv("FAKE_CUDA_WRONG");
            if (rc == -ENOTSUP)
                continue;
            assert_int_equal(rc, 0);
            assert_int_equal(answer.place_count,
                             device_limits(device)->sm_count * DEVICE_SUB_CORES);
            for (size_t i = 0; i < answer.place_count; i++) {
                bool expected = wrong && i / DEVICE_SUB_CORES == 1;
                assert_true(answer.places[i].count > 0);
                assert_int_equal(answer.places[i].wrong, expected ? answer.places[i].count : 0);
            }
            device_check_answer_fini(&answer);
        }
    const struct device_check none = {.unit = DEVICE_UNIT_COUNT};
    struct device_check_answer answer;
    struct err err = {0};
    assert_int_equal(device_check_unit(device, &none, &answer, &err), -EINVAL);
}

/* SMs read in their turns, alone or together, and every one has its own value. */
static void sm_maps(void **state)
{
    (void)state;
    static const uint16_t alone[] = {0, 1, 2, 3}, groups[] = {1, 0, 1, 0}, late[] = {0, 0, 0, 4};
    struct device_sm_map map = {.footprint_bytes = 4 << 20, .window_cycles = 1000, .turns = alone};
    struct device_sm_map_answer answer;
    struct err err = {0};
    for (int i = 0; i < 2; i++, map.turns = groups) {
        assert_int_equal(device_map_sms(device, &map, &answer, &err), 0);
        assert_int_equal(answer.value_count, 8);
        for (uint64_t sm = 0; sm < 4; sm++)
            assert_true(answer.values[2 * sm] == 1000000 * (sm + 1) &&
                        answer.values[2 * sm + 1] == 1000);
        device_sm_map_answer_fini(&answer);
    }
    setenv("FAKE_CUDA_SHARED", "1", 1);
    assert_int_equal(device_map_sms(device, &map, &answer, &err), -EBUSY);
    unsetenv("FAKE_CUDA_SHARED");
    map.turns = late;
    assert_int_equal(device_map_sms(device, &map, &answer, &err), -EINVAL);
    const struct device_sm_map memory = {.kind = DEVICE_SM_MAP_MEMORY, .regions = 4, .loads = 8};
    int rc = device_map_sms(device, &memory, &answer, &err);
    if (rc)
        print_error("%s\n", err.text);
    assert_int_equal(rc, 0);
    assert_true(answer.value_count == 16 && answer.region_bytes % (2 << 20) == 0);
    for (uint64_t i = 0; i < 16; i++)
        assert_int_equal(answer.values[i], 8 * (500 + i / 4 + i % 4));
    device_sm_map_answer_fini(&answer);
    const struct device_sm_map none = {.kind = DEVICE_SM_MAP_MEMORY, .regions = 4};
    assert_int_equal(device_map_sms(device, &none, &answer, &err), -EINVAL);
}

/* A test that fails leaves nothing behind: the next one is complete. Where memory cannot be
 * allocated, a little less is. */
static void memory_test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        int rc;
    } rows[] = {
        {"cuMemAlloc:1:2", 0},
        {"cuMemAlloc:1:700", -EIO},
        {"cuLaunchKernel:3:700", -EIO},
        {"cuLaunchKernel:7:700", -EIO},
        {"cuStreamSynchronize:1:700", -EIO},
    };
    const struct device_memory_test test = {.patterns = 1, .region_bytes = 8 << 20, .loads = 8};
    uint64_t complete = 0;
    for (size_t i = 0; i <= COUNT_OF(rows); i++) {
        struct device_memory_map map = {0};
        struct err err = {0};
        assert_int_equal(device_test_memory(device, &test, &map, &err), 0);
        size_t last = map.region_count - 1;
        uint64_t bytes = last * test.region_bytes + map.regions[last].bytes;
        complete = i ? complete : bytes;
        assert_int_equal(bytes, complete);
        device_memory_map_fini(&map);
        if (i == COUNT_OF(rows))
            break;
        assert_int_equal(setenv("FAKE_CUDA_FAULT", rows[i].fault, 1), 0);
        int rc = device_test_memory(device, &test, &map, &err);
        assert_int_equal(unsetenv("FAKE_CUDA_FAULT"), 0);
        if (rc != rows[i].rc)
            fail_msg("%s: %d: %s", rows[i].fault, rc, err.text);
        assert_int_equal(map.regions != NULL, rc == 0);
        if (!rc)
            assert_true(map.regions[map.region_count - 1].bytes < test.region_bytes);
        device_memory_map_fini(&map);
    }
}

static void check_samples(const struct device_load_answer *answer)
{
    for (size_t i = 1; i < answer->sample_count; i++) {
        const struct device_load_sample *s = &answer->samples[i], *before = s - 1;
        assert_true(s->at_ns >= before->at_ns && s->operations >= before->operations &&
                    s->cycles_ns >= before->cycles_ns);
    }
}

/* The load lasts as long as it should, or as it may, and counts what its launches did. */
static void sustained_load(void **state)
{
    (void)state;
    static const struct {
        uint32_t duration_ms, limit_ms;
        enum device_load_end end;
    } rows[] = {{1000, 5000, DEVICE_LOAD_DONE}, {1000, 300, DEVICE_LOAD_TIME}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct device_load load = {rows[i].duration_ms, 100, rows[i].limit_ms};
        struct device_load_answer answer;
        struct err err = {0};
        assert_int_equal(device_run_load(device, &load, &answer, &err), 0);
        uint32_t ms =
            rows[i].duration_ms < rows[i].limit_ms ? rows[i].duration_ms : rows[i].limit_ms;
        const struct device_load_sample *last = &answer.samples[answer.sample_count - 1];
        assert_int_equal(answer.end, rows[i].end);
        assert_int_equal(answer.unit, DEVICE_LOAD_MMA);
        assert_in_range(last->at_ns, ms * UINT64_C(1000000), (ms + 100) * UINT64_C(1000000));
        assert_true(last->cycles_ns == last->at_ns && last->cycles == last->at_ns * 3 / 2);
        assert_in_range(answer.sample_count, ms / 100, ms / 100 + 3);
        check_samples(&answer);
        device_load_answer_fini(&answer);
    }
    const struct device_load refused = {.duration_ms = 0, .sample_ms = 1, .limit_ms = 1};
    struct device_load_answer none;
    assert_int_equal(device_run_load(device, &refused, &none, NULL), -EINVAL);
}

/* A load that fails leaves nothing behind: the next one is complete. */
static void sustained_load_errors(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        int rc;
    } rows[] = {
        {"cuModuleLoadData:1:700", -EIO},  {"cuMemAlloc:1:2", -ENOSPC},
        {"cuLaunchKernel:1:700", -EIO},    {"cuLaunchKernel:9:700", -EIO},
        {"cuMemcpyDtoHAsync:4:700", -EIO},
    };
    const struct device_load load = {500, 100, 5000};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct device_load_answer answer;
        struct err err = {0};
        assert_int_equal(setenv("FAKE_CUDA_FAULT", rows[i].fault, 1), 0);
        int rc = device_run_load(device, &load, &answer, &err);
        assert_int_equal(unsetenv("FAKE_CUDA_FAULT"), 0);
        if (rc != rows[i].rc)
            fail_msg("%s: %d: %s", rows[i].fault, rc, err.text);
        assert_null(answer.samples);
        assert_int_equal(device_run_load(device, &load, &answer, &err), 0);
        assert_true(answer.sample_count > 4);
        device_load_answer_fini(&answer);
    }
}

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
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
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
    assert_string_equal(facts_text(&gpus, "own"), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    assert_string_equal(facts_text(&gpus, "2"), "GPU-02112233-4455-6677-8899-aabbccddeeff");
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
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
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

/* Carve-outs are documented by compute capability, and only where the driver agrees. */
static void documented_carveouts(void **state)
{
    (void)state;
    static const struct {
        const char *capability;
        uint64_t first_kib, last_kib, l1_kib; /* 0: no document */
    } rows[] = {
        {"75:65536", 32, 64, 64},     {"89:102400", 32, 100, 96},   {"90:233472", 32, 228, 224},
        {"100:233472", 32, 228, 224}, {"103:233472", 32, 228, 224}, {"110:233472", 32, 228, 224},
        {"120:102400", 32, 100, 96},  {"121:102400", 32, 100, 96},  {"90:102400", 0, 0, 0},
        {"130:233472", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_CUDA_CAPABILITY", rows[i].capability, 1);
        assert_int_equal(set_up(NULL), 0);
        unsetenv("FAKE_CUDA_CAPABILITY");
        const struct device_limits *limits = device_limits(device);
        uint64_t last = 0;
        for (size_t k = 0; k < DEVICE_CARVEOUTS_MAX && limits->carveout_steps[k]; k++)
            last = limits->carveout_steps[k];
        assert_int_equal(limits->carveout_steps[0], rows[i].first_kib * 1024);
        assert_int_equal(last, rows[i].last_kib * 1024);
        assert_int_equal(limits->l1_nominal_bytes, rows[i].l1_kib * 1024);
        tear_down(NULL);
    }
}

/* A driver without that limit leaves it unknown, with the reason. */
static void l2_fetch_limit(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct facts hardware = {0}, board = {0}, config = {0};
        if (fails)
            setenv("FAKE_CUDA_FAULT", "cuCtxGetLimit:1:215", 1);
        assert_int_equal(set_up(NULL), 0);
        unsetenv("FAKE_CUDA_FAULT");
        assert_int_equal(device_limits(device)->l2_fetch_limit_bytes, fails ? 0 : 64);
        if (fails)
            setenv("FAKE_CUDA_FAULT", "cuCtxGetLimit:1:216", 1);
        assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
        unsetenv("FAKE_CUDA_FAULT");
        const struct fact *fact = facts_get(&config, "l2_fetch_limit_bytes");
        assert_non_null(fact);
        assert_int_equal(fact->kind, fails ? FACT_UNKNOWN : FACT_INT);
        facts_fini(&hardware);
        facts_fini(&board);
        facts_fini(&config);
        tear_down(NULL);
    }
}

/* The reasons for having no GPU are told apart. */
static void reasons(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *value, *visible, *text;
    } rows[] = {
        {"FAKE_CUDA_INIT", "100", NULL, "finds no GPU"},
        {"FAKE_CUDA_INIT", "100", "", "CUDA_VISIBLE_DEVICES is empty; under Slurm ask for"},
        {"FAKE_CUDA_INIT", "999", NULL, "CUDA_ERROR_FAKE (999)"},
        {"FAKE_CUDA_VERSION", "11040", NULL, "supports CUDA 11.4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_source *none = NULL;
        struct err err = {0};
        setenv(rows[i].variable, rows[i].value, 1);
        if (rows[i].visible)
            setenv("CUDA_VISIBLE_DEVICES", rows[i].visible, 1);
        assert_int_equal(device_source_cuda(&none, &err), -ENODEV);
        unsetenv(rows[i].variable);
        unsetenv("CUDA_VISIBLE_DEVICES");
        assert_int_equal(err.code, -ENODEV);
        if (!strstr(err.text, rows[i].text))
            fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identity, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sequential, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_random_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(constant_chains, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_loads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(segments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_grows_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams, set_up, tear_down),
        cmocka_unit_test_setup_teardown(streams_in_their_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_test, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unit_checks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sm_maps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sustained_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sustained_load_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links, set_up_three, tear_down_three),
        cmocka_unit_test_setup_teardown(host_links_at_once, set_up_three, tear_down_three),
        cmocka_unit_test(documented_carveouts),
        cmocka_unit_test(l2_fetch_limit),
        cmocka_unit_test(reasons),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
