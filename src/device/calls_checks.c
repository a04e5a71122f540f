/* The calls that test memory and SMs, and the load. */
#include "device/call_row.h"

#include <errno.h>

/* The test of the whole memory. Its seed does not count. */

static const struct field memory_rows[] = {
    {FIELD(struct device_memory_test, patterns, U32)},
    {FIELD(struct device_memory_test, region_bytes, U64)},
    {FIELD(struct device_memory_test, loads, U32)},
};
static const struct fields memory_fields = {FIELDS(struct device_memory_test, memory_rows)};
static const struct field region_rows[] = {
    {FIELD(struct device_region, bytes, U64), .form = FIELD_SAME},
    {FIELD_ALL(struct device_region, write_ns, U64), .form = FIELD_NEAR},
    {FIELD_ALL(struct device_region, read_ns, U64), .form = FIELD_NEAR},
    {FIELD_ALL(struct device_region, cycles, U64), .form = FIELD_NEAR},
    {FIELD(struct device_region, wrong_words, U64)},
    {FIELD(struct device_region, wrong_offset, U64)},
    {FIELD(struct device_region, wrong_bits, U64)},
};
static const struct fields region_fields = {FIELDS(struct device_region, region_rows)};
static const struct field ecc_rows[] = {
    {FIELD(struct device_ecc, corrected, U64)},
    {FIELD(struct device_ecc, uncorrected, U64)},
};
static const struct fields ecc_fields = {FIELDS(struct device_ecc, ecc_rows)};
static const struct field memory_map_rows[] = {
    {FIELD(struct device_memory_map, free_bytes, U64)},
    {FIELD_COUNT(struct device_memory_map, region_count)},
    {FIELD_STRUCT_LIST(struct device_memory_map, regions, region_count, &region_fields)},
    {FIELD(struct device_memory_map, ecc_known, BOOL)},
    {FIELD_INSIDE(struct device_memory_map, ecc_before, &ecc_fields)},
    {FIELD_INSIDE(struct device_memory_map, ecc_after, &ecc_fields)},
};
static const struct fields memory_map_fields = {FIELDS(struct device_memory_map, memory_map_rows)};

static int memory_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_memory_test *test = request;
    (void)device;
    if (test->region_bytes < DEVICE_REGION_MIN || (test->region_bytes & (test->region_bytes - 1)))
        return err_set(err, -EINVAL, "regions are powers of two of at least %d MiB",
                       DEVICE_REGION_MIN >> 20);
    if (!test->patterns || test->patterns > DEVICE_PATTERN_COUNT)
        return err_set(err, -EINVAL, "there are %d patterns", DEVICE_PATTERN_COUNT);
    return 0;
}

const struct device_call_row device_test_memory_row = {ROW("memory", &memory_fields,
                                                           &memory_map_fields, -ENOTSUP,
                                                           "this device cannot test its memory"),
                                                       .check = memory_check};
CALL_FUNCTION(device_test_memory, DEVICE_CALL_MEMORY, struct device_memory_test,
              struct device_memory_map)
CALL_FINI(device_memory_map_fini, struct device_memory_map, memory_map_fields)

/* The March test. Its seed does not count. */

static const struct field march_rows[] = {
    {FIELD(struct device_march, backgrounds, U32)},
};
static const struct fields march_fields = {FIELDS(struct device_march, march_rows)};
static const struct field wrong_word_rows[] = {
    {FIELD(struct device_wrong_word, offset, U64), .form = FIELD_NEAR},
    {FIELD(struct device_wrong_word, expected, U64)},
    {FIELD(struct device_wrong_word, found, U64)},
    {FIELD(struct device_wrong_word, read, U32), .form = FIELD_SAME},
};
static const struct fields wrong_word_fields = {FIELDS(struct device_wrong_word, wrong_word_rows)};
static const struct field march_answer_rows[] = {
    {FIELD(struct device_march_answer, free_bytes, U64)},
    {FIELD(struct device_march_answer, bytes, U64)},
    {FIELD(struct device_march_answer, wrong, U64)},
    {FIELD(struct device_march_answer, first, U64)},
    {FIELD(struct device_march_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_march_answer, word_count)},
    {FIELD_STRUCT_LIST(struct device_march_answer, words, word_count, &wrong_word_fields)},
    {FIELD(struct device_march_answer, ecc_known, BOOL)},
    {FIELD_INSIDE(struct device_march_answer, ecc_before, &ecc_fields)},
    {FIELD_INSIDE(struct device_march_answer, ecc_after, &ecc_fields)},
};
static const struct fields march_answer_fields = {
    FIELDS(struct device_march_answer, march_answer_rows)};

