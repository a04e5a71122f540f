/* The screen for wrong results on simulated GPUs: what is wrong is found and named, and what is not
 * is not; and the answers that the host knows. */
#include "../check.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/screen_program.h"
#include "probed.h"

static const char MODEL[] =
    "name: Screen\nsms: 8\nmemory: {size: 1 GiB}\n"
    "hardware: {compute_capability: \"9.0\", cores_per_sm: 128}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";

static double digest_of(const struct measures *measures, const char *path)
{
    char name[64];
    snprintf(name, sizeof name, "compute.digest.%s", path);
    return probed_value(measures, name);
}

static void healthy(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "compute.screen"};
    struct measures measures = probed_run(&probed);
    const struct measure *wrong = measures_get(&measures, "compute.screen");
    assert_true(wrong->value == 0);
    assert_int_equal(facts_get(&wrong->notes, "paths")->integer, DEVICE_SCREEN_COUNT);
    assert_int_equal(facts_get(&wrong->notes, "sub_cores")->integer, 8 * DEVICE_SUB_CORES);
    assert_null(measures_get(&measures, "compute.wrong_at.int"));
    assert_true(probed_value(&measures, "compute.code") >= 0);
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++)
        assert_true(digest_of(&measures, device_screen_names[path]) < 1000000);
    measures_fini(&measures);
}

static void wrong_sm(void **state)
{
    (void)state;
    struct probed probed = {.model = MODEL, .list = "compute.screen,compute.check", .faulty = true};
    probed.fault = (struct sim_fault){
        .kind = SIM_WRONG_SM, .sm = 5, .share = 0.9, .path = DEVICE_SCREEN_SPECIAL};
    struct measures measures = probed_run(&probed);
    const struct measure *wrong = measures_get(&measures, "compute.wrong_on.special");
    assert_true(wrong->value > 2 && wrong->value <= wrong->n);
    assert_true(probed_value(&measures, "compute.screen") ==
                (double)facts_get(&wrong->notes, "hashes_wrong")->integer);
    const struct measure *place = measures_get(&measures, "compute.wrong_at.special");
    assert_true(place->value == 5);
    assert_int_equal(facts_get(&place->notes, "sub_core")->integer, 2);
    /* The second look. */
    int64_t step = facts_get(&place->notes, "step")->integer;
    uint32_t operands[SCREEN_OPERANDS];
    char text[32];
    assert_true(facts_get(&place->notes, "again_wrong")->integer > 0);
    assert_int_equal(facts_get(&place->notes, "again")->integer, 16);
    assert_int_equal(facts_get(&place->notes, "lane")->integer, 7);
    assert_true(facts_get(&place->notes, "word")->integer <
                device_screen_rows[DEVICE_SCREEN_SPECIAL].taken);
    assert_string_equal(facts_get(&place->notes, "bits")->text, "0x00002000");
    const struct screen_place at = {1, 3, (uint32_t)step, 7};
    assert_int_equal(facts_get(&place->notes, "set")->integer, 1);
    assert_int_equal(facts_get(&place->notes, "period")->integer, 3);
    assert_int_equal(screen_operands(DEVICE_SCREEN_SPECIAL, &at, operands), 2);
    snprintf(text, sizeof text, "0x%08x 0x%08x", operands[0], operands[1]);
    assert_string_equal(facts_get(&place->notes, "operands")->text, text);
    assert_null(measures_get(&measures, "compute.wrong_on.int"));
    assert_true(probed_value(&measures, "compute.wrong") == 0);
    measures_fini(&measures);
}

static struct measures wrong_card_in(enum device_screen_path path)
{
    struct probed probed = {.model = MODEL, .list = "compute.screen", .faulty = true};
    probed.fault = (struct sim_fault){.kind = SIM_WRONG_CARD, .path = (int)path};
    return probed_run(&probed);
}

