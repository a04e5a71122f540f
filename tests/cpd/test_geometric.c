/* Geometric mapping: distances and angles worked out by hand. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpd/cpd.h"
#include "series.h"

static const double pi = 3.14159265358979323846;

static void test_rows(void **state)
{
    (void)state;
    const struct {
        double row[2];
        double reference;
        double distance;
        double angle;
    } rows[] = {
        {{1, 1}, 1, 0, 0},
        {{4, 5}, 1, 5, atan2(0.5, 4.5)},
        {{1, 0}, 1, 1, pi / 4},
        {{0, 0}, 1, sqrt(2), 0},
        {{-1, -1}, 1, sqrt(8), pi},
        {{1, -1}, 1, 2, pi / 2},
        {{3, 4}, 0, 5, 0},
        {{1, 0}, -1, sqrt(5), 3 * pi / 4},
        {{1, 1 + 2e-9}, 1, 2e-9, 1e-9},
        {{1e300, 0}, 1e300, 1e300, pi / 4},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        double distance = -1.0;
        double angle = -1.0;
        assert_int_equal(cpd_map_geometric(rows[i].row, 1, 2, rows[i].reference, &distance, &angle),
                         0);
        assert_true(fabs(distance - rows[i].distance) <= 1e-6 * rows[i].distance);
        assert_true(fabs(angle - rows[i].angle) <= 1e-6 * rows[i].angle);
    }
}

static void test_many_rows(void **state)
{
    (void)state;
    const double rows[] = {1, 1, 1, 2, 2, 2, 5, 1, 1};
    double distance[3];
    double angle[3];
    assert_int_equal(cpd_map_geometric(rows, 3, 3, 1.0, distance, NULL), 0);
    assert_int_equal(cpd_map_geometric(rows, 3, 3, 1.0, NULL, angle), 0);
    assert_true(distance[0] == 0.0 && fabs(distance[1] - sqrt(3)) < 1e-12 && distance[2] == 4.0);
    assert_true(angle[0] == 0.0 && angle[1] == 0.0);
    assert_true(fabs(angle[2] - acos(7.0 / sqrt(81.0))) < 1e-12);
}

static void test_refused(void **state)
{
    (void)state;
    const double bad[] = {1, 1, 1, NAN};
    double distance[2] = {9, 9};
    assert_int_equal(cpd_map_geometric(bad, 2, 0, 1.0, distance, NULL), -EINVAL);
    assert_int_equal(cpd_map_geometric(bad, 2, 2, 1.0, distance, NULL), -EDOM);
    assert_int_equal(cpd_map_geometric(bad, 1, 2, INFINITY, distance, NULL), -EDOM);
    assert_true(distance[0] == 9 && distance[1] == 9);
    assert_int_equal(cpd_map_geometric(NULL, 0, 2, 1.0, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
