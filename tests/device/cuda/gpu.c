/* The CUDA backend on a real GPU: jobs of every path give whole, plausible samples. Skipped, and
 * counted as such, where there is no GPU. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "device/source.h"

enum { SKIPPED = 77, LOADS = 4096, KEEP = 256, SMS_MAX = 1024 };

static struct device_source *source;
static struct device *device;

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

static struct device_job job_of(enum device_path path, uint64_t size, uint64_t stride)
{
    const struct device_array array = {.path = path, .size_bytes = size, .stride_bytes = stride};
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 3};
    job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
    job.steps[1] =
        (struct device_step){.kind = DEVICE_CHASE, .array = array, .loads = LOADS, .keep = KEEP};
    job.steps[2] = (struct device_step){.kind = DEVICE_AVERAGE, .array = array, .loads = LOADS};
    return job;
}

static double median(const struct device_sample *sample)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++) {
        seen += sample->bins[i].count;
        if (2 * seen >= sample->loads)
            return device_bin_cycles(sample->bins[i].bin);
    }
    return -1;
}

static void check_whole(const struct device_sample *sample)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sample->bin_count; i++)
        sum += sample->bins[i].count;
    assert_int_equal(sum, sample->loads);
    assert_int_equal(sample->kept_count, KEEP);
    for (uint32_t i = 0; i < KEEP; i++)
        assert_true(sample->kept[i] > 0);
}

/* Fine-grained timing, less what it adds, and the long chase are two ways to one latency. */
static void every_path_by_two_ways(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum device_path path;
        double least, most; /* cycles, of any GPU this can run on */
    } rows[] = {
        {"global.ca", DEVICE_GLOBAL_CA, 15, 100}, {"global.cg", DEVICE_GLOBAL_CG, 100, 800},
        {"read_only", DEVICE_READ_ONLY, 15, 100}, {"texture", DEVICE_TEXTURE, 20, 200},
        {"constant", DEVICE_CONSTANT, 5, 100},    {"shared", DEVICE_SHARED, 10, 80},
        {"host", DEVICE_HOST, 300, 20000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_job job = job_of(rows[i].path, 1024, 64);
        struct device_answer answer;
        run(&job, 1, 1, &answer);
        assert_int_equal(answer.sample_count, 2);
        check_whole(&answer.samples[0]);
        double fine = median(&answer.samples[0]);
        double average = (double)answer.samples[1].total_cycles / LOADS;
        print_message("%-10s fine %.1f average %.2f cycles, %.0f MHz\n", rows[i].name, fine,
                      average,
                      1e3 * (double)answer.samples[1].total_cycles /
                          (double)(answer.samples[1].elapsed_ns + 1));
        assert_true(average > rows[i].least && average < rows[i].most);
        assert_true(fine > 0.75 * average && fine < 1.25 * average + 40);
        device_answers_fini(&answer, 1);
    }
}

static void one_job_per_sm(void **state)
{
    (void)state;
    static struct device_job jobs[2 * SMS_MAX];
    static struct device_answer answers[2 * SMS_MAX];
    uint32_t sms = device_limits(device)->sm_count;
    assert_in_range(sms, 1, SMS_MAX);
    uint32_t visits[SMS_MAX] = {0};
    for (uint32_t i = 0; i < 2 * sms; i++)
        jobs[i] = job_of(DEVICE_GLOBAL_CA, 1024 + 32 * i, 32);
    run(jobs, 2 * sms, 0, answers);
    for (uint32_t i = 0; i < 2 * sms; i++) {
        assert_int_equal(answers[i].sample_count, 2);
        check_whole(&answers[i].samples[0]);
        assert_in_range(answers[i].samples[0].sm, 0, sms - 1);
        visits[answers[i].samples[0].sm]++;
    }
    for (uint32_t sm = 0; sm < sms; sm++)
        assert_int_equal(visits[sm], 2);
    device_answers_fini(answers, 2 * sms);
}

