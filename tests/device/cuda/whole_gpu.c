/* Requests that keep the whole GPU busy, on a stand-in driver: the test of the memory, the check of
 * the SMs, their maps and the load. */
#include "device/screen_program.h"
#include "opened.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    bool lost = false;
    for (size_t i = 0; i <= 2 * COUNT_OF(rows); i++) { /* without a fault, with, without, ... */
        struct device_memory_map map = {0};
        struct err err = {0};
        const char *fault = i % 2 ? rows[i / 2].fault : "";
        assert_int_equal(set_up(NULL), 0); /* the memory is kept until the device is closed */
        assert_int_equal(setenv("FAKE_CUDA_FAULT", fault, 1), 0);
        int rc = device_test_memory(device, &test, &map, &err);
        assert_int_equal(unsetenv("FAKE_CUDA_FAULT"), 0);
        if (rc != (i % 2 ? rows[i / 2].rc : 0))
            fail_msg("%s: %d: %s", fault, rc, err.text);
        assert_int_equal(map.regions != NULL, rc == 0);
        size_t last = rc ? 0 : map.region_count - 1;
        uint64_t bytes = rc ? 0 : last * test.region_bytes + map.regions[last].bytes;
        complete = i ? complete : bytes;
        if (i % 2)
            assert_true(bytes <= complete);
        else if (!lost) /* the stand-in does not take back what a lost GPU had */
            assert_int_equal(bytes, complete);
        lost = lost || rc;
        device_memory_map_fini(&map);
        tear_down(NULL);
    }
}

/* A bit that is always 1 shows wherever 0 is expected: of all bits 0 in three reads, of drawn bits
 * in as many, or, inverted, in two. What is read before the test turns round does not count. */
static void march(void **state)
{
    (void)state;
    enum { PLACE = (8 << 20) + 40 };
    const struct device_march march = {.backgrounds = 2, .seed = 7};
    struct device_march_answer answer;
    struct err err = {0};
    setenv("FAKE_CUDA_MEMORY", "32", 1);
    assert_int_equal(set_up(NULL), 0);
    for (int round = 0; round < 3; round++) {
        setenv("FAKE_CUDA_STUCK", round == 1 ? "8388648" : "999999999", 1); /* PLACE, or nowhere */
        assert_int_equal(device_march_memory(device, &march, &answer, &err), 0);
        assert_true(answer.bytes > 0.9 * (double)answer.free_bytes && answer.elapsed_ns > 0);
        assert_true(round == 1 ? answer.wrong == 6 || answer.wrong == 5 : answer.wrong == 0);
        assert_int_equal(answer.first, round == 1 ? PLACE : 0);
        assert_int_equal(answer.word_count, answer.wrong);
        size_t plain = 0;
        for (size_t i = 0; i < answer.word_count; i++) {
            const struct device_wrong_word *word = &answer.words[i];
            assert_true(word->offset == PLACE && word->found == (word->expected | 1 << 5));
            if (word->read < DEVICE_MARCH_READS)
                continue;
            assert_true(word->expected == 0 && word->read % 2 == DEVICE_MARCH_READS % 2);
            plain++;
        }
        assert_int_equal(plain, round == 1 ? 3 : 0);
        device_march_answer_fini(&answer);
    }
    unsetenv("FAKE_CUDA_STUCK");
    const struct device_march refused[] = {{.backgrounds = 0},
                                           {.backgrounds = DEVICE_MARCH_BACKGROUNDS + 1}};
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        assert_int_equal(device_march_memory(device, &refused[i], &answer, &err), -EINVAL);
    static const char *const faults[] = {"cuLaunchKernel:3:700", "cuStreamSynchronize:2:700"};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        setenv("FAKE_CUDA_FAULT", faults[i], 1);
        assert_int_equal(device_march_memory(device, &march, &answer, &err), -EIO);
        unsetenv("FAKE_CUDA_FAULT");
        assert_null(answer.words);
    }
    tear_down(NULL);
    unsetenv("FAKE_CUDA_MEMORY");
}

