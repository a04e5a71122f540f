/* The simulated GPU as probes see it: paths, sharing, carve-out, L2 parts, TLBs, step semantics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"
#include "bench.h"

static const char spaces[] =
    "caches:\n"
    "  l1: {size: 16 KiB, line: 128, sector: 32, ways: 4}\n"
    "  tex: {size: 8 KiB, line: 64, ways: full, instances: 4}\n"
    "  blocked: {size: 8 KiB, line: 64, ways: full, instances: 2, warp_map: blocked}\n"
    "  c1: {size: 2 KiB, line: 64, ways: 4}\n"
    "  c15: {size: 8 KiB, line: 64, ways: full, scope: tpc}\n"
    "l2: {size: 256 KiB, line: 128, sector: 32, fetch: 64, ways: 16}\n"
    "shared: {conflict_cycles: 3}\n"
    "timer: {overhead_cycles: 10}\n"
    "paths:\n"
    "  global_ca: [l1: 30, l2: 200, main: 500]\n"
    "  global_cg: [l2: 190, main: 490]\n"
    "  read_only: [l1: 35, l2: 200, main: 500]\n"
    "  texture: [tex: 40, l2: 210, main: 510]\n"
    "  constant: [c1: 20, c15: 60, l2: 220, main: 520]\n"
    "  shared: 25\n"
    "  host: 1000\n";

enum { OVERHEAD = 10 };

struct path_case {
    enum device_path path;
    uint64_t size_bytes;
    double cycles; /* of every load of the second pass */
};
static const struct path_case path_cases[] = {
    {DEVICE_GLOBAL_CA, 16 << 10, 30}, {DEVICE_GLOBAL_CA, 64 << 10, 200},
    {DEVICE_GLOBAL_CA, 1 << 20, 500}, {DEVICE_GLOBAL_CG, 4 << 10, 190},
    {DEVICE_GLOBAL_CG, 1 << 20, 490}, {DEVICE_READ_ONLY, 16 << 10, 35},
    {DEVICE_TEXTURE, 8 << 10, 40},    {DEVICE_TEXTURE, 64 << 10, 210},
    {DEVICE_CONSTANT, 2 << 10, 20},   {DEVICE_CONSTANT, 8 << 10, 60},
    {DEVICE_CONSTANT, 32 << 10, 220}, {DEVICE_SHARED, 16 << 10, 25},
    {DEVICE_HOST, 1 << 20, 1000},
};

static void each_path_has_its_latencies(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    for (size_t i = 0; i < COUNT_OF(path_cases); i++) {
        const struct path_case *c = &path_cases[i];
        struct device_job job = bench_warm_chase(bench_array(c->path, c->size_bytes, 128));
        double mean = bench_mean(device, &job);
        if (mean != c->cycles + OVERHEAD)
            fail_msg("case %zu: %g cycles", i, mean);
    }
    device_destroy(device);
}

/* Average: one overhead for the whole step, and steady passes are the same as executed ones. */
static void average_has_one_overhead(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 16 << 10, 128));
    job.steps[1].kind = DEVICE_AVERAGE;
    job.steps[1].loads = 1000;
    assert_true(bench_mean(device, &job) == (1000 * 30.0 + OVERHEAD) / 1000);
    job.steps[0].array = job.steps[1].array = bench_array(DEVICE_GLOBAL_CA, 64 << 10, 128);
    job.steps[1].loads = 100001;
    double mean = bench_mean(device, &job);
    assert_true(mean > 200 && mean < 200.001);
    device_destroy(device);
}

/* Second agent evicts (or not) what the first one warmed. */
static uint64_t misses_after_other(struct device *device, enum device_path mine,
                                   enum device_path others, int32_t other_sm, uint32_t other_warp)
{
    struct device_job job = {.agents = {{.sm = 0}, {.sm = other_sm, .warp = other_warp}},
                             .agent_count = 2,
                             .step_count = 3};
    struct device_array array = bench_array(mine, 1 << 10, 64),
                        other = bench_array(others, 8 << 10, 64);
    other.offset_bytes = others == DEVICE_CONSTANT ? 32 << 10 : 1 << 20;
    job.steps[0] = (struct device_step){.kind = DEVICE_WARM, .array = array};
    job.steps[1] =
        (struct device_step){.kind = DEVICE_WARM, .agent = 1, .array = other, .loads = 512};
    job.steps[2] = (struct device_step){.kind = DEVICE_CHASE, .array = array};
    job.cold_l2 = true;
    return bench_slow_loads(device, &job, 50 + OVERHEAD);
}

