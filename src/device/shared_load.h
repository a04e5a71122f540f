/* Loads of shared memory: one block on one SM, whose warps all load at once. Each lane follows a
 * chain of its own, so that a warp's next load begins when all its lanes have their word.
 *
 * Lane l of warp w loads the words at (w mod 8) KiB + l * lane_stride_bytes again and again: which
 * banks its lanes meet in is the same in every load and every warp. */
#ifndef GPUMEMTOPO_DEVICE_SHARED_LOAD_H
#define GPUMEMTOPO_DEVICE_SHARED_LOAD_H

#include <stdint.h>

#include "base/err.h"

struct device;

enum {
    SHARED_LOAD_LANES_MAX = 32,
    SHARED_LOAD_WARPS_MAX = 32,
    SHARED_LOAD_WIDTH_MAX = 16,
    SHARED_LOAD_COUNT_MAX = 1 << 20,
    SHARED_LOAD_PLACES = 8, /* of warps */
    SHARED_LOAD_PLACE_BYTES = 1024,
};

struct device_shared_load {
    uint32_t warps;             /* of the block */
    uint32_t lanes;             /* of each warp that load; the others do nothing */
    uint32_t lane_stride_bytes; /* a multiple of width_bytes; 0: all lanes the same word */
    uint32_t width_bytes;       /* of one load: 4, 8 or 16 */
    uint32_t loads;             /* of each lane: a multiple of SHARED_LOAD_UNROLL */
};
enum { SHARED_LOAD_UNROLL = 16 };

struct device_shared_load_answer {
    uint64_t cycles; /* of all loads of the median warp, by the clock of the SM */
};

/* Where the words of a warp begin. */
static inline uint32_t device_shared_load_place(uint32_t warp)
{
    return warp % SHARED_LOAD_PLACES * SHARED_LOAD_PLACE_BYTES;
}

/* The end of the words that are loaded. */
static inline uint64_t device_shared_load_bytes(const struct device_shared_load *load)
{
    uint32_t places = load->warps < SHARED_LOAD_PLACES ? load->warps : SHARED_LOAD_PLACES;
    return device_shared_load_place(places - 1) +
           (uint64_t)(load->lanes - 1) * load->lane_stride_bytes + load->width_bytes;
}

/* The answer of warps that took so long: the median, since a disturbance of one warp does not
 * count. Sorts them. */
uint64_t device_shared_load_median(uint64_t *cycles, uint32_t warps);

/* -EINVAL for a request that no backend could execute, -ENOSYS if the device has no such request,
 * -ENOTSUP for a GPU without shared memory. */
int device_load_shared(struct device *device, const struct device_shared_load *load,
                       struct device_shared_load_answer *out_answer, struct err *err);

#endif
