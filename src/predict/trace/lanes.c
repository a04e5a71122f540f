/* Finds whether the lanes of an access lie evenly. */
#include "predict/trace/lanes.h"

uint64_t trace_lanes_address(const struct warp_access *access, uint32_t lane)
{
    if (access->listed)
        return access->addresses[lane];
    return access->base + (uint64_t)((int64_t)(lane % access->lanes_x) * access->step_x) +
           (uint64_t)((int64_t)(lane / access->lanes_x) * access->step_y);
}

bool trace_lanes_fit(const struct trace_lanes *lanes, uint32_t bytes)
{
    const int64_t end = (int64_t)TRACE_ADDRESS_END;
    if (lanes->base >= TRACE_ADDRESS_END || lanes->step_x <= -end || lanes->step_x >= end ||
        lanes->step_y <= -end || lanes->step_y >= end)
        return false;
    int64_t x = (lanes->lanes_x - 1) * lanes->step_x;
    int64_t y = (WARP_LANES / lanes->lanes_x - 1) * lanes->step_y;
    int64_t low = (int64_t)lanes->base + (x < 0 ? x : 0) + (y < 0 ? y : 0);
    int64_t high = (int64_t)lanes->base + (x > 0 ? x : 0) + (y > 0 ? y : 0) + bytes;
    uint64_t odd = lanes->base | (uint64_t)lanes->step_x | (uint64_t)lanes->step_y;
    return low >= 0 && high <= end && !(odd & (bytes - 1));
}

/* The difference of two addresses that are `count` steps apart, per step; false: no whole number.
 */
static bool step_of(uint64_t from, uint64_t to, int64_t count, int64_t *out_step)
{
    int64_t difference = (int64_t)(to - from);
    *out_step = difference / count;
    return difference % count == 0;
}

static bool are_at(const struct warp_access *access, const struct trace_lanes *lanes)
{
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        uint64_t address = lanes->base + (lane % lanes->lanes_x) * (uint64_t)lanes->step_x +
                           (lane / lanes->lanes_x) * (uint64_t)lanes->step_y;
        if (address != trace_lanes_address(access, lane))
            return false;
    }
    return true;
}

/* Rows of `width` lanes: the first two lanes of the first row give the step in it, the first lane
 * of the next row the step of rows. */
static bool find_rows(const struct warp_access *access, uint32_t width, struct trace_lanes *lanes)
{
    uint32_t first = (uint32_t)__builtin_ctz(access->mask), row = first / width;
    uint32_t rest = access->mask & (access->mask - 1);
    uint64_t at = trace_lanes_address(access, first);
    *lanes = (struct trace_lanes){.lanes_x = width};
    for (; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        if (lane / width != row)
            break;
        if (!lanes->step_x &&
            !step_of(at, trace_lanes_address(access, lane), lane - first, &lanes->step_x))
            return false;
    }
    if (rest) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        int64_t columns = (int64_t)(lane % width) - (int64_t)(first % width);
        uint64_t from = at + (uint64_t)columns * (uint64_t)lanes->step_x;
        if (!step_of(from, trace_lanes_address(access, lane), lane / width - row, &lanes->step_y))
            return false;
    }
    lanes->base = at - (first % width) * (uint64_t)lanes->step_x - row * (uint64_t)lanes->step_y;
    return are_at(access, lanes);
}

bool trace_lanes_find(const struct warp_access *access, struct trace_lanes *out_lanes)
{
    for (uint32_t width = WARP_LANES; width >= 2; width /= 2)
        if (find_rows(access, width, out_lanes) && trace_lanes_fit(out_lanes, access->bytes))
            return true;
    return false;
}

void trace_lanes_count(const struct warp_access *access, struct trace_totals *totals)
{
    totals->accesses++;
    totals->loads += !access->store;
    totals->lanes += (uint64_t)__builtin_popcount(access->mask);
    totals->bytes_max = access->bytes > totals->bytes_max ? access->bytes : totals->bytes_max;
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint64_t at = trace_lanes_address(access, (uint32_t)__builtin_ctz(rest));
        totals->lowest = at < totals->lowest ? at : totals->lowest;
        at += access->bytes - 1;
        totals->highest = at > totals->highest ? at : totals->highest;
    }
}