/* All SMs are wrong alike: the host shows it where it knows the answer, else only the digest. */
static void wrong_card(void **state)
{
    (void)state;
    const struct probed right = {.model = MODEL, .list = "compute.screen"};
    struct measures measures = probed_run(&right);
    double special = digest_of(&measures, "special"), fp64 = digest_of(&measures, "fp64");
    measures_fini(&measures);
    measures = wrong_card_in(DEVICE_SCREEN_FP64);
    assert_true(probed_value(&measures, "compute.not_as_host.fp64") == 1);
    assert_true(digest_of(&measures, "fp64") != fp64);
    assert_true(digest_of(&measures, "special") == special);
    measures_fini(&measures);
    measures = wrong_card_in(DEVICE_SCREEN_SPECIAL);
    assert_true(probed_value(&measures, "compute.screen") == 0);
    assert_true(digest_of(&measures, "fp64") == fp64);
    assert_true(digest_of(&measures, "special") != special);
    measures_fini(&measures);
}

/* Of tensor units and of memory, no operands of one lane make a word. */
static void no_operands(void **state)
{
    (void)state;
    uint32_t operands[SCREEN_OPERANDS], others[SCREEN_OPERANDS];
    const struct screen_place at = {0, 2, 3, 5}, later = {1, 2, 3, 5};
    assert_int_equal(screen_operands(DEVICE_SCREEN_MMA_F16, &at, operands), 0);
    assert_int_equal(screen_operands(DEVICE_SCREEN_L2, &at, operands), 0);
    assert_int_equal(screen_operands(DEVICE_SCREEN_FP64, &at, operands), 5);
    assert_int_equal(operands[4], screen_operand(2 * SCREEN_STEPS + 3, 5, 4));
    /* Another set has other ones. */
    assert_int_equal(screen_operands(DEVICE_SCREEN_FP64, &later, others), 5);
    for (int i = 0; i < 5; i++)
        assert_true(operands[i] != others[i]);
}

static uint64_t sum_of(const uint32_t first[4], const uint32_t second[4])
{
    struct screen_read sums = {.products = 99};
    screen_read_four(&sums, 0, first);
    screen_read_four(&sums, 1, second);
    return screen_read_end(&sums);
}

/* A wrong word of memory always changes the sum, wherever it stands and whatever is added. */
static void memory_sums(void **state)
{
    (void)state;
    uint32_t words[4], number = 0;
    for (uint32_t i = 0; i < 4; i++)
        words[i] = screen_data_word(i);
    const uint64_t right = sum_of(words, words);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t bits = 1; bits; bits <<= 1, number++) {
            uint32_t wrong[4] = {words[0], words[1], words[2], words[3]};
            wrong[i] ^= bits;
            assert_true(sum_of(wrong, words) != right);
            assert_true(sum_of(words, wrong) != right);
            assert_true(sum_of(wrong, wrong) != right);
        }
    assert_int_equal(number, 128);
    /* Two fours in another order. */
    const uint32_t other[4] = {words[1], words[0], words[3], words[2]};
    assert_true(sum_of(words, other) != sum_of(other, words));
    /* Every word tells two chunks apart, and inverted memory from memory that is not. */
    for (uint32_t chunk = 1; chunk < SCREEN_CHUNKS; chunk++)
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t mark = screen_data_mark(chunk, i, 0);
            assert_true(mark != screen_data_mark(chunk - 1, i, 0));
            assert_int_equal(screen_data_mark(chunk, i, UINT32_MAX), ~mark);
        }
}

/* What the host knows by itself. */
static void host_words(void **state)
{
    (void)state;
    uint64_t hashes[DEVICE_SCREEN_COUNT] = {0};
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++) {
        bool known = screen_host_hash((enum device_screen_path)path, 0, &hashes[path]);
        assert_true(known == device_screen_rows[path].by_host);
        for (int k = 0; k < path; k++)
            assert_true(!known || hashes[k] != hashes[path]);
    }
    /* Another set of operands has another hash; memory has no operands. */
    uint64_t other;
    assert_true(screen_host_hash(DEVICE_SCREEN_INT, 1, &other));
    assert_true(other != hashes[DEVICE_SCREEN_INT]);
    assert_true(screen_host_hash(DEVICE_SCREEN_L2, 1, &other));
    assert_true(other == hashes[DEVICE_SCREEN_L2]);
    /* The same bits wrong in two joined words do not cancel out. */
    for (uint32_t bits = 1; bits; bits <<= 1)
        assert_true(screen_join(5 ^ bits, 9 ^ bits) != screen_join(5, 9));
    assert_int_equal(screen_float_word(SCREEN_FLOAT(0xffc12345u)), 0x7fffffffu);
    assert_int_equal(screen_float_word(SCREEN_FLOAT(0xff800000u)), 0xff800000u);
}

