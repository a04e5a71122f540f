/* Where the time went: of the slowest GPU, the longest first. */
#include "../check.h"

#include <string.h>

#include "survey/timing.h"

static void longest_first(void **state)
{
    (void)state;
    struct gpu_result results[3] = {
        {.uuid = (char *)"GPU-a", .elapsed_s = 1},
        {.uuid = (char *)"GPU-b", .elapsed_s = 2},
        {.uuid = (char *)"GPU-c", .elapsed_s = 3}}; /* never got to a probe */
    struct strbuf text = {0};
    timing_print(results, 3, &text);
    assert_int_equal(text.length, 0);
    assert_int_equal(facts_set_real(&results[0].timings, "opening", 1), 0);
    assert_int_equal(facts_set_real(&results[1].timings, "opening", 0.25), 0);
    assert_int_equal(facts_set_real(&results[1].timings, "l2.size", 1.5), 0);
    assert_int_equal(facts_set_real(&results[1].timings, "a", 0.0002), 0);
    assert_int_equal(facts_set_real(&results[1].timings, "b", 0.0004), 0);
    timing_print(results, 3, &text);
    assert_string_equal(text.data,
                        "\nTime 2.00 s on GPU-b: l2.size 1.500, opening 0.250, others 0.001\n");
    strbuf_fini(&text);
    facts_fini(&results[0].timings);
    facts_fini(&results[1].timings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(longest_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
