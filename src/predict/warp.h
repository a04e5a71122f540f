/* One load or store of a warp, and the lines and sectors that it touches. */
#ifndef GPUMEMTOPO_PREDICT_WARP_H
#define GPUMEMTOPO_PREDICT_WARP_H

#include <stdbool.h>
#include <stdint.h>

enum { WARP_LANES = 32 };

/* Lane i accesses base + (i % lanes_x) step_x + (i / lanes_x) step_y, or addresses[i]. */
struct warp_access {
    bool store;
    bool listed;
    uint32_t mask; /* active lanes */
    uint32_t bytes;
    uint32_t lanes_x;
    uint64_t base;
    int64_t step_x, step_y;
    uint64_t addresses[WARP_LANES]; /* if listed */
};

/* One line and its sectors. */
struct warp_line {
    uint64_t number; /* address / line size */
    uint32_t sectors;
};

/* Sizes in bytes, powers of two. */
struct warp_unit {
    uint32_t line_shift, sector_shift;
};

/* The lines of an access, each once, in the order of the lanes. Returns their number. An element
 * does not cross a line. */
uint32_t warp_coalesce(const struct warp_access *access, struct warp_unit unit,
                       struct warp_line out_lines[WARP_LANES]);

#endif
