/* Facts, measures and results as data: set, replace, look up, copy. */
#include "../check.h"

#include <math.h>

#include "base/str.h"
#include "inventory/gpu_result.h"
#include "rich.h"

static void facts_keep_order_and_replace(void **state)
{
    (void)state;
    struct facts facts = {0};
    facts_set_int(&facts, "sms", 132);
    facts_set_text(&facts, "vbios", "96.00");
    facts_set_unknown(&facts, "sms", "not supported");
    assert_int_equal(facts.count, 2);
    assert_string_equal(facts.items[0].key, "sms");
    assert_int_equal(facts_get(&facts, "sms")->kind, FACT_UNKNOWN);
    assert_string_equal(facts_get(&facts, "sms")->text, "not supported");
    assert_int_equal(facts_int(&facts, "sms", -7), -7);
    assert_int_equal(facts_int(&facts, "none", -7), -7);
    assert_null(facts_text(&facts, "sms"));
    assert_string_equal(facts_text(&facts, "vbios"), "96.00");
    assert_null(facts_get(&facts, "none"));
    facts_set(&facts, &facts.items[1]);
    assert_string_equal(facts_text(&facts, "vbios"), "96.00");
    facts_fini(&facts);
    assert_int_equal(facts.count, 0);
}

static void facts_compare_by_value(void **state)
{
    (void)state;
    char key[] = "k", other_key[] = "l", a[] = "a", b[] = "b";
    const struct {
        struct fact left, right;
        bool equal;
    } rows[] = {
        {{key, FACT_INT, .integer = 5}, {key, FACT_INT, .integer = 5}, true},
        {{key, FACT_INT, .integer = 5}, {key, FACT_INT, .integer = 6}, false},
        {{key, FACT_INT, .integer = INT64_MAX}, {key, FACT_INT, .integer = INT64_MAX - 1}, false},
        {{key, FACT_INT, .integer = 5}, {key, FACT_REAL, .real = 5}, true},
        {{key, FACT_INT, .integer = 5}, {key, FACT_REAL, .real = 5.5}, false},
        {{key, FACT_INT, .integer = 5}, {other_key, FACT_INT, .integer = 5}, false},
        {{key, FACT_REAL, .real = NAN}, {key, FACT_REAL, .real = NAN}, true},
        {{key, FACT_BOOL, .flag = true}, {key, FACT_BOOL, .flag = false}, false},
        {{key, FACT_BOOL, .flag = true}, {key, FACT_INT, .integer = 1}, false},
        {{key, FACT_TEXT, .text = a}, {key, FACT_TEXT, .text = b}, false},
        {{key, FACT_TEXT, .text = a}, {key, FACT_TEXT, .text = a}, true},
        {{key, FACT_UNKNOWN, .text = a}, {key, FACT_UNKNOWN, .text = b}, true},
        {{key, FACT_UNKNOWN, .text = a}, {key, FACT_TEXT, .text = a}, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (fact_equal(&rows[i].left, &rows[i].right) != rows[i].equal)
            fail_msg("row %zu", i);
        if (fact_equal(&rows[i].right, &rows[i].left) != rows[i].equal)
            fail_msg("row %zu the other way", i);
    }
}

static void measures_replace_and_answer(void **state)
{
    (void)state;
    struct measures measures = {0};
    static const char *const words[] = {"texture", "read_only"};
    double value = 0;
    assert_non_null(measures_add_missing(&measures, "l1.size", MEASURE_FAILED, "odd"));
    assert_false(measures_value(&measures, "l1.size", &value));
    assert_non_null(measures_add_words(&measures, "l1.shared_with", words, 2, "evict"));
    struct measure *m = measures_add(&measures, "l1.size", 42, "B", "chase");
    assert_non_null(m);
    assert_int_equal(measures.count, 2);
    assert_null(m->reason);
    assert_true(measures_value(&measures, "l1.size", &value));
    assert_float_equal(value, 42, 0);
    measure_set_status(m, MEASURE_NOISY, "shaky");
    assert_true(measures_value(&measures, "l1.size", &value));
    measure_set_status(m, MEASURE_UNSUPPORTED, NULL);
    assert_null(m->reason);
    assert_false(measures_value(&measures, "l1.size", &value));
    assert_false(measures_value(&measures, "l1.shared_with", &value));
    assert_false(measures_value(&measures, "none", &value));
    assert_string_equal(measures_get(&measures, "l1.shared_with")->words[1], "read_only");
    measures_fini(&measures);
}

static void names_are_the_contract(void **state)
{
    (void)state;
    static const char *const gpu[] = {"ok",     "outlier", "timed_out", "crashed",
                                      "failed", "lost",    "busy"};
    static const char *const measure[] = {"ok", "noisy", "unsupported", "failed"};
    static const char *const verdict[] = {"failing",  "degraded",     "misconfigured", "mismatched",
                                          "unsteady", "built_slower", "unknown"};
    static const char *const action[] = {"nothing", "tell", "alert", "drain"};
    for (int i = GPU_OK; i <= GPU_BUSY; i++)
        assert_string_equal(gpu_status_name((enum gpu_status)i), gpu[i]);
    for (int i = MEASURE_OK; i <= MEASURE_FAILED; i++)
        assert_string_equal(measure_status_name((enum measure_status)i), measure[i]);
    for (int i = 0; i < VERDICT_COUNT; i++)
        assert_string_equal(verdict_name((enum verdict)i), verdict[i]);
    for (int i = 0; i < ACTION_COUNT; i++)
        assert_string_equal(action_name((enum action)i), action[i]);
}

/* The binary form holds every field, so equal bytes mean equal copies. */
static void results_copy_whole(void **state)
{
    (void)state;
    struct gpu_result result, copy = {0};
    struct strbuf left = {0}, right = {0};
    rich_result(&result);
    gpu_result_copy(&copy, &result);
    gpu_result_encode(&result, &left);
    gpu_result_fini(&result);
    gpu_result_encode(&copy, &right);
    gpu_result_fini(&copy);
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.data, right.data, left.length);
    strbuf_fini(&left);
    strbuf_fini(&right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_keep_order_and_replace), cmocka_unit_test(facts_compare_by_value),
        cmocka_unit_test(measures_replace_and_answer),  cmocka_unit_test(names_are_the_contract),
        cmocka_unit_test(results_copy_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
