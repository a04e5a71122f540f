/* Time: monotonic for durations, UTC for stamps. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double clock_monotonic_s(void)
{
    return (double)clock_monotonic_ns() * 1e-9;
}

uint64_t clock_utc_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

double clock_awake_tick(struct clock_awake *clock, double now_s)
{
    const double gap_max_s = 0.5;
    double passed_s = now_s - clock->last_s;
    if (clock->last_s > 0 && passed_s > 0)
        clock->awake_s += passed_s < gap_max_s ? passed_s : gap_max_s;
    clock->last_s = now_s;
    return clock->awake_s;
}

static const char STAMP[] = "%Y-%m-%dT%H:%M:%SZ";

void clock_utc_stamp(int compact, char out_stamp[CLOCK_STAMP_MAX])
{
    /* Not time(): its coarse clock may lag some milliseconds, and then gives the previous
     * second. */
    time_t now = (time_t)(clock_utc_ms() / 1000);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(out_stamp, CLOCK_STAMP_MAX, compact ? "%Y%m%dT%H%M%SZ" : STAMP, &utc);
}

void clock_stamp_of(uint64_t time_ms, char out_stamp[CLOCK_STAMP_MAX])
{
    time_t then = (time_t)(time_ms / 1000);
    struct tm utc;
    gmtime_r(&then, &utc);
    strftime(out_stamp, CLOCK_STAMP_MAX, STAMP, &utc);
}

int clock_parse_stamp(const char *stamp, int64_t *out_s)
{
    struct tm utc = {0};
    const char *end = stamp ? strptime(stamp, STAMP, &utc) : NULL;
    if (!end || *end)
        return -EINVAL;
    *out_s = timegm(&utc);
    return 0;
}