static void warps_map_to_instances(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    static const char blocked_paths[] = "caches: {b: {size: 8 KiB, line: 64, ways: full, "
                                        "instances: 2, warp_map: blocked}}\n"
                                        "l2: {size: 256 KiB, line: 128, ways: 16}\n"
                                        "paths: {texture: [b: 40, l2: 210, main: 510], global_ca: "
                                        "[l2: 190, main: 490], global_cg: [l2: 190, main: 490]}\n";
    struct device *blocked = bench_open(blocked_paths);
    for (uint32_t warp = 0; warp < 32; warp++) {
        uint64_t interleaved =
            misses_after_other(device, DEVICE_TEXTURE, DEVICE_TEXTURE, DEVICE_SM_SAME, warp);
        assert_int_equal(interleaved, warp % 4 == 0 ? 16 : 0);
        uint64_t in_block =
            misses_after_other(blocked, DEVICE_TEXTURE, DEVICE_TEXTURE, DEVICE_SM_SAME, warp);
        assert_int_equal(in_block, warp < 16 ? 16 : 0);
    }
    device_destroy(device);
    device_destroy(blocked);
}

static void spaces_share_what_they_name_alike(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    struct device_array array = bench_array(DEVICE_GLOBAL_CA, 4 << 10, 128);
    struct device_array read_only = bench_array(DEVICE_READ_ONLY, 4 << 10, 128);
    struct device_array texture = bench_array(DEVICE_TEXTURE, 4 << 10, 128);
    struct device_job job = bench_warm_chase(array);
    job.steps[1].array = read_only;
    assert_true(bench_mean(device, &job) == 35 + OVERHEAD);
    job.steps[1].array = texture;
    assert_true(bench_mean(device, &job) == 210 + OVERHEAD);
    device_destroy(device);
}

static void private_caches_are_private_and_cold(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    assert_int_equal(misses_after_other(device, DEVICE_TEXTURE, DEVICE_TEXTURE, DEVICE_SM_SAME, 0),
                     16);
    assert_int_equal(misses_after_other(device, DEVICE_TEXTURE, DEVICE_TEXTURE, DEVICE_SM_OTHER, 0),
                     0);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 4 << 10, 128));
    bench_mean(device, &job);
    job.steps[0] = job.steps[1];
    job.step_count = 1;
    assert_true(bench_mean(device, &job) == 200 + OVERHEAD); /* L1 cold, L2 not */
    job.cold_l2 = true;
    assert_true(bench_mean(device, &job) == 500 + OVERHEAD);
    device_destroy(device);
}

/* Two SMs of a TPC share c15: 5 KiB each fit alone, not together. */
static void tpc_neighbours_interfere(void **state)
{
    (void)state;
    static const struct {
        int32_t sm;
        uint32_t at_once;
        bool interferes;
    } cases[] = {{1, 0, true}, {2, 0, false}, {1, 1, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device *device = bench_open(spaces);
        struct device_job jobs[2];
        for (int k = 0; k < 2; k++) {
            jobs[k] = bench_warm_chase(bench_array(DEVICE_CONSTANT, 5 << 10, 64));
            jobs[k].agents[0].sm = k ? cases[i].sm : 0;
            for (int s = 0; s < 2; s++) {
                jobs[k].steps[s].array.offset_bytes = (uint64_t)k << 14;
                jobs[k].steps[s].loads = 400;
            }
        }
        struct device_batch batch = {.jobs = jobs, .job_count = 2, .at_once = cases[i].at_once};
        struct device_answer answers[2];
        struct err err = {0};
        assert_int_equal(device_run(device, &batch, answers, &err), 0);
        for (int k = 0; k < 2; k++) {
            double mean = (double)answers[k].samples[0].total_cycles / 400;
            assert_int_equal(answers[k].samples[0].sm, jobs[k].agents[0].sm);
            assert_true(cases[i].interferes ? mean > 150 : mean == 60 + OVERHEAD);
        }
        device_answers_fini(answers, 2);
        device_destroy(device);
    }
}

static const char carved[] = "carveout: {total: 64 KiB, steps: [0, 8 KiB, 16 KiB, 32 KiB], "
                             "reserve: 1 KiB, uncached: 2 KiB}\n"
                             "caches: {l1: {carveout: true, line: 128, ways: full}}\n"
                             "l2: {size: 256 KiB, line: 128, ways: 16}\n"
                             "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: "
                             "200, main: 500], shared: 20}\n";

static void carve_out_and_l1_share_one_array(void **state)
{
    (void)state;
    static const struct {
        uint64_t wish, granted;
    } cases[] = {{0, 8 << 10}, {7 << 10, 8 << 10}, {(7 << 10) + 4, 16 << 10}, {31 << 10, 32 << 10}};
    struct device *device = bench_open(carved);
    assert_int_equal(device_limits(device)->shared_bytes_max, 31 << 10);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t left = (64 << 10) - cases[i].granted - (2 << 10);
        struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, left, 128));
        job.shared_bytes = cases[i].wish;
        assert_true(bench_mean(device, &job) == 30);
        job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, left + 128, 128));
        job.shared_bytes = cases[i].wish;
        assert_true(bench_mean(device, &job) == 200);
    }
    struct device_job job = bench_warm_chase(bench_array(DEVICE_SHARED, 16 << 10, 128));
    job.shared_bytes = 8 << 10; /* gets 16 KiB less the reserve */
    struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer;
    struct err err = {0};
    assert_int_equal(device_run(device, &batch, &answer, &err), -EINVAL);
    job.shared_bytes = 16 << 10;
    assert_true(bench_mean(device, &job) == 20);
    device_destroy(device);
}