/* How often most of the memory was taken and freed since whole_begin. */
static struct {
    void *driver;
    const unsigned *taken, *freed;
    unsigned taken_before, freed_before;
} whole;

static void whole_begin(void)
{
    whole.driver = dlopen("libcuda.so.1", RTLD_NOW);
    whole.taken = dlsym(whole.driver, "fake_whole_taken");
    whole.freed = dlsym(whole.driver, "fake_whole_freed");
    assert_true(whole.taken && whole.freed);
    whole.taken_before = *whole.taken;
    whole.freed_before = *whole.freed;
}

static void whole_expect(unsigned taken, unsigned freed)
{
    assert_int_equal(*whole.taken - whole.taken_before, taken);
    assert_int_equal(*whole.freed - whole.freed_before, freed);
}

/* What is freed would be cleared while something else is measured. */
static void memory_is_kept(void **state)
{
    (void)state;
    const struct device_memory_test test = {.patterns = 1, .region_bytes = 8 << 20, .loads = 8};
    const struct device_sm_map map = {.kind = DEVICE_SM_MAP_MEMORY, .regions = 2, .loads = 1};
    whole_begin();
    assert_int_equal(set_up(NULL), 0);
    for (int round = 0; round < 2; round++) {
        struct device_memory_map regions = {0};
        struct device_sm_map_answer answer = {0};
        struct err err = {0};
        assert_int_equal(device_test_memory(device, &test, &regions, &err), 0);
        assert_int_equal(device_map_sms(device, &map, &answer, &err), 0);
        device_memory_map_fini(&regions);
        device_sm_map_answer_fini(&answer);
    }
    whole_expect(1, 0);
    tear_down(NULL);
    whole_expect(1, 1);
    dlclose(whole.driver);
}

static int load_array(uint64_t bytes)
{
    struct device_job job = {.agents = {{.sm = 1}}, .agent_count = 1, .step_count = 1};
    job.steps[0] = (struct device_step){
        .kind = DEVICE_CHASE,
        .array = {.path = DEVICE_GLOBAL_CG, .size_bytes = bytes, .stride_bytes = bytes / 2}};
    const struct device_batch batch = {.jobs = &job, .job_count = 1};
    struct device_answer answer = {0};
    struct err err = {0};
    int rc = device_run(device, &batch, &answer, &err);
    device_answers_fini(&answer, 1);
    return rc;
}

static int load_far(void)
{
    return load_array(device_limits(device)->wide_bytes);
}

/* When all memory is taken, the pool of global memory cannot grow any more. */
static void shorter_arrays_after_far_ones(void **state)
{
    (void)state;
    whole_begin();
    assert_int_equal(set_up(NULL), 0);
    assert_int_equal(load_far(), 0);
    assert_int_equal(load_array(device_limits(device)->global_bytes / 2), 0);
    assert_int_equal(load_far(), 0);
    whole_expect(1, 0);
    tear_down(NULL);
    dlclose(whole.driver);
}

/* If less memory is free than when the GPU was opened, another process has it, and may need more:
 * what was taken is given back. */