static int march_check(const struct device *device, const void *request, struct err *err)
{
    uint32_t backgrounds = ((const struct device_march *)request)->backgrounds;
    (void)device;
    if (!backgrounds || backgrounds > DEVICE_MARCH_BACKGROUNDS)
        return err_set(err, -EINVAL, "there are %d backgrounds", DEVICE_MARCH_BACKGROUNDS);
    return 0;
}

const struct device_call_row device_march_memory_row = {ROW("march", &march_fields,
                                                            &march_answer_fields, -ENOTSUP,
                                                            "this device cannot test its memory"),
                                                        .check = march_check};
CALL_FUNCTION(device_march_memory, DEVICE_CALL_MARCH, struct device_march,
              struct device_march_answer)
CALL_FINI(device_march_answer_fini, struct device_march_answer, march_answer_fields)

/* The check of the SMs. Its seed does not count. */

static const struct field check_rows[] = {
    {FIELD_CHOICE(struct device_check, unit, device_unit_names)},
    {FIELD(struct device_check, target_ms, U32)},
};
static const struct fields check_fields = {FIELDS(struct device_check, check_rows)};
static const struct field place_rows[] = {
    {FIELD(struct device_check_place, count, U32), .form = FIELD_SAME},
    {FIELD(struct device_check_place, wrong, U32)},
    {FIELD(struct device_check_place, wrong_hash, U64)},
    {FIELD(struct device_check_place, wrong_warp, U32)},
    {FIELD(struct device_check_place, cycles, U64)},
    {FIELD(struct device_check_place, wrong_set, U32)},
};
static const struct fields place_fields = {FIELDS(struct device_check_place, place_rows)};
static const struct field check_answer_rows[] = {
    {FIELD_COUNT(struct device_check_answer, place_count)},
    {FIELD(struct device_check_answer, operations, U64)},
    {FIELD(struct device_check_answer, cycles, U64)},
    {FIELD(struct device_check_answer, elapsed_ns, U64)},
    {FIELD_STRUCT_LIST(struct device_check_answer, places, place_count, &place_fields)},
};
static const struct fields check_answer_fields = {
    FIELDS(struct device_check_answer, check_answer_rows)};

static const struct field screen_rows[] = {
    {FIELD_CHOICE(struct device_screen, path, device_screen_names)},
    {FIELD(struct device_screen, target_ms, U32)},
};
static const struct fields screen_fields = {FIELDS(struct device_screen, screen_rows)};
static const struct field second_look_rows[] = {
    {FIELD(struct device_second_look, launches, U32)},
    {FIELD(struct device_second_look, wrong, U32)},
    {FIELD(struct device_second_look, place, U32)},
    {FIELD(struct device_second_look, results, U64)},
    {FIELD(struct device_second_look, differ, U64)},
    {FIELD(struct device_second_look, sm_mhz, F64)},
    {FIELD(struct device_second_look, power_w, F64)},
    {FIELD(struct device_second_look, temperature_c, F64)},
    {FIELD(struct device_second_look, set, U32)},
};
static const struct fields second_look_fields = {
    FIELDS(struct device_second_look, second_look_rows)};