static struct device *open_parts(const char *parts)
{
    char text[512];
    snprintf(text, sizeof text,
             "l2: {size: 1 MiB, line: 128, ways: 16, parts: %s, far_cycles: 80}\n"
             "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n",
             parts);
    return bench_open(text);
}

static void l2_parts_have_near_and_far(void **state)
{
    (void)state;
    struct device *homes = open_parts("homes"), *copies = open_parts("copies");
    struct device_job small = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 256 << 10, 128));
    struct device_job three_quarters =
        bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 768 << 10, 128));
    struct device_job large = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 4 << 20, 128));
    for (int sm = 0; sm < 8; sm += 7) {
        small.agents[0].sm = three_quarters.agents[0].sm = large.agents[0].sm = sm;
        assert_int_equal(bench_slow_loads(homes, &small, 250), 1024);
        assert_int_equal(bench_slow_loads(homes, &three_quarters, 250), 3072);
        assert_int_equal(bench_slow_loads(homes, &three_quarters, 400), 0);
        assert_int_equal(bench_slow_loads(copies, &large, 400), 32768);
        assert_int_equal(bench_slow_loads(copies, &small, 250), 0);
        /* The near part thrashes: what is at home there misses, the rest hits its far home. */
        assert_int_equal(bench_slow_loads(copies, &three_quarters, 250), 6144);
        assert_int_equal(bench_slow_loads(copies, &three_quarters, 400), 3072);
        assert_int_equal(bench_slow_loads(copies, &three_quarters, 550), 0);
    }
    device_destroy(homes);
    device_destroy(copies);
}

static void fill_brings_lines_into_l2(void **state)
{
    (void)state;
    static const char *const parts[] = {"homes", "copies"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct device *device = open_parts(parts[i]);
        struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 256 << 10, 128));
        job.steps[0].kind = DEVICE_FILL;
        assert_int_equal(bench_slow_loads(device, &job, 400), 0);
        assert_int_equal(bench_slow_loads(device, &job, 250), i == 0 ? 1024 : 0);
        device_destroy(device);
    }
}

static void tlb_levels_add_up(void **state)
{
    (void)state;
    struct device *device =
        bench_open("l2: {size: 1 MiB, line: 128, ways: 16}\n"
                   "tlb: [{entries: 4, page: 64 KiB, miss_cycles: 30},"
                   " {entries: 16, ways: 4, page: 64 KiB, miss_cycles: 100}]\n"
                   "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n");
    static const struct {
        uint64_t pages;
        double cycles;
    } cases[] = {{4, 200}, {5, 230}, {16, 230}, {20, 330}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        /* An odd number of lines apart, so that the pages' lines meet in no L2 set. */
        struct device_array array =
            bench_array(DEVICE_GLOBAL_CG, cases[i].pages * (65536 + 128), 65536 + 128);
        struct device_job job = bench_warm_chase(array);
        double mean = bench_mean(device, &job);
        if (mean != cases[i].cycles)
            fail_msg("%llu pages: %g", (unsigned long long)cases[i].pages, mean);
    }
    device_destroy(device);
}

static void banks_conflict(void **state)
{
    (void)state;
    static const struct {
        uint32_t lanes, stride, degree;
    } cases[] = {{1, 0, 1},     {32, 4, 1}, {32, 8, 2}, {32, 128, 32},
                 {16, 128, 16}, {32, 0, 1}, {32, 12, 1}};
    struct device *device = bench_open(spaces);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_job job = bench_warm_chase(bench_array(DEVICE_SHARED, 4 << 10, 128));
        job.steps[1].lanes = cases[i].lanes;
        job.steps[1].lane_stride_bytes = cases[i].stride;
        assert_true(bench_mean(device, &job) == 25 + OVERHEAD + 3.0 * (cases[i].degree - 1));
    }
    device_destroy(device);
}