static void memory_that_is_too_little_is_given_back(void **state)
{
    (void)state;
    whole_begin();
    assert_int_equal(set_up(NULL), 0);
    assert_true(device_limits(device)->wide_bytes > UINT64_C(40) << 20);
    setenv("FAKE_CUDA_MEMORY", "32", 1);
    assert_int_equal(load_far(), -EBUSY);
    whole_expect(1, 1);
    unsetenv("FAKE_CUDA_MEMORY");
    assert_int_equal(load_far(), 0);
    whole_expect(2, 1);
    tear_down(NULL);
    whole_expect(2, 2);
    dlclose(whole.driver);
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

/* What is wrong every time is wrong whenever it is launched again, in one word of each launch. sm:
 * the wrong one; -1: none is. */
static void check_second_look(const struct device_screen_answer *answer, int sm)
{
    const struct device_second_look *again = &answer->again;
    const struct device_wrong_result *result = &answer->results[0];
    uint32_t last_set = (answer->launches - 1) / 2;
    assert_int_equal(answer->wrong_launches, sm >= 0 ? answer->launches : 0);
    assert_int_equal(answer->result_count, sm >= 0);
    assert_int_equal(again->differ, sm >= 0);
    assert_int_equal(again->wrong, again->launches);
    if (sm < 0)
        return;
    assert_true((int)(again->place / DEVICE_SUB_CORES) == sm && again->launches > 1);
    assert_int_equal(answer->places[again->place].wrong_set, last_set);
    assert_int_equal(again->set, last_set);
    assert_true(result->period == 3 && result->number == 5 && result->lane == 7);
    assert_true(result->expected == 0 && result->found == 8 + last_set);
}

/* The path of the first launches, two of each set of operands; sm: the wrong one. */
static bool screened(enum device_screen_path path, int sm)
{
    const struct device_screen screen = {path, 5};
    struct device_screen_answer answer;
    struct err err = {0};
    char name[12];
    snprintf(name, sizeof name, "%d", sm);
    if (sm >= 0)
        setenv("FAKE_CUDA_WRONG", name, 1);
    int rc = device_screen_path(device, &screen, &answer, &err);
    unsetenv("FAKE_CUDA_WRONG");
    if (rc == -ENOTSUP)
        return false;
    assert_int_equal(rc, 0);
    uint64_t host = answer.digest;
    screen_host_hash(path, 0, &host);
    assert_true(answer.launches > 4 && answer.digest && answer.digest == host);
    assert_false(answer.not_as_host);
    for (size_t i = 0; i < answer.place_count; i++) {
        bool wrong = (int)(i / DEVICE_SUB_CORES) == sm;
        assert_true(answer.places[i].count > 0);
        assert_int_equal(answer.places[i].wrong, wrong ? answer.places[i].count : 0);
    }
    check_second_look(&answer, sm);
    device_screen_answer_fini(&answer);
    return true;
}

/* The same for the screen; the digests are the host's where it knows them. */
static void screens(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (int sm = -1; sm < 2; sm++)
        for (int path = 0; path < DEVICE_SCREEN_COUNT; path++)
            found += screened((enum device_screen_path)path, sm);
    assert_true(found > 10);
    /* All SMs are wrong alike. */
    const struct device_screen first = {DEVICE_SCREEN_INT, 1};
    struct device_screen_answer other, compiled;
    struct err none_of_it = {0};
    setenv("FAKE_CUDA_OTHER", "1", 1);
    assert_int_equal(device_screen_path(device, &first, &other, &none_of_it), 0);
    unsetenv("FAKE_CUDA_OTHER");
    assert_true(other.not_as_host && other.wrong_launches == 0);
    device_screen_answer_fini(&other);
    /* What the driver compiles has no name. */
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    assert_int_equal(device_screen_path(device, &first, &compiled, &none_of_it), 0);
    unsetenv("CUDA_FORCE_PTX_JIT");
    assert_true(compiled.code == 0 && compiled.digest);
    device_screen_answer_fini(&compiled);
    const struct device_screen none = {DEVICE_SCREEN_COUNT, 1};
    struct device_screen_answer answer;
    struct err err = {0};
    assert_int_equal(device_screen_path(device, &none, &answer, &err), -EINVAL);
}

/* A path through L1 reads as much as that holds: other than so much is not what the host expects.
 */
static void screen_of_l1(void **state)
{
    (void)state;
    static const struct {
        const char *capability, *chunks;
        bool right;
    } rows[] = {{"90", "32", true}, {"60", "4", true}, {"90", "4", false}};
    const struct device_screen screen = {DEVICE_SCREEN_L1, 1};
    struct device_screen_answer answer;
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        setenv("FAKE_CUDA_CAPABILITY", rows[i].capability, 1);
        setenv("FAKE_CUDA_L1_CHUNKS", rows[i].chunks, 1);
        assert_int_equal(device_screen_path(device, &screen, &answer, &err), 0);
        assert_true(answer.not_as_host == !rows[i].right);
        device_screen_answer_fini(&answer);
    }
    unsetenv("FAKE_CUDA_L1_CHUNKS");
    unsetenv("FAKE_CUDA_CAPABILITY");
}

