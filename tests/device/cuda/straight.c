/* Straight code through the stand-in for the driver: lengths, repeats and copies arrive on their
 * SMs, and code that the compiler has changed is refused. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>

#include "device/straight.h"
#include "fake_code.h"

static void all_lengths(void **state)
{
    (void)state;
    uint32_t length;
    for (size_t i = 0; (length = device_straight_length(i)); i++) {
        uint32_t other = device_straight_length(i / 2);
        const struct device_straight straight = {
            .jobs = {{.sm = 2, .length = length, .repeats = 3},
                     {.sm = 1, .copy = 1, .length = other, .repeats = 5}},
            .job_count = 1 + i % 2};
        struct device_straight_answer answer;
        struct err err = {0};
        assert_int_equal(device_run_straight(device, &straight, &answer, &err), 0);
        assert_int_equal(answer.instruction_bytes, 16);
        assert_int_equal(answer.cycles[0], (uint64_t)FAKE_CODE_CYCLES * length * 3);
        assert_int_equal(answer.cycles[1], i % 2 ? (uint64_t)FAKE_CODE_CYCLES * other * 5 : 0);
    }
    assert_int_equal(device_straight_length_count(0), 224);
    assert_int_equal(device_straight_length(device_straight_length_count(1) - 1),
                     DEVICE_STRAIGHT_SECOND_MAX);
    assert_int_equal(device_straight_length(223), DEVICE_STRAIGHT_MAX);
}

static void bad_requests(void **state)
{
    (void)state;
    const struct device_straight good = {
        .jobs = {{.length = 32, .repeats = 1}, {.sm = 1, .length = 4224, .repeats = 1}},
        .job_count = 2};
    struct device_straight bad[] = {good, good, good, good, good, good, good, good, good};
    struct device_straight_answer answer;
    struct err err = {0};
    bad[0].job_count = 0;
    bad[1].job_count = DEVICE_STRAIGHT_JOBS + 1;
    bad[2].jobs[1].sm = 0;
    bad[3].jobs[0].sm = device_limits(device)->sm_count;
    bad[4].jobs[0].copy = DEVICE_STRAIGHT_COPIES;
    bad[5].jobs[0].length = 48;
    bad[6].jobs[1].length = 4224 + 32;
    bad[7].jobs[1].repeats = 0;
    bad[8].jobs[1].copy = 1;
    bad[8].jobs[1].length = DEVICE_STRAIGHT_SECOND_MAX + 128;
    assert_int_equal(device_run_straight(device, &good, &answer, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(device_run_straight(device, &bad[i], &answer, &err), -EINVAL);
}

/* A failure of the compiler is not remembered. */
static void refused(void **state)
{
    (void)state;
    static const char *const names[] = {"FAKE_CUDA_REFUSES", "FAKE_CUDA_SHORTENS"};
    const struct device_straight straight = {.jobs = {{.length = 32, .repeats = 1}},
                                             .job_count = 1};
    struct device_straight_answer answer;
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        setenv(names[i], "brx.idx", 1);
        assert_int_equal(device_run_straight(device, &straight, &answer, &err), -ENOTSUP);
        unsetenv(names[i]);
    }
    assert_int_equal(device_run_straight(device, &straight, &answer, &err), 0);
}

static void no_block(void **state)
{
    (void)state;
    struct device_straight straight = {.jobs = {{.sm = 0, .length = 32, .repeats = 1}},
                                       .job_count = 1};
    struct device_straight_answer answer;
    struct err err = {0};
    setenv("FAKE_CUDA_TOGETHER", "1", 1);
    assert_int_equal(device_run_straight(device, &straight, &answer, &err), 0);
    assert_int_equal(answer.cycles[0], (uint64_t)FAKE_CODE_CYCLES * 32);
    straight.jobs[0].sm = 1;
    assert_int_equal(device_run_straight(device, &straight, &answer, &err), -EBUSY);
    unsetenv("FAKE_CUDA_TOGETHER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_lengths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_block, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