static const struct field wrong_result_rows[] = {
    {FIELD(struct device_wrong_result, period, U32)},
    {FIELD(struct device_wrong_result, number, U32)},
    {FIELD(struct device_wrong_result, lane, U32)},
    {FIELD(struct device_wrong_result, expected, U32)},
    {FIELD(struct device_wrong_result, found, U32)},
};
static const struct fields wrong_result_fields = {
    FIELDS(struct device_wrong_result, wrong_result_rows)};
static const struct field screen_answer_rows[] = {
    {FIELD(struct device_screen_answer, digest, U64)},
    {FIELD(struct device_screen_answer, code, U64)},
    {FIELD(struct device_screen_answer, launches, U32)},
    {FIELD(struct device_screen_answer, wrong_launches, U32)},
    {FIELD(struct device_screen_answer, not_as_host, BOOL)},
    {FIELD(struct device_screen_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_screen_answer, place_count)},
    {FIELD_COUNT(struct device_screen_answer, result_count)},
    {FIELD_STRUCT_LIST(struct device_screen_answer, places, place_count, &place_fields)},
    {FIELD_INSIDE(struct device_screen_answer, again, &second_look_fields)},
    {FIELD_STRUCT_LIST(struct device_screen_answer, results, result_count, &wrong_result_fields)},
};
static const struct fields screen_answer_fields = {
    FIELDS(struct device_screen_answer, screen_answer_rows)};

static int screen_check(const struct device *device, const void *request, struct err *err)
{
    (void)device;
    if ((unsigned)((const struct device_screen *)request)->path >= DEVICE_SCREEN_COUNT)
        return err_set(err, -EINVAL, "no such path");
    return 0;
}

static const struct field pulse_rows[] = {
    {FIELD_CHOICE(struct device_pulse, path, device_screen_names)},
    {FIELD(struct device_pulse, hz, U32)},
    {FIELD(struct device_pulse, target_ms, U32)},
};
static const struct fields pulse_fields = {FIELDS(struct device_pulse, pulse_rows)};
static const struct field pulse_answer_rows[] = {
    {FIELD(struct device_pulse_answer, launches, U32)},
    {FIELD(struct device_pulse_answer, wrong_launches, U32)},
    {FIELD(struct device_pulse_answer, busy_ns, U64)},
    {FIELD(struct device_pulse_answer, idle_ns, U64)},
    {FIELD(struct device_pulse_answer, power_known, BOOL)},
    {FIELD(struct device_pulse_answer, power_low_w, F64)},
    {FIELD(struct device_pulse_answer, power_high_w, F64)},
    {FIELD_COUNT(struct device_pulse_answer, place_count)},
    {FIELD_STRUCT_LIST(struct device_pulse_answer, places, place_count, &place_fields)},
};
static const struct fields pulse_answer_fields = {
    FIELDS(struct device_pulse_answer, pulse_answer_rows)};

static int pulse_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_pulse *pulse = request;
    (void)device;
    if ((unsigned)pulse->path >= DEVICE_SCREEN_COUNT || pulse->hz > DEVICE_PULSE_HZ_MAX)
        return err_set(err, -EINVAL, "no such path, or more than %d Hz", DEVICE_PULSE_HZ_MAX);
    return 0;
}

static int unit_check(const struct device *device, const void *request, struct err *err)
{
    (void)device;
    if ((unsigned)((const struct device_check *)request)->unit >= DEVICE_UNIT_COUNT)
        return err_set(err, -EINVAL, "no such unit");
    return 0;
}

const struct device_call_row device_check_unit_row = {
    ROW("check", &check_fields, &check_answer_fields, -ENOTSUP, "this device cannot check its SMs"),
    .check = unit_check};
CALL_FUNCTION(device_check_unit, DEVICE_CALL_CHECK, struct device_check, struct device_check_answer)
CALL_FINI(device_check_answer_fini, struct device_check_answer, check_answer_fields)

