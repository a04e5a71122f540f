/* What the tests of the whole memory and of the SMs found. */
#include "made.h"

#include "../check.h"

#include <string.h>

#include "device/device.h"

enum { COUNT = 8 };
_Static_assert(DEVICE_WRONG_WORDS_MAX == 1024, "a finding says how many wrong words are kept");

static void add(struct gpu_result *gpu, const char *metric, double value)
{
    assert_non_null(measures_add(&gpu->measures, metric, value, "", "test"));
}

static void wrong_words_accuse(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++) {
        add(&gpus[i], "main.whole.errors", i == 2 ? 3 : 0);
        add(&gpus[i], "main.whole.slow_regions", i == 5 ? 1 : 0);
        add(&gpus[i], "main.whole.late_regions", i == 6 ? 2 : 0);
    }
    add(&gpus[2], "main.whole.first_error", 17.5 * 0x1p30);
    add(&gpus[5], "main.whole.slowest_region", 40 * 0x1p30);
    add(&gpus[6], "main.whole.latency_worst_region", 41 * 0x1p30);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 1);
    const struct inventory_outlier *accused = made_outlier(&inventory, gpus[2].uuid);
    assert_int_equal(accused->verdict, VERDICT_FAILING);
    assert_string_equal(made_finding(accused, "main.whole.errors")->cause,
                        "words of memory that read back wrong, over all patterns: 3, the first at "
                        "17.5 GiB of the memory that was tested");
    const struct inventory_outlier *watched = made_watched(&inventory, gpus[5].uuid);
    assert_non_null(
        strstr(made_finding(watched, "main.whole.slow_regions")->cause, "the slowest at 40 GiB"));
    watched = made_watched(&inventory, gpus[6].uuid);
    assert_non_null(strstr(made_finding(watched, "main.whole.late_regions")->cause,
                           ": 2, the highest at 41 GiB of the memory"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* What wrong words have in common is said; what happened once is told. */
static void wrong_memory_is_described(void **state)
{
    (void)state;
    static const struct {
        double errors, places, again, bits, ones, pages, period;
        const char *words;
    } rows[] = {
        {12, 3, 3, 1, 1, 1, 4096,
         "12, the first at 1 GiB of the memory that was tested; 3 words, 3 of them wrong again; "
         "only "
         "bit 5, read as 1; at distances that are multiples of 4096 B; in 1 page of 2 MiB"},
        {70000, 900, -1, 1, 0, 450, 0,
         "70000, the first at 1 GiB of the memory that was tested; of the first 1,024: 900 words; "
         "only bit 5, read as 0; in 450 pages of 2 MiB"},
        {1, 1, 0, 2, 0.5, 1, 0,
         "1, the first at 1 GiB of the memory that was tested; 1 word, 0 of them wrong again; 2 of "
         "64 bits, read as 0 and as 1; in 1 page of 2 MiB; it was seen once: measure it again"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gpu_result *gpus = made_fleet(COUNT, 3);
        for (size_t k = 0; k < COUNT; k++)
            add(&gpus[k], "main.march.errors", k == 2 ? rows[i].errors : 0);
        add(&gpus[2], "main.march.first_error", 0x1p30);
        add(&gpus[2], "main.march.places", rows[i].places);
        if (rows[i].again >= 0)
            add(&gpus[2], "main.march.again", rows[i].again);
        add(&gpus[2], "main.march.bits", rows[i].bits);
        add(&gpus[2], "main.march.bit", 5);
        add(&gpus[2], "main.march.ones", rows[i].ones);
        add(&gpus[2], "main.march.pages", rows[i].pages);
        if (rows[i].period > 0)
            add(&gpus[2], "main.march.period", rows[i].period);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, rows[i].again != 0);
        const struct inventory_outlier *entry = rows[i].again
                                                    ? made_outlier(&inventory, gpus[2].uuid)
                                                    : made_watched(&inventory, gpus[2].uuid);
        const char *cause = made_finding(entry, "main.march.errors")->cause;
        assert_non_null(strstr(cause, "words of memory that a March test read wrong: "));
        assert_string_equal(strstr(cause, ": ") + 2, rows[i].words);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

/* Errors that ECC could not correct accuse; those that it corrected are watched. */
static void ecc_errors_in_the_test(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++) {
        add(&gpus[i], "main.whole.ecc_corrected", i == 2 ? 14 : 0);
        add(&gpus[i], "main.whole.ecc_uncorrected", i == 5 ? 1 : 0);
    }
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 1);
    const struct inventory_outlier *accused = made_outlier(&inventory, gpus[5].uuid);
    assert_int_equal(accused->verdict, VERDICT_FAILING);
    assert_string_equal(made_finding(accused, "main.whole.ecc_uncorrected")->cause,
                        "uncorrectable ECC errors while all memory was written and read: 1");
    assert_int_equal(inventory.watch_count, 1);
    assert_string_equal(
        made_finding(made_watched(&inventory, gpus[2].uuid), "main.whole.ecc_corrected")->cause,
        "corrected ECC errors while all memory was written and read: 14");
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* The finding names the unit, how often and the SM. */
static void wrong_results_accuse(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        add(&gpus[i], "compute.wrong", i == 4 ? 12 : 0);
    add(&gpus[4], "compute.wrong_in.fp32", 12);
    add(&gpus[4], "compute.wrong_sm", 17);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_int_equal(inventory.total_outliers, 1);
    const struct inventory_outlier *accused = made_outlier(&inventory, gpus[4].uuid);
    assert_int_equal(accused->verdict, VERDICT_FAILING);
    assert_string_equal(made_finding(accused, "compute.wrong_in.fp32")->cause,
                        "checks of the FP32 units with a wrong result: 12, most on SM 17");
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* An offset says where something is on one GPU. The model has no usual one. */
static void places_have_no_median(void **state)
{
    (void)state;
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        add(&gpus[i], "main.whole.slow_regions", i < 3 ? 1 : 0);
    for (size_t i = 0; i < 3; i++)
        add(&gpus[i], "main.whole.slowest_region", (double)i * 0x1p30);
    for (size_t i = 0; i < 3; i++)
        add(&gpus[i], "main.whole.latency_worst_region", (double)i * 0x1p30);
    struct inventory inventory = made_judged(gpus, COUNT);
    assert_non_null(measures_get(&inventory.models[0].memory, "main.whole.slow_regions"));
    assert_null(measures_get(&inventory.models[0].memory, "main.whole.slowest_region"));
    assert_null(measures_get(&inventory.models[0].memory, "main.whole.latency_worst_region"));
    inventory_fini(&inventory);
    made_free(gpus, COUNT);
}

/* A wrong result that repeats accuses, with all that the second look showed; one that does not is
 * told, and not of other GPUs. */
static void screens_that_repeat(void **state)
{
    (void)state;
    static const char SHOWN[] =
        "wrong launches in the screen of FP32 units: 12, most on SM 17, sub-core 3: 9 of 40; "
        "wrong again in 16 of 16 launches; lane 7, set 0, period 5, step 3, word 2: 0x3f800001 "
        "instead of "
        "0x3f800000, of operands 0x00000001 0x80000000; bits 0x00000001; at 1740 MHz, 312 W, 52 "
        "degrees C";
    static const char ONCE[] =
        "wrong launches in the screen of FP32 units: 1, most on SM 17, sub-core 3: 1 of 40; wrong "
        "again in 0 of 16 launches; it was seen once: measure it again";
    for (int repeated = 0; repeated < 2; repeated++) {
        struct gpu_result *gpus = made_fleet(COUNT, 3);
        struct gpu_result *gpu = &gpus[4];
        add(gpu, "compute.wrong_on.fp32", repeated ? 12 : 1);
        struct facts *notes =
            &measures_add(&gpu->measures, "compute.wrong_at.fp32", 17, "id", "test")->notes;
        facts_set_int(notes, "sub_core", 3);
        facts_set_int(notes, "wrong", repeated ? 9 : 1);
        facts_set_int(notes, "of", 40);
        facts_set_int(notes, "again", 16);
        facts_set_int(notes, "again_wrong", repeated ? 16 : 0);
        if (repeated) {
            facts_set_int(notes, "lane", 7);
            facts_set_int(notes, "set", 0);
            facts_set_int(notes, "period", 5);
            facts_set_int(notes, "step", 3);
            facts_set_int(notes, "word", 2);
            facts_set_text(notes, "operands", "0x00000001 0x80000000");
            facts_set_text(notes, "expected", "0x3f800000");
            facts_set_text(notes, "found", "0x3f800001");
            facts_set_text(notes, "bits", "0x00000001");
            facts_set_real(notes, "sm_mhz", 1740);
            facts_set_real(notes, "power_w", 312);
            facts_set_real(notes, "temperature_c", 52);
        }
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, repeated);
        assert_int_equal(inventory.watch_count, !repeated);
        const struct inventory_outlier *entry =
            repeated ? made_outlier(&inventory, gpu->uuid) : made_watched(&inventory, gpu->uuid);
        assert_string_equal(made_finding(entry, "compute.wrong_on.fp32")->cause,
                            repeated ? SHOWN : ONCE);
        inventory_fini(&inventory);
        made_free(gpus, COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_words_accuse),     cmocka_unit_test(wrong_memory_is_described),
        cmocka_unit_test(ecc_errors_in_the_test), cmocka_unit_test(wrong_results_accuse),
        cmocka_unit_test(places_have_no_median),  cmocka_unit_test(screens_that_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
