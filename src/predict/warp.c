/* Coalesces the accesses of a warp's lanes into lines and sectors. */
#include "predict/warp.h"

static uint32_t warp_line_add(struct warp_line *lines, uint32_t count, uint64_t number,
                              uint32_t sectors)
{
    for (uint32_t i = count; i-- > 0;) {
        if (lines[i].number == number) {
            lines[i].sectors |= sectors;
            return count;
        }
    }
    lines[count] = (struct warp_line){number, sectors};
    return count + 1;
}

/* Bytes from `first` to `last`, without a gap. */
static inline uint32_t add_run(struct warp_line *lines, uint32_t count, uint64_t first,
                               uint64_t last, struct warp_unit unit)
{
    uint32_t shift = unit.line_shift - unit.sector_shift, end = (UINT32_C(1) << shift) - 1;
    uint32_t all = (uint32_t)((UINT64_C(2) << end) - 1), had = count;
    uint64_t last_number = last >> unit.line_shift;
    uint32_t mask = all & all << (first >> unit.sector_shift & end);
    for (uint64_t number = first >> unit.line_shift; number <= last_number; number++) {
        if (number == last_number)
            mask &= all >> (end - (last >> unit.sector_shift & end));
        if (had)
            count = warp_line_add(lines, count, number, mask);
        else
            lines[count++] = (struct warp_line){number, mask};
        mask = all;
    }
    return count;
}

/* Lanes side by side access neighbours or the same element: whole rows of lanes at once. */
static uint32_t coalesce_rows(const struct warp_access *access, struct warp_unit unit,
                              struct warp_line *lines)
{
    uint32_t count = 0, width = access->lanes_x;
    uint32_t row_mask = width == WARP_LANES ? UINT32_MAX : (UINT32_C(1) << width) - 1;
    for (uint32_t row = 0; row * width < WARP_LANES; row++) {
        uint32_t active = access->mask >> (row * width) & row_mask;
        if (!active)
            continue;
        uint32_t low = (uint32_t)__builtin_ctz(active);
        uint32_t high = 31 - (uint32_t)__builtin_clz(active);
        uint64_t begin = access->base + (uint64_t)(row * access->step_y);
        uint64_t first = begin + (uint64_t)(low * access->step_x);
        uint64_t last = begin + (uint64_t)(high * access->step_x) + access->bytes - 1;
        count = add_run(lines, count, first, last, unit);
    }
    return count;
}

static bool is_gapless(uint32_t mask)
{
    uint32_t low = mask & -mask;
    return ((mask + low) & mask) == 0;
}

/* Lanes so far apart that none shares a line with another. */
static uint32_t coalesce_apart(const struct warp_access *access, struct warp_unit unit,
                               struct warp_line *lines)
{
    uint32_t count = 0, last = (UINT32_C(1) << (unit.line_shift - unit.sector_shift)) - 1;
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint64_t lane = (uint64_t)__builtin_ctz(rest);
        uint64_t address = access->base + lane * (uint64_t)access->step_x;
        lines[count++] = (struct warp_line){address >> unit.line_shift,
                                            UINT32_C(1) << (address >> unit.sector_shift & last)};
    }
    return count;
}

static uint64_t address_of(const struct warp_access *access, uint32_t lane)
{
    uint32_t row_shift = (uint32_t)__builtin_ctz(access->lanes_x);
    if (access->listed)
        return access->addresses[lane];
    return access->base + (lane & (access->lanes_x - 1)) * (uint64_t)access->step_x +
           (lane >> row_shift) * (uint64_t)access->step_y;
}

/* Any lanes. `seen` tells for the lowest bits of a line's number whether one with them is there. */
static uint32_t coalesce_any(const struct warp_access *access, struct warp_unit unit,
                             struct warp_line *lines)
{
    enum { SEEN = 64 };
    uint8_t seen[SEEN] = {0};
    uint32_t count = 0, last = (UINT32_C(1) << (unit.line_shift - unit.sector_shift)) - 1;
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        uint64_t address = address_of(access, (uint32_t)__builtin_ctz(rest));
        uint64_t number = address >> unit.line_shift;
        uint32_t bit = UINT32_C(1) << (address >> unit.sector_shift & last);
        uint8_t *at = &seen[number % SEEN];
        if (*at && lines[*at - 1].number == number) {
            lines[*at - 1].sectors |= bit;
            continue;
        }
        if (*at)
            count = warp_line_add(lines, count, number, bit);
        else
            lines[count++] = (struct warp_line){number, bit};
        *at = (uint8_t)count;
    }
    return count;
}

uint32_t warp_coalesce(const struct warp_access *access, struct warp_unit unit,
                       struct warp_line out_lines[WARP_LANES])
{
    bool near = access->step_x == 0 || access->step_x == access->bytes;
    if (!access->listed && near && access->mask == UINT32_MAX && access->lanes_x == WARP_LANES) {
        uint64_t last = access->base + (WARP_LANES - 1) * (uint64_t)access->step_x;
        return add_run(out_lines, 0, access->base, last + access->bytes - 1, unit);
    }
    if (!access->listed && near && (is_gapless(access->mask) || access->step_x == 0))
        return coalesce_rows(access, unit, out_lines);
    if (!access->listed && access->lanes_x == WARP_LANES &&
        access->step_x >= INT64_C(1) << unit.line_shift)
        return coalesce_apart(access, unit, out_lines);
    return coalesce_any(access, unit, out_lines);
}
