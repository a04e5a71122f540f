/* Code through the stand-in for the driver: lengths, repeats and machine instructions arrive, and
 * failures of the driver concern one program only. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/instruction.h"
#include "fake_code.h"

static uint32_t row_of(const char *name)
{
    uint32_t row = 0;
    while (strcmp(instruction_table[row].name, name) != 0)
        row++;
    return row;
}

static void every_row(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < instruction_count; i++)
        for (uint32_t chains = 1; chains <= INSTRUCTION_CHAINS_MAX; chains *= 2) {
            const struct device_code code = {.instruction = i,
                                             .chains = chains,
                                             .warps = 1 + 31 * (chains > 1),
                                             .length = 64 * chains,
                                             .repeats = 3};
            struct device_code_answer answer;
            struct err err = {0};
            assert_int_equal(device_run_code(device, &code, &answer, &err), 0);
            uint64_t cycles = (uint64_t)FAKE_CODE_CYCLES * code.length * code.repeats;
            assert_int_equal(answer.cycles, cycles + code.warps - 1);
            assert_int_equal(answer.machine, code.length);
        }
}

static void bad_requests(void **state)
{
    (void)state;
    const struct device_code good = {.chains = 2, .warps = 1, .length = 8, .repeats = 1};
    struct device_code bad[] = {good, good, good, good, good};
    struct device_code_answer answer;
    struct err err = {0};
    bad[0].instruction = (uint32_t)instruction_count;
    bad[1].chains = INSTRUCTION_CHAINS_MAX + 1;
    bad[2].warps = INSTRUCTION_WARPS_MAX + 1;
    bad[3].length = 7;
    bad[4].repeats = 0;
    assert_int_equal(device_run_code(device, &good, &answer, &err), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(device_run_code(device, &bad[i], &answer, &err), -EINVAL);
}

static void refused(void **state)
{
    (void)state;
    struct device_code code = {
        .instruction = row_of("tanh"), .chains = 1, .warps = 1, .length = 8, .repeats = 1};
    struct device_code_answer answer;
    struct err err = {0};
    setenv("FAKE_CUDA_REFUSES", "tanh", 1);
    assert_int_equal(device_run_code(device, &code, &answer, &err), -ENOTSUP);
    code.instruction = row_of("sin");
    assert_int_equal(device_run_code(device, &code, &answer, &err), 0);
    unsetenv("FAKE_CUDA_REFUSES");
}

/* Then a rate would be that of two blocks. */
static void two_on_one_sm(void **state)
{
    (void)state;
    const struct device_code code = {.chains = 1, .warps = 1, .length = 8, .repeats = 1};
    struct device_code_answer answer;
    struct err err = {0};
    setenv("FAKE_CUDA_TOGETHER", "1", 1);
    assert_int_equal(device_run_code(device, &code, &answer, &err), -EBUSY);
    unsetenv("FAKE_CUDA_TOGETHER");
    assert_int_equal(device_run_code(device, &code, &answer, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_on_one_sm, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