/* A sweep over many sizes is the faster the more SMs take part in it. */
static void sweeps_spread_over_the_sms(void **state)
{
    (void)state;
    enum { SIZES = 263, REPEATS = 4 };
    static struct device_job jobs[SIZES];
    static struct device_answer answers[SIZES];
    double seconds[2];
    for (uint32_t i = 0; i < SIZES; i++) {
        jobs[i] = job_of(DEVICE_GLOBAL_CA, 128 * (1024 + 4 * i), 128);
        jobs[i].steps[1].loads = 0;
        jobs[i].step_count = 2;
    }
    for (uint32_t alone = 0; alone < 2; alone++) {
        seconds[alone] = INFINITY;
        for (int repeat = 0; repeat < REPEATS; repeat++) { /* the first fills L2 and allocates */
            double start_s = clock_monotonic_s();
            run(jobs, SIZES, alone, answers);
            seconds[alone] = fmin(seconds[alone], clock_monotonic_s() - start_s);
            device_answers_fini(answers, SIZES);
        }
    }
    print_message("%d sizes: %.2f ms on all SMs, %.1f ms on one\n", SIZES, 1e3 * seconds[0],
                  1e3 * seconds[1]);
    assert_true(seconds[1] > 0.2 * device_limits(device)->sm_count * seconds[0]);
}

static void pinned_jobs_run_where_they_should(void **state)
{
    (void)state;
    uint32_t sms = device_limits(device)->sm_count;
    struct device_job jobs[2] = {job_of(DEVICE_GLOBAL_CA, 1024, 32),
                                 job_of(DEVICE_GLOBAL_CA, 1024, 32)};
    struct device_answer answers[2];
    jobs[0].agents[0].sm = jobs[1].agents[0].sm = (int32_t)sms - 1;
    run(jobs, 2, 0, answers);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(answers[i].samples[0].sm, sms - 1);
    device_answers_fini(answers, 2);
}

/* First touch misses, second hits: launches begin with a cold L1, steps share it. */
static void cold_then_warm(void **state)
{
    (void)state;
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = 8192, .stride_bytes = 128};
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1, .step_count = 2};
    job.steps[0] = job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .array = array};
    struct device_answer answer;
    run(&job, 1, 1, &answer);
    device_answers_fini(&answer, 1);
    run(&job, 1, 1, &answer); /* not a first launch: L2 has the array, L1 has not */
    print_message("cold %.0f warm %.0f cycles\n", median(&answer.samples[0]),
                  median(&answer.samples[1]));
    assert_true(median(&answer.samples[0]) > 2 * median(&answer.samples[1]));
    device_answers_fini(&answer, 1);
}

/* A second agent on the same SM sees what the first brought into L1; one on another SM does not. */
static void two_agents(void **state)
{
    (void)state;
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CA, .size_bytes = 8192, .stride_bytes = 128};
    static const int32_t where[] = {DEVICE_SM_SAME, DEVICE_SM_OTHER};
    double cycles[2];
    for (size_t i = 0; i < 2; i++) {
        struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}, {.sm = where[i], .warp = 1}},
                                 .agent_count = 2,
                                 .step_count = 2};
        job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
        job.steps[1] = (struct device_step){.kind = DEVICE_CHASE, .agent = 1, .array = array};
        struct device_answer answer;
        run(&job, 1, 1, &answer);
        cycles[i] = median(&answer.samples[0]);
        device_answers_fini(&answer, 1);
    }
    assert_true(cycles[1] > 2 * cycles[0]);
}

/* L2 filled by many warps, timed by one thread in random order; cold, then from DRAM. */
static void filled_and_cold_l2(void **state)
{
    (void)state;
    const struct device_array array = {.path = DEVICE_GLOBAL_CG,
                                       .size_bytes = UINT64_C(2) << 20,
                                       .stride_bytes = 128,
                                       .order = DEVICE_RANDOM,
                                       .seed = 1};
    struct device_job job = {.agents = {{.sm = DEVICE_SM_ANY}}, .agent_count = 1};
    job.steps[0] = (struct device_step){.kind = DEVICE_CHASE, .array = array, .loads = 2000};
    job.step_count = 1;
    job.cold_l2 = true;
    struct device_answer cold, filled;
    run(&job, 1, 1, &cold);
    job.steps[1] = job.steps[0];
    job.steps[0] = (struct device_step){.kind = DEVICE_FILL, .array = array};
    job.step_count = 2;
    run(&job, 1, 1, &filled);
    print_message("L2 %.0f DRAM %.0f cycles\n", median(&filled.samples[0]),
                  median(&cold.samples[0]));
    assert_true(median(&cold.samples[0]) > 1.3 * median(&filled.samples[0]));
    device_answers_fini(&cold, 1);
    device_answers_fini(&filled, 1);
}

