/* The March test on simulated GPUs: healthy memory has no wrong word; of a bit that is always 1 it
 * is said where it is and what its places have in common. */
#include "../check.h"

#include "base/mem.h"
#include "probed.h"

static const char MODEL[] =
    "name: March\nsms: 8\nmemory: {size: 4 GiB}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

static struct measures run(const struct sim_fault *fault, enum probe_profile profile)
{
    struct probed probed = {.model = MODEL, .profile = profile, .list = "memory.march"};
    probed.faulty = fault != NULL;
    if (fault)
        probed.fault = *fault;
    return probed_run(&probed);
}

static void healthy(void **state)
{
    (void)state;
    struct measures measures = run(NULL, PROFILE_STANDARD);
    const struct measure *errors = measures_get(&measures, "main.march.errors");
    assert_true(errors->value == 0);
    double tested = (double)facts_get(&errors->notes, "tested")->integer;
    assert_true(tested >= 0.95 * (double)facts_get(&errors->notes, "free")->integer);
    assert_int_equal(facts_get(&errors->notes, "reads")->integer, 2 * DEVICE_MARCH_READS);
    assert_null(measures_get(&measures, "main.march.places"));
    measures_fini(&measures);
}

static void stuck_bits(void **state)
{
    (void)state;
    static const struct {
        struct sim_fault fault;
        double pages, period; /* 0: too few places */
    } rows[] = {
        {{.kind = SIM_BIT_ERROR, .bytes = 1 << 30, .count = 5, .stride = 4096, .bit = 33}, 1, 4096},
        {{.kind = SIM_BIT_ERROR, .bytes = 8, .count = 2, .stride = 8 << 20, .bit = 0}, 2, 0},
        {{.kind = SIM_BIT_ERROR, .bytes = 40, .count = 1, .stride = 8, .bit = 63}, 1, 0},
        /* More than are kept: those of the first two reads. */
        {{.kind = SIM_BIT_ERROR, .bytes = 0, .count = 900, .stride = 1 << 20, .bit = 7},
         450,
         0x1p20},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct sim_fault *fault = &rows[i].fault;
        struct measures measures = run(fault, PROFILE_FULL);
        /* Each word is wrong in half of the reads, a little more: three of five expect a 0 where
         * the background has one. */
        double errors = probed_value(&measures, "main.march.errors");
        assert_true(errors >= 2 * DEVICE_MARCH_BACKGROUNDS * fault->count);
        assert_true(errors <= 3 * DEVICE_MARCH_BACKGROUNDS * fault->count);
        assert_true(probed_value(&measures, "main.march.first_error") == (double)fault->bytes);
        assert_true(probed_value(&measures, "main.march.places") == fault->count);
        /* If not all are kept, nothing is known of further reads. */
        const struct measure *again = measures_get(&measures, "main.march.again");
        assert_true(errors > DEVICE_WRONG_WORDS_MAX ? !again : again && again->value > 0);
        assert_true(probed_value(&measures, "main.march.pages") == rows[i].pages);
        assert_true(probed_value(&measures, "main.march.bits") == 1);
        assert_true(probed_value(&measures, "main.march.bit") == fault->bit);
        assert_true(probed_value(&measures, "main.march.ones") == 1);
        assert_true((measures_get(&measures, "main.march.period") != NULL) == (rows[i].period > 0));
        if (rows[i].period > 0)
            assert_true(probed_value(&measures, "main.march.period") == rows[i].period);
        measures_fini(&measures);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(healthy), cmocka_unit_test(stuck_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
