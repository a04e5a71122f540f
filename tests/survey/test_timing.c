/* Where the time went: of the slowest GPU, the longest first; judging while results come. */
#include "../check.h"

#include <string.h>

#include "base/str.h"
#include "report/summary.h"
#include "survey/root/judging.h"

static void longest_first(void **state)
{
    (void)state;
    struct gpu_result slowest = {.uuid = (char *)"GPU-b", .elapsed_s = 2};
    struct strbuf text = {0};
    report_timing(&slowest, &text);
    assert_int_equal(text.length, 0); /* it never got to a probe */
    facts_set_real(&slowest.timings, "opening", 0.25);
    facts_set_real(&slowest.timings, "l2.size", 1.5);
    facts_set_real(&slowest.timings, "a", 0.0002);
    facts_set_real(&slowest.timings, "b", 0.0004);
    report_timing(&slowest, &text);
    assert_string_equal(text.data,
                        "\nTime 2.00 s on GPU-b: l2.size 1.500, opening 0.250, others 0.001\n");
    strbuf_fini(&text);
    facts_fini(&slowest.timings);
}

static struct gpu_result result_of(const char *uuid, double elapsed_s, bool timed)
{
    struct gpu_result result = {.uuid = str_copy(uuid), .elapsed_s = elapsed_s};
    if (timed)
        facts_set_real(&result.timings, "opening", elapsed_s);
    facts_set_int(&result.hardware, "sms", 4);
    return result;
}

/* What the judge has taken over is let go; who took longest is remembered. */
static void the_slowest_is_kept(void **state)
{
    (void)state;
    struct err err = {0};
    const struct judge_config config = {.false_alarms = 0.01};
    const struct judge_basis basis = {.config = &config};
    struct judging judging = {.basis = &basis};
    struct gpu_result results[] = {result_of("GPU-a", 1, true), result_of("GPU-b", 2, true),
                                   result_of("GPU-c", 3, false), result_of("GPU-d", 1.5, true)};
    struct inventory inventory = {0};
    for (size_t i = 0; i < COUNT_OF(results); i++) {
        assert_int_equal(judging_take(&judging, COUNT_OF(results), 0, &results[i], &err), 0);
        assert_int_equal(results[i].hardware.count + results[i].timings.count, 0);
    }
    assert_string_equal(judging.slowest.uuid, "GPU-b");
    assert_int_equal(judging.slowest.timings.count, 1);
    assert_int_equal(judging_compare(&judging, NULL, 0, &err), 0);
    judging_finish(&judging, &inventory);
    assert_int_equal(inventory.gpu_count, COUNT_OF(results));
    for (size_t i = 0; i < COUNT_OF(results); i++)
        gpu_result_fini(&results[i]);
    judging_fini(&judging);
    inventory_fini(&inventory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_first),
        cmocka_unit_test(the_slowest_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
