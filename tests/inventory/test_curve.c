/* Curves: to lists and back, and what is none. */
#include "../check.h"

#include <math.h>

#include "inventory/curves.h"

static struct curve rising(size_t count)
{
    struct curve curve = {.hit = 29.1, .far = 456, .miss = 622.75, .count = count};
    for (size_t i = 0; i < count; i++)
        curve.points[i] =
            (struct curve_point){1e6 * (double)(i + 1), 29 + (double)i, (double)i / 128};
    return curve;
}

static void comes_back(void **state)
{
    (void)state;
    static const double many[CURVE_POINTS_MAX + 1] = {1};
    struct curve curve = rising(CURVE_POINTS_MAX), back;
    struct facts notes = {0};
    curve_put(&curve, &notes);
    assert_true(curve_read(&notes, &back));
    assert_int_equal(back.count, curve.count);
    assert_true(back.hit == 29.1 && back.far == 456 && back.miss == 622.75);
    for (size_t i = 0; i < curve.count; i++) {
        assert_true(back.points[i].bytes == curve.points[i].bytes);
        assert_true(back.points[i].cycles == curve.points[i].cycles);
        assert_float_equal(back.points[i].missed, curve.points[i].missed, 1e-4);
    }
    facts_set_numbers(&notes, "curve_bytes", many, CURVE_POINTS_MAX + 1); /* one too many */
    facts_set_numbers(&notes, "curve_cycles", many, CURVE_POINTS_MAX + 1);
    facts_set_numbers(&notes, "curve_missed", many, CURVE_POINTS_MAX + 1);
    assert_false(curve_read(&notes, &back));
    facts_fini(&notes);
}

/* Numbers are kept as they are drawn: whole bytes, tenths of cycles, shares with four digits. */
static void is_rounded(void **state)
{
    (void)state;
    struct curve curve = {{{64.2, 29.07, 0.123456}}, 1, 29.0512345, 0, 280}, back;
    struct facts notes = {0};
    curve_put(&curve, &notes);
    assert_true(isnan(facts_get(&notes, "curve_levels")->numbers[1]));
    assert_true(curve_read(&notes, &back));
    assert_true(back.hit == 29.0512 && back.far == 0 && back.miss == 280);
    assert_true(back.points[0].bytes == 64 && back.points[0].cycles == 29.1);
    assert_true(back.points[0].missed == 0.1235);
    facts_fini(&notes);
}

static void what_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double values[4];
        size_t count;
    } bad[] = {{"curve_levels", {1, 0}, 2},      {"curve_levels", {1, 0, 2, 3}, 4},
               {"curve_levels", {NAN, 0, 2}, 3}, {"curve_bytes", {1}, 0},
               {"curve_cycles", {1, 2, 3}, 3},   {"curve_missed", {1, NAN}, 2},
               {"curve_missed", {1}, 1}};
    struct curve curve = rising(2), back;
    struct facts notes = {0};
    assert_false(curve_read(&notes, &back));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        curve_put(&curve, &notes);
        assert_true(curve_read(&notes, &back));
        facts_set_numbers(&notes, bad[i].key, bad[i].values, bad[i].count);
        assert_false(curve_read(&notes, &back));
        facts_remove(&notes, bad[i].key);
        assert_false(curve_read(&notes, &back));
        facts_set_text(&notes, bad[i].key, "1 2");
        assert_false(curve_read(&notes, &back));
    }
    facts_fini(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(is_rounded),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
