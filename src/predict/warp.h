/* The accesses of warps, where they come from, and the lines and sectors that they touch. */
#ifndef GPUMEMTOPO_PREDICT_WARP_H
#define GPUMEMTOPO_PREDICT_WARP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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

/* Several threads may call the functions, each for warps of its own. After an error every warp has
 * ended, and `failure` tells it: a run can then stop at once. */
struct access_source {
    /* The place of a warp in its accesses; NULL: it has none. */
    void *(*begin)(struct access_source *source, uint64_t block, uint32_t warp);
    /* Its next access; false: it has ended, and the place is no longer valid. */
    bool (*next)(struct access_source *source, void *place, struct warp_access *out_access);
    /* The first block from `block` on that has accesses, or the number of blocks. */
    uint64_t (*skip)(struct access_source *source, uint64_t block);
    /* 0, or the error. */
    int (*failure)(const struct access_source *source, struct err *err);
    /* After a whole run: 0 if the source has so many accesses, or the error. */
    int (*finish)(const struct access_source *source, uint64_t accesses, uint64_t loads,
                  struct err *err);
};

#endif