/* A step that continues goes on where the agent's last one on that array ended. */
static void steps_continue(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 8 << 10, 128));
    job.steps[0].loads = 32;
    job.steps[1].loads = 32; /* the other half: all cold */
    job.cold_l2 = true;
    assert_true(bench_mean(device, &job) == 500 + OVERHEAD);
    job.steps[0].start = 32;
    job.steps[1].loads = 64; /* round the end: 32 cold, 32 warm */
    assert_true(bench_slow_loads(device, &job, 100) == 32);
    job.steps[1].array.size_bytes += 128; /* another array: begins at its own start */
    job.steps[1].start = 32;
    job.steps[1].loads = 32;
    assert_true(bench_mean(device, &job) == 30 + OVERHEAD);
    device_destroy(device);
}

/* Downwards from the start, then round from the last element. */
static void descending_order(void **state)
{
    (void)state;
    struct device *device = open_parts("copies");
    struct device_array array = bench_array(DEVICE_GLOBAL_CG, 8 * 128, 128);
    struct device_job job = bench_warm_chase(array);
    job.steps[0].loads = 2; /* elements 0 and 1 are in */
    job.steps[1].array.order = DEVICE_DESCENDING;
    job.steps[1].start = 2;
    job.steps[1].loads = 3;
    job.cold_l2 = true;
    assert_int_equal(bench_slow_loads(device, &job, 400), 1); /* 2, then 1 and 0 */
    job.steps[1].loads = 5;
    assert_int_equal(bench_slow_loads(device, &job, 400), 3); /* 7 and 6 as well */
    device_destroy(device);
}

/* Slices are spread evenly around the mean, and the same for the same address. */
static void slices_are_not_equally_far(void **state)
{
    (void)state;
    struct device *device =
        bench_open("l2: {size: 1 MiB, line: 128, ways: 16, slice_cycles: 40}\n"
                   "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n");
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CG, 512 << 10, 512));
    assert_in_range(bench_slow_loads(device, &job, 200), 470, 554); /* half of 1024 */
    assert_in_range(bench_slow_loads(device, &job, 211), 210, 300); /* a quarter */
    assert_int_equal(bench_slow_loads(device, &job, 221), 0);
    assert_int_equal(bench_slow_loads(device, &job, 179), 1024);
    device_destroy(device);
}

static void random_order_repeats_no_element(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 5, 64, 100, 1000, 1023};
    struct device *device = bench_open(spaces);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct device_array array = bench_array(DEVICE_GLOBAL_CG, counts[i] * 128, 128);
        array.order = DEVICE_RANDOM;
        array.seed = i;
        /* Every element is a line of its own: cold loads count the distinct ones. */
        struct device_job job = bench_warm_chase(array);
        job.steps[0] = job.steps[1];
        job.steps[0].start = counts[i] / 2;
        job.step_count = 1;
        job.cold_l2 = true;
        assert_int_equal(bench_slow_loads(device, &job, 400), counts[i]);
        job.steps[0].loads = (counts[i] + 1) / 2;
        assert_int_equal(bench_slow_loads(device, &job, 400), (counts[i] + 1) / 2);
        job.steps[0].loads = 2 * counts[i];
        assert_int_equal(bench_slow_loads(device, &job, 400), counts[i]);
    }
    device_destroy(device);
}

static void kept_latencies_are_spread(void **state)
{
    (void)state;
    struct device *device = bench_open(spaces);
    struct device_job job = bench_warm_chase(bench_array(DEVICE_GLOBAL_CA, 8 << 10, 128));
    job.steps[0].loads = 32;
    job.steps[1].loads = 64;
    job.steps[1].keep = 4;
    struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer;
    struct err err = {0};
    assert_int_equal(device_run(device, &batch, &answer, &err), 0);
    static const uint32_t wanted[] = {510, 510, 40, 40};
    assert_int_equal(answer.samples[0].kept_count, 4);
    assert_memory_equal(answer.samples[0].kept, wanted, sizeof wanted);
    assert_int_equal(answer.samples[0].elapsed_ns, answer.samples[0].total_cycles);
    device_answers_fini(&answer, 1);
    device_destroy(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_latencies),
        cmocka_unit_test(average_has_one_overhead),
        cmocka_unit_test(warps_map_to_instances),
        cmocka_unit_test(spaces_share_what_they_name_alike),
        cmocka_unit_test(private_caches_are_private_and_cold),
        cmocka_unit_test(tpc_neighbours_interfere),
        cmocka_unit_test(carve_out_and_l1_share_one_array),
        cmocka_unit_test(l2_parts_have_near_and_far),
        cmocka_unit_test(fill_brings_lines_into_l2),
        cmocka_unit_test(tlb_levels_add_up),
        cmocka_unit_test(banks_conflict),
        cmocka_unit_test(steps_continue),
        cmocka_unit_test(descending_order),
        cmocka_unit_test(slices_are_not_equally_far),
        cmocka_unit_test(random_order_repeats_no_element),
        cmocka_unit_test(kept_latencies_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