/* What was loaded again and again is gone behind a flush, in every launch. */
static void flushed_l2(void **state)
{
    (void)state;
    const struct device_array array = {
        .path = DEVICE_GLOBAL_CG, .size_bytes = UINT64_C(2) << 20, .stride_bytes = 1088};
    const struct device_step chase = {.kind = DEVICE_CHASE, .array = array};
    struct device_job warm = {.agents = {{.sm = 0}}, .agent_count = 1, .step_count = 2};
    struct device_job cold = {
        .agents = {{.sm = 0}}, .agent_count = 1, .step_count = 1, .cold_l2 = true};
    warm.steps[0] = warm.steps[1] = cold.steps[0] = chase;
    for (int i = 0; i < 3; i++) {
        struct device_answer hits, misses;
        run(&warm, 1, 1, &hits);
        run(&cold, 1, 1, &misses);
        print_message("L2 %.0f cycles, behind a flush %.0f\n", median(&hits.samples[1]),
                      median(&misses.samples[0]));
        assert_true(median(&misses.samples[0]) > 1.3 * median(&hits.samples[1]));
        device_answers_fini(&hits, 1);
        device_answers_fini(&misses, 1);
    }
}

static void streams(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct device_stream stream;
    } rows[] = {
        {"read 1 GiB",
         {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 1ull << 30, 8ull << 30, 16, 512, 0, 0}},
        {"write 1 GiB",
         {DEVICE_STREAM_WRITE, DEVICE_GLOBAL_CG, 1ull << 30, 8ull << 30, 16, 512, 0, 0}},
        {"copy 1 GiB",
         {DEVICE_STREAM_COPY, DEVICE_GLOBAL_CG, 1ull << 30, 8ull << 30, 16, 512, 0, 0}},
        {"read 16 MiB",
         {DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, 16ull << 20, 8ull << 30, 16, 512, 0, 0}},
        {"L1 16 KiB",
         {DEVICE_STREAM_READ, DEVICE_GLOBAL_CA, 16ull << 10, 16ull << 30, 16, 1024, 0, 0}},
        {"shared 16 KiB",
         {DEVICE_STREAM_READ, DEVICE_SHARED, 16ull << 10, 16ull << 30, 16, 1024, 0, 0}},
        {"H2D", {DEVICE_STREAM_H2D, DEVICE_GLOBAL_CG, 32ull << 20, 1ull << 30, 16, 512, 0, 0}},
        {"D2H", {DEVICE_STREAM_D2H, DEVICE_GLOBAL_CG, 32ull << 20, 1ull << 30, 16, 512, 0, 0}},
        {"both", {DEVICE_STREAM_BIDIR, DEVICE_GLOBAL_CG, 32ull << 20, 2ull << 30, 16, 512, 0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_stream_answer answer = {0};
        struct err err = {0};
        int rc = device_stream(device, &rows[i].stream, &answer, &err);
        if (rc)
            fail_msg("%s: %s", rows[i].name, err.text);
        double rate = (double)answer.bytes / (double)answer.elapsed_ns;
        print_message("%-14s %.0f GB/s\n", rows[i].name, rate);
        assert_true(rate > 1);
    }
}

static double l2_rate(uint64_t footprint_bytes, uint32_t threads, uint32_t unroll)
{
    const struct device_stream stream = {
        DEVICE_STREAM_READ, DEVICE_GLOBAL_CG, footprint_bytes, 32ull << 30, 16, threads, 0, unroll};
    struct device_stream_answer answer = {0};
    assert_int_equal(device_stream(device, &stream, &answer, NULL), 0);
    return (double)answer.bytes / (double)answer.elapsed_ns;
}

/* A smaller footprint within a part of L2 is not faster: otherwise the rate is not L2's, but that
 * of loads that several blocks have in common and that are merged before L2. Seen on an H200: 0 to
 * 1 %; 10 to 18 % where each block hands its part to the next one. */
static void l2_streams_have_nothing_in_common(void **state)
{
    (void)state;
    uint64_t l2_bytes = device_limits(device)->l2_reported_bytes;
    for (uint32_t threads = 256; threads <= 1024; threads *= 2) {
        double small = l2_rate(l2_bytes / 5, threads, 2);
        double large = l2_rate(l2_bytes * 12 / 25, threads, 2);
        print_message("L2, %4u threads: small %.0f, large %.0f GB/s\n", threads, small, large);
        assert_true(small < 1.05 * large);
    }
}

/* More accesses in flight are not slower, at footprints that all threads share evenly. Seen on an
 * H200: 9.03 TB/s with one, 9.38 to 9.40 with two. */
static void l2_streams_by_accesses_in_flight(void **state)
{
    (void)state;
    const struct device_limits *limits = device_limits(device);
    uint64_t even = (uint64_t)limits->sm_count * (limits->threads_per_sm / 512) * 512 * 16 * 4;
    double one = l2_rate(even, 512, 1), two = l2_rate(even, 512, 2), four = l2_rate(even, 512, 4);
    print_message("L2, %.1f MB, in flight 1: %.0f, 2: %.0f, 4: %.0f GB/s\n", (double)even / 1e6,
                  one, two, four);
    assert_true(limits->threads_per_sm >= 512);
    if (even < limits->l2_reported_bytes / 2)
        assert_true(two > 0.98 * one && four > 0.98 * one);
}

/* GB/s of all SMs, added up; *out_least and *out_most: of one SM. */
static double map_rate(uint64_t footprint_bytes, const uint16_t *turns, double *out_least,
                       double *out_most)
{
    const struct device_sm_map map = {
        .footprint_bytes = footprint_bytes, .window_cycles = 400000, .turns = turns};
    struct device_sm_map_answer answer;
    struct err err = {0};
    double sum = 0;
    if (device_map_sms(device, &map, &answer, &err))
        fail_msg("%s", err.text);
    *out_least = INFINITY;
    *out_most = 0;
    for (size_t i = 0; i < answer.value_count; i += 2) {
        double rate = (double)answer.values[i] / (double)answer.values[i + 1];
        *out_least = fmin(*out_least, rate);
        *out_most = fmax(*out_most, rate);
        sum += rate;
    }
    device_sm_map_answer_fini(&answer);
    return sum;
}

/* In a stream all SMs read as much, so the slowest one decides: as many times what that one reads
 * when all read together. Another working set gives the same: else loads would be merged. An SM
 * alone reads more than its share, and never more than 128 bytes per cycle: what a warp loads in
 * one. */
static void sms_read_l2(void **state)
{
    (void)state;
    uint16_t together[SMS_MAX] = {0}, alone[SMS_MAX];
    struct device_clocks clocks;
    double least, most;
    assert_true(device_limits(device)->sm_count <= SMS_MAX);
    for (uint16_t i = 0; i < SMS_MAX; i++)
        alone[i] = i;
    double stream = l2_rate(8 << 20, 1024, 4);
    double small = map_rate(18 << 20, together, &least, &most);
    double all = map_rate(24 << 20, together, &least, &most), slowest = least;
    print_message("together %.0f GB/s (%.1f to %.1f per SM), of 18 MiB %.0f, stream %.0f\n", all,
                  least, most, small, stream);
    double share = all / device_limits(device)->sm_count;
    assert_true(fabs(slowest * device_limits(device)->sm_count / stream - 1) < 0.1);
    assert_true(all > 0.95 * stream && fabs(small / all - 1) < 0.05);
    map_rate(24 << 20, alone, &least, &most);
    assert_int_equal(device_read_clocks(device, &clocks, NULL), 0);
    print_message("alone %.1f to %.1f GB/s\n", least, most);
    assert_true(least > 0.95 * share && most < 128 * clocks.sm_mhz / 1e3);
}

/* Every SM takes longer to memory that nobody has loaded than to L2. */
static void sms_load_memory(void **state)
{
    (void)state;
    const struct device_sm_map map = {.kind = DEVICE_SM_MAP_MEMORY, .regions = 32, .loads = 64};
    struct device_sm_map_answer answer;
    struct err err = {0};
    double least = INFINITY, most = 0;
    if (device_map_sms(device, &map, &answer, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < answer.value_count; i++) {
        least = fmin(least, (double)answer.values[i] / map.loads);
        most = fmax(most, (double)answer.values[i] / map.loads);
    }
    print_message("memory %.0f to %.0f cycles, regions of %.2f GiB\n", least, most,
                  (double)answer.region_bytes / (1 << 30));
    device_sm_map_answer_fini(&answer);
    assert_true(least > 400 && most < 5000);
}

/* A load takes longer the more others read, and half of the limit is half of what they read. */
static void loads_beside_readers(void **state)
{
    (void)state;
    const uint64_t l2_bytes = device_limits(device)->l2_reported_bytes;
    struct err err = {0};
    for (int cold = 0; cold < 2; cold++) {
        struct device_loaded_chase asked = {.cold = cold,
                                            .footprint_bytes = cold ? 16 * l2_bytes : l2_bytes / 4,
                                            .chasers = 1,
                                            .window_cycles = 1 << 18};
        struct device_loaded_chase_answer all, half, none;
        if (device_chase_loaded(device, &asked, &all, &err) ||
            device_chase_loaded(device, &asked, &all, &err))
            fail_msg("%s", err.text);
        asked.limit_bytes = all.bytes / 2;
        assert_int_equal(device_chase_loaded(device, &asked, &half, NULL), 0);
        asked.quiet = true;
        assert_int_equal(device_chase_loaded(device, &asked, &none, NULL), 0);
        print_message(
            "%s: %.0f cycles, %.0f at %.0f GB/s, %.0f at %.0f GB/s\n", cold ? "memory" : "L2",
            (double)none.cycles / (double)none.loads, (double)half.cycles / (double)half.loads,
            (double)half.bytes / (double)half.elapsed_ns, (double)all.cycles / (double)all.loads,
            (double)all.bytes / (double)all.elapsed_ns);
        assert_true(none.bytes == 0 && none.loads > 100);
        assert_true(fabs((double)half.bytes / (double)asked.limit_bytes - 1) < 0.1);
        assert_true(all.cycles * none.loads > none.cycles * all.loads);
    }
}

static void identity_and_clocks(void **state)
{
    (void)state;
    struct facts hardware = {0}, board = {0}, config = {0}, health = {0};
    struct device_look look = {0};
    struct device_clocks clocks;
    double mhz = 0;
    assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
    assert_true(facts_int(&hardware, "sms", 0) > 0);
    assert_non_null(facts_text(&hardware, "compute_capability"));
    assert_int_equal(device_warm_up(device, &mhz, NULL), 0);
    print_message("%s: %.0f MHz\n", device_source_info(source, 0)->name, mhz);
    if (device_read_clocks(device, &clocks, NULL) == 0)
        print_message("NVML: SM %.0f memory %.0f MHz, throttle 0x%llx\n", clocks.sm_mhz,
                      clocks.memory_mhz, (unsigned long long)clocks.throttle_reasons);
    double begin_s = clock_monotonic_s();
    assert_int_equal(device_read_health(device, &config, &health, NULL), 0);
    print_message("health in %.1f ms\n", 1e3 * (clock_monotonic_s() - begin_s));
    begin_s = clock_monotonic_s();
    assert_int_equal(device_source_look(source, 0, false, &look, NULL), 0);
    print_message("a look in %.1f ms\n", 1e3 * (clock_monotonic_s() - begin_s));
    device_look_fini(&look);
    const struct facts *all[] = {&hardware, &board, &config, &health};
    for (size_t f = 0; f < sizeof all / sizeof *all; f++)
        for (size_t i = 0; i < all[f]->count; i++) {
            const struct fact *fact = &all[f]->items[i];
            print_message("  %s: %lld %s%s\n", fact->key,
                          (long long)(fact->kind == FACT_BOOL ? fact->flag : fact->integer),
                          fact->kind == FACT_UNKNOWN ? "unknown: " : "",
                          fact->text ? fact->text : "");
        }
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
    facts_fini(&health);
}

int main(void)
{
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    if (rc == -ENODEV || rc == -ENOTSUP) {
        printf("skipped: %s\n", err.text);
        return SKIPPED;
    }
    if (!rc)
        rc = device_source_open(source, 0, &device, &err);
    if (rc) {
        fprintf(stderr, "%s\n", err.text);
        device_source_destroy(source);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_and_clocks),
        cmocka_unit_test(every_path_by_two_ways),
        cmocka_unit_test(sweeps_spread_over_the_sms),
        cmocka_unit_test(one_job_per_sm),
        cmocka_unit_test(pinned_jobs_run_where_they_should),
        cmocka_unit_test(cold_then_warm),
        cmocka_unit_test(two_agents),
        cmocka_unit_test(filled_and_cold_l2),
        cmocka_unit_test(flushed_l2),
        cmocka_unit_test(streams),
        cmocka_unit_test(l2_streams_have_nothing_in_common),
        cmocka_unit_test(l2_streams_by_accesses_in_flight),
        cmocka_unit_test(sms_read_l2),
        cmocka_unit_test(loads_beside_readers),
        cmocka_unit_test(sms_load_memory),
    };
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    device_destroy(device);
    device_source_destroy(source);
    return rc;
}
