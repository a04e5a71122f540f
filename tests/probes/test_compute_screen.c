/* The screen for wrong results on simulated GPUs: what is wrong is found and named, and what is not
 * is not; and the answers that the host knows. */
#include "../check.h"

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
    assert_int_equal(screen_operands(DEVICE_SCREEN_SPECIAL, (uint32_t)step, 7, operands), 2);
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
    uint32_t operands[SCREEN_OPERANDS];
    assert_int_equal(screen_operands(DEVICE_SCREEN_MMA_F16, 0, 0, operands), 0);
    assert_int_equal(screen_operands(DEVICE_SCREEN_L2, 0, 0, operands), 0);
    assert_int_equal(screen_operands(DEVICE_SCREEN_FP64, 3, 5, operands), 5);
}

/* A wrong word of memory always changes the sum, wherever it stands and whatever is added. */
static void memory_sums(void **state)
{
    (void)state;
    uint32_t words[4], number = 0;
    for (uint32_t i = 0; i < 4; i++)
        words[i] = screen_data_word(i);
    const uint64_t right = screen_fold_four(99, words);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t bits = 1; bits; bits <<= 1, number++) {
            words[i] ^= bits;
            assert_true(screen_fold_chunk(screen_fold_four(99, words)) != screen_fold_chunk(right));
            words[i] ^= bits;
        }
    assert_int_equal(number, 128);
    /* Two fours in another order, and two chunks. */
    uint32_t other[4] = {words[1], words[0], words[3], words[2]};
    assert_true(screen_fold_four(screen_fold_four(0, words), other) !=
                screen_fold_four(screen_fold_four(0, other), words));
    for (uint32_t chunk = 1; chunk < SCREEN_CHUNKS; chunk++)
        assert_true(screen_data_mark(chunk) != screen_data_mark(chunk - 1));
}

/* What the host knows by itself. */
static void host_words(void **state)
{
    (void)state;
    uint64_t hashes[DEVICE_SCREEN_COUNT] = {0};
    for (int path = 0; path < DEVICE_SCREEN_COUNT; path++) {
        bool known = screen_host_hash((enum device_screen_path)path, &hashes[path]);
        assert_true(known == device_screen_rows[path].by_host);
        for (int k = 0; k < path; k++)
            assert_true(!known || hashes[k] != hashes[path]);
    }
    assert_int_equal(screen_float_word(SCREEN_FLOAT(0xffc12345u)), 0x7fffffffu);
    assert_int_equal(screen_float_word(SCREEN_FLOAT(0xff800000u)), 0xff800000u);
}

/* Operands: signs, denormal numbers, infinities, NaNs and all exponents occur, and numbers cancel
 * out; those of the tensor units are finite. */
static void operands(void **state)
{
    (void)state;
    uint32_t exponents[256] = {0}, negative = 0, cancelled = 0, words = 0;
    for (uint32_t step = 0; step < SCREEN_STEPS; step++)
        for (uint32_t lane = 0; lane < CHECK_LANES; lane++) {
            uint32_t a = screen_operand(step, lane, 0), random = screen_operand(step, lane, 2);
            uint32_t other = screen_opposite(a, random), half = screen_f16(a), low = screen_bf16(a);
            float sum = SCREEN_FLOAT(a) + SCREEN_FLOAT(other);
            exponents[a >> 23 & 0xff]++;
            negative += a >> 31;
            cancelled += fabsf(sum) < fabsf(SCREEN_FLOAT(a)) / 4;
            words++;
            assert_true((half >> 10 & 31) != 31 && (half >> 26 & 31) != 31);
            assert_true((low >> 7 & 0xff) <= 180 && (low >> 23 & 0xff) <= 180);
            for (uint32_t at = 0; at < 32; at += 8)
                assert_true((screen_fp8(a) >> at & 0x7f) != 0x7f);
            double wide = SCREEN_DOUBLE(screen_fp64(screen_operand64(step, lane, 0)));
            assert_true(isfinite(wide * wide * 1024) && wide != 0);
        }
    for (int i = 0; i < 256; i++)
        assert_true(exponents[i] > 0);
    assert_true(negative > words / 3 && negative < 2 * words / 3 && cancelled > words / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),     cmocka_unit_test(wrong_sm), cmocka_unit_test(wrong_card),
        cmocka_unit_test(host_words),  cmocka_unit_test(operands), cmocka_unit_test(no_operands),
        cmocka_unit_test(memory_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
