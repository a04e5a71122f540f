/* Time: monotonic for durations, UTC for stamps. */
#ifndef GPUMEMTOPO_BASE_CLOCK_H
#define GPUMEMTOPO_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary start; never goes back. */
uint64_t clock_monotonic_ns(void);
double clock_monotonic_s(void);

/* Milliseconds since 1970, UTC. */
uint64_t clock_utc_ms(void);

/* Time in which this process ran. It does not count while the process is stopped, suspended with
 * its job or waiting for a file system, since the process could neither act nor receive then.
 * Zero-initialised: not begun. */
struct clock_awake {
    double last_s;
    double awake_s;
};

/* now_s: clock_monotonic_s. Returns the clock's time in seconds. Call it several times a second: a
 * gap longer than half a second counts as half a second. */
double clock_awake_tick(struct clock_awake *clock, double now_s);

enum { CLOCK_STAMP_MAX = 32 };

/* "2026-11-14T12:00:00Z" (compact 0) or "20261114T120000Z" (compact 1, usable in a file name). */
void clock_utc_stamp(int compact, char out_stamp[CLOCK_STAMP_MAX]);

/* The first form, for a time in milliseconds since 1970. */
void clock_stamp_of(uint64_t time_ms, char out_stamp[CLOCK_STAMP_MAX]);

/* Seconds since 1970 of a stamp of the first form. 0 or -EINVAL, also for NULL; out_s untouched on
 * failure. */
int clock_parse_stamp(const char *stamp, int64_t *out_s);

#endif