const struct device_call_row device_screen_path_row = {ROW("screen", &screen_fields,
                                                           &screen_answer_fields, -ENOTSUP,
                                                           "this device cannot screen its SMs"),
                                                       .check = screen_check};
CALL_FUNCTION(device_screen_path, DEVICE_CALL_SCREEN, struct device_screen,
              struct device_screen_answer)
CALL_FINI(device_screen_answer_fini, struct device_screen_answer, screen_answer_fields)

const struct device_call_row device_pulse_path_row = {ROW("pulse", &pulse_fields,
                                                          &pulse_answer_fields, -ENOTSUP,
                                                          "this device cannot screen its SMs"),
                                                      .check = pulse_check};
CALL_FUNCTION(device_pulse_path, DEVICE_CALL_PULSE, struct device_pulse, struct device_pulse_answer)
CALL_FINI(device_pulse_answer_fini, struct device_pulse_answer, pulse_answer_fields)

/* The load. Its length does not count. */

static const char *const load_unit_names[] = {"fp32", "mma", "wgmma"};
static const char *const load_end_names[] = {"done", "time", "slowdown", "others"};
static const struct field load_rows[] = {{FIELD(struct device_load, sample_ms, U32)}};
static const struct fields load_fields = {FIELDS(struct device_load, load_rows)};
static const struct field load_sample_rows[] = {
    {FIELD(struct device_load_sample, at_ns, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, operations, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, bytes, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, cycles, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, cycles_ns, U64), .form = FIELD_NEAR},
    {FIELD(struct device_load_sample, sm_mhz, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, memory_mhz, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, power_w, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, energy_j, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, temperature_c, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, temperature_memory_c, F64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, throttle_reasons, U64), .form = FIELD_SAME},
    {FIELD(struct device_load_sample, throttle_known, BOOL), .form = FIELD_SAME},
};
static const struct fields load_sample_fields = {
    FIELDS(struct device_load_sample, load_sample_rows)};
static const struct field load_answer_rows[] = {
    {FIELD_CHOICE(struct device_load_answer, unit, load_unit_names)},
    {FIELD_CHOICE(struct device_load_answer, end, load_end_names)},
    {FIELD_COUNT(struct device_load_answer, sample_count)},
    {FIELD(struct device_load_answer, start_known, BOOL)},
    {FIELD(struct device_load_answer, waited_ms, U32)},
    {FIELD(struct device_load_answer, alone, BOOL)},
    {FIELD_STRUCT_LIST(struct device_load_answer, samples, sample_count, &load_sample_fields)},
};
static const struct fields load_answer_fields = {
    FIELDS(struct device_load_answer, load_answer_rows)};

static int load_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_load *load = request;
    (void)device;
    if (!load->duration_ms || !load->sample_ms || !load->limit_ms)
        return err_set(err, -EINVAL, "a load has a duration, a limit and samples");
    return 0;
}

static void load_begin(const void *request, void *answer)
{
    const struct device_load *load = request;
    *(struct device_load_answer *)answer = (struct device_load_answer){
        .start_known = true, .waited_ms = load->waited_ms, .alone = load->alone};
}

void device_load_answer_add(struct device_load_answer *answer,
                            const struct device_load_sample *sample)
{
    size_t count = answer->sample_count;
    if (!(count & (count - 1))) /* grows at 0 and at every power of two */
        answer->samples =
            mem_resize(answer->samples, count, count ? 2 * count : 1, sizeof *answer->samples);
    answer->samples[answer->sample_count++] = *sample;
}

const struct device_call_row device_run_load_row = {ROW("load", &load_fields, &load_answer_fields,
                                                        -ENOTSUP,
                                                        "this device cannot be put under load"),
                                                    .check = load_check, .begin = load_begin};
CALL_FUNCTION(device_run_load, DEVICE_CALL_LOAD, struct device_load, struct device_load_answer)
CALL_FINI(device_load_answer_fini, struct device_load_answer, load_answer_fields)