/* Operands: signs, denormal numbers, infinities, NaNs and all exponents occur, and numbers cancel
 * out. */
static void operands(void **state)
{
    (void)state;
    uint32_t exponents[256] = {0}, negative = 0, cancelled = 0, words = 0;
    for (uint32_t step = 0; step < SCREEN_STEPS; step++)
        for (uint32_t lane = 0; lane < CHECK_LANES; lane++, words++) {
            uint32_t a = screen_operand(step, lane, 0), random = screen_operand(step, lane, 2);
            float sum = SCREEN_FLOAT(a) + SCREEN_FLOAT(screen_opposite(a, random));
            exponents[a >> 23 & 0xff]++;
            negative += a >> 31;
            cancelled += fabsf(sum) < fabsf(SCREEN_FLOAT(a)) / 4;
        }
    for (int i = 0; i < 256; i++)
        assert_true(exponents[i] > 0);
    assert_true(negative > words / 3 && negative < 2 * words / 3 && cancelled > words / 3);
}

static void see_format(uint32_t bits, uint32_t of_a, uint32_t of_b, uint32_t seen[256])
{
    uint32_t half = screen_f16(bits, of_a), fp8 = screen_fp8(bits, of_a);
    uint32_t two = screen_bf16(bits, of_a);
    float a = SCREEN_FLOAT(screen_tf32(bits, of_a)), b = SCREEN_FLOAT(screen_tf32(~bits, of_b));
    assert_true((half >> 10 & 31) != 31 && (half >> 26 & 31) != 31);
    for (uint32_t at = 0; at < 32; at += 8)
        assert_true((fp8 >> at & 0x7f) != 0x7f);
    assert_int_equal(two >> 16, screen_tf32(bits, of_a) >> 16);
    assert_int_equal(two & 0xffff, screen_tf32(bits << 16, of_a) >> 16);
    /* A thousand products are finite; none is denormal unless an operand is. */
    assert_true(isfinite(a * b * 1024));
    assert_true(fabsf(a) < FLT_MIN || fabsf(b) < FLT_MIN || fabsf(a * b) >= FLT_MIN);
    seen[SCREEN_BITS(a) >> 23 & 0xff]++;
}

/* Those of the tensor units are finite, and have almost all exponents, those of one step a few. */
static void formats(void **state)
{
    (void)state;
    uint32_t seen[256] = {0}, exponents = 0, denormal = 0, count = 0;
    for (uint32_t step = 0; step < 1024; step++) {
        uint32_t of_a = screen_exponent(step, false, SCREEN_BF16_EXPONENT);
        uint32_t of_b = screen_exponent(step, true, SCREEN_BF16_EXPONENT);
        uint32_t a64 = screen_exponent(step, false, SCREEN_FP64_EXPONENT);
        uint32_t b64 = screen_exponent(step, true, SCREEN_FP64_EXPONENT);
        for (uint32_t lane = 0; lane < CHECK_LANES; lane++, count++) {
            see_format(screen_bits(step, lane, 0), of_a, of_b, seen);
            double a = screen_fp64_number(a64, step, lane, 0);
            double b = screen_fp64_number(b64, step, lane, 2);
            assert_true(isfinite(a * b * 1024));
            assert_true(fabs(a) < DBL_MIN || fabs(b) < DBL_MIN || fabs(a * b) >= DBL_MIN);
            denormal += fabs(a) < DBL_MIN;
        }
    }
    for (int i = 0; i < 255; i++)
        exponents += seen[i] > 0;
    assert_true(exponents > 240 && seen[0] > 0 && seen[255] == 0);
    assert_true(denormal > count / 24 && denormal < count / 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),     cmocka_unit_test(wrong_sm), cmocka_unit_test(wrong_card),
        cmocka_unit_test(host_words),  cmocka_unit_test(operands), cmocka_unit_test(no_operands),
        cmocka_unit_test(memory_sums), cmocka_unit_test(formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