/* The stand-in takes a millisecond for any launch. Wrong is one SM of four. */
static void pulses(void **state)
{
    (void)state;
    static const struct {
        uint32_t hz;
        double duty;
        uint32_t batch; /* launches with a set of operands */
    } rows[] = {{0, 1, 2}, {1, 1 / 501.0, 1}, {100, 1 / 6.0, 5}, {2000, 0.8, 64}};
    struct device_pulse_answer answer;
    struct err err = {0};
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        const struct device_pulse pulse = {DEVICE_SCREEN_SPECIAL, rows[i / 2].hz, 60};
        if (i % 2)
            setenv("FAKE_CUDA_WRONG", "1", 1);
        assert_int_equal(device_pulse_path(device, &pulse, &answer, &err), 0);
        unsetenv("FAKE_CUDA_WRONG");
        double all_ns = (double)(answer.busy_ns + answer.idle_ns);
        assert_true(all_ns >= 60e6 &&
                    fabs((double)answer.busy_ns / all_ns - rows[i / 2].duty) < 1e-9);
        assert_int_equal(answer.busy_ns, (answer.launches - 1) * UINT64_C(1000000));
        assert_int_equal(answer.place_count, 4 * DEVICE_SUB_CORES);
        for (size_t k = 0; k < answer.place_count; k++) {
            const struct device_check_place *place = &answer.places[k];
            assert_true(place->count > 0 && place->count % answer.launches == 0);
            assert_int_equal(place->wrong, i % 2 && k / DEVICE_SUB_CORES == 1 ? place->count : 0);
            if (place->wrong)
                assert_int_equal(place->wrong_set, answer.launches / rows[i / 2].batch - 1);
        }
        device_pulse_answer_fini(&answer);
    }
    const struct device_pulse none[] = {{DEVICE_SCREEN_COUNT, 1, 1},
                                        {DEVICE_SCREEN_INT, DEVICE_PULSE_HZ_MAX + 1, 1}};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(device_pulse_path(device, &none[i], &answer, &err), -EINVAL);
    const struct device_pulse failing = {DEVICE_SCREEN_INT, 10, 1};
    setenv("FAKE_CUDA_FAULT", "cuLaunchKernel:6:700", 1);
    assert_int_equal(device_pulse_path(device, &failing, &answer, &err), -EIO);
    unsetenv("FAKE_CUDA_FAULT");
    assert_null(answer.places);
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
    const struct device_sm_map atomics = {
        .kind = DEVICE_SM_MAP_ATOMICS, .footprint_bytes = 2 << 20, .regions = 4, .loads = 3};
    assert_int_equal(device_map_sms(device, &atomics, &answer, &err), 0);
    assert_int_equal(answer.value_count, 16);
    for (uint64_t i = 0; i < 16; i++)
        assert_int_equal(answer.values[i], i / 4 % 2 == i % 2 ? 900 : 1500);
    device_sm_map_answer_fini(&answer);
    const struct device_sm_map none = {.kind = DEVICE_SM_MAP_MEMORY, .regions = 4};
    assert_int_equal(device_map_sms(device, &none, &answer, &err), -EINVAL);
}

