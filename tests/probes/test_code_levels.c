/* Levels of caches of instructions; where a rise begins, and how far that may be off. */
#include "../check.h"

#include <math.h>

#include "probes/caches/code_levels.h"

enum { POINTS = 24 };

static const double LOW = 0.2, HIGH = 0.6;

static double begin_of(const double *shares, double *out_error)
{
    double at[POINTS];
    for (int i = 0; i < POINTS; i++)
        at[i] = 30 + i;
    const struct code_rise rise = {at, shares, POINTS, LOW, HIGH};
    return code_rise_begin(&rise, out_error);
}

static void straight_rise(void **state)
{
    double shares[POINTS], error;
    (void)state;
    for (int i = 0; i < POINTS; i++)
        shares[i] = fmin(fmax(0, (i - 8) / 10.0), 1);
    assert_float_equal(begin_of(shares, &error), 38, 0.01);
    assert_float_equal(error, 0, 0.01);
}

/* Sets that are filled unevenly: a step, a level part, then the rise. The line begins at 33, where
 * nothing is replaced yet. */
static void bent_rise(void **state)
{
    static const double shares[POINTS] = {0,    0,    0,    0,    0,    0,    0,    0,
                                          0,    0.13, 0.25, 0.24, 0.24, 0.23, 0.22, 0.22,
                                          0.21, 0.32, 0.42, 0.49, 0.56, 0.59, 0.61, 0.7};
    double error, begin = begin_of(shares, &error);
    (void)state;
    assert_true(begin < 36);
    assert_true(error >= 38 - begin);
}

/* Code that costs 1 and then 3 cycles for each further instruction, but for so many points 2. */
static size_t levels_with_dip(size_t dip)
{
    struct code_curve curve = {.count = 120};
    struct code_levels levels;
    for (size_t i = 0; i < curve.count; i++) {
        uint32_t cost = i < 40 ? 1 : i >= 60 && i < 60 + dip ? 2 : 3;
        curve.lengths[i] = (uint32_t)(16 * (i + 1));
        curve.cycles[i] = i ? curve.cycles[i - 1] + 16 * cost : 16;
    }
    code_levels_find(&curve, &levels);
    return levels.count;
}

/* A short dip is chance; a long one is a level of its own. */
static void dips(void **state)
{
    (void)state;
    assert_int_equal(levels_with_dip(0), 2);
    assert_int_equal(levels_with_dip(3), 2);
    assert_int_equal(levels_with_dip(24), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(straight_rise), cmocka_unit_test(bent_rise),
                                       cmocka_unit_test(dips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
