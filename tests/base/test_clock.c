/* UTC stamps, there and back. */
#include "../check.h"

#include <errno.h>

#include "base/clock.h"

static void stamps(void **state)
{
    (void)state;
    static const struct {
        const char *stamp;
        int64_t seconds; /* -1: not a stamp */
    } rows[] = {
        {"1970-01-01T00:00:01Z", 1},
        {"2026-11-14T12:00:00Z", 1794657600},
        {"2024-02-29T23:59:59Z", 1709251199},
        {"2026-11-14T12:00:00", -1},
        {"2026-11-14T12:00:00Z ", -1},
        {"20261114T120000Z", -1},
        {"", -1},
        {NULL, -1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int64_t seconds = -1;
        assert_int_equal(clock_parse_stamp(rows[i].stamp, &seconds),
                         rows[i].seconds < 0 ? -EINVAL : 0);
        assert_int_equal(seconds, rows[i].seconds);
    }
    char now[CLOCK_STAMP_MAX];
    int64_t seconds = 0, then = (int64_t)(clock_utc_ms() / 1000);
    clock_utc_stamp(0, now);
    assert_int_equal(clock_parse_stamp(now, &seconds), 0);
    assert_true(seconds >= then && seconds <= (int64_t)(clock_utc_ms() / 1000));
}

/* Time in which the process did not run counts for nobody: half a second of a gap at most. */
static void time_awake(void **state)
{
    (void)state;
    struct clock_awake clock = {0};
    assert_true(clock_awake_tick(&clock, 1000) == 0);
    assert_true(clock_awake_tick(&clock, 1000.25) == 0.25);
    assert_true(clock_awake_tick(&clock, 1060.25) == 0.75);
    assert_true(clock_awake_tick(&clock, 1060.25) == 0.75);
    assert_true(clock_awake_tick(&clock, 1059) == 0.75);
    assert_true(clock_awake_tick(&clock, 1059.5) == 1.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stamps), cmocka_unit_test(time_awake)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