/* Two of four SMs time loads; the bytes of the others count, and only if they read all the time. */
static void chases_under_load(void **state)
{
    (void)state;
    struct device_loaded_chase asked = {
        .footprint_bytes = 1 << 20, .chasers = 2, .window_cycles = 4000};
    struct device_loaded_chase_answer answer;
    struct err err = {0};
    static const struct {
        bool quiet;
        uint64_t limit_bytes, bytes;
    } rows[] = {{false, 0, 200 * 2048}, {false, 1 << 20, 2 * 2048}, {true, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        asked.quiet = rows[i].quiet;
        asked.limit_bytes = rows[i].limit_bytes;
        assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), 0);
        assert_true(answer.bytes == rows[i].bytes && answer.elapsed_ns == 4000);
        assert_true(answer.loads == 20 && answer.cycles == 10000 && answer.squares == 5000000);
    }
    asked.quiet = false;
    setenv("FAKE_CUDA_LATE", "1", 1);
    assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), -EBUSY);
    unsetenv("FAKE_CUDA_LATE");
    setenv("FAKE_CUDA_SHARED", "1", 1);
    assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), -EBUSY);
    unsetenv("FAKE_CUDA_SHARED");
    asked.chasers = 4;
    assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), -ENOTSUP);
    asked.chasers = 0;
    assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), -EINVAL);
    asked = (struct device_loaded_chase){
        .footprint_bytes = 1 << 10, .chasers = 1, .window_cycles = 4000};
    assert_int_equal(device_chase_loaded(device, &asked, &answer, &err), -EINVAL);
}

/* 24576 lines, two of three at home in part 0: tickets beyond the first four count,
 * from a quarter to three quarters of them. */
static void ways(void **state)
{
    (void)state;
    static const uint8_t parts[] = {0, 0, 1, 1}, wrong[] = {0, 1, 2, 0};
    struct device_way way = {.footprint_bytes = 3 << 20,
                             .total_bytes = 3 << 20,
                             .split_cycles = 400,
                             .every = 1,
                             .part_of_sm = parts};
    struct device_way_answer answer;
    struct err err = {0};
    for (int work = 0; work < DEVICE_WAY_WORK_COUNT; work++)
        for (uint32_t p = 1; p <= 3; p++)
            for (int far = 0; far < 2; far++) {
                way.work = (enum device_way_work)work;
                way.parts = p;
                way.far = far;
                assert_int_equal(device_cross_way(device, &way, &answer, &err), 0);
                assert_true(answer.lines[0] == 16384 && answer.lines[1] == 8192);
                for (uint32_t part = 0; part < 2; part++) {
                    bool works = p >> part & 1;
                    uint64_t home = part == (uint32_t)far ? 128 : 64;
                    uint64_t once = work == DEVICE_WAY_READ, tickets = once ? home : 2 * home;
                    uint64_t bytes = (tickets - 4) / 4 * 2 * (once ? 2 : 1) << 14;
                    assert_true(answer.bytes[part] == (works ? bytes : 0));
                    assert_true(answer.elapsed_ns[part] == (works ? 2000u << far : 0));
                }
            }
    way.every = 2;
    assert_int_equal(device_cross_way(device, &way, &answer, &err), 0);
    assert_true(answer.elapsed_ns[0] == 8000 && answer.elapsed_ns[1] == 8000);
    way.part_of_sm = wrong;
    assert_int_equal(device_cross_way(device, &way, &answer, &err), -EINVAL);
    way.part_of_sm = parts;
    way.parts = 4;
    assert_int_equal(device_cross_way(device, &way, &answer, &err), -EINVAL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_test, set_up, tear_down),
        cmocka_unit_test(memory_test_errors),
        cmocka_unit_test(march),
        cmocka_unit_test(memory_is_kept),
        cmocka_unit_test(shorter_arrays_after_far_ones),
        cmocka_unit_test(memory_that_is_too_little_is_given_back),
        cmocka_unit_test_setup_teardown(unit_checks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(screens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(screen_of_l1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pulses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sm_maps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chases_under_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sustained_load, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sustained_load_errors, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
