/* Where the accesses of warps come from if not from a row of the table of kernels. */
#ifndef GPUMEMTOPO_PREDICT_ACCESS_SOURCE_H
#define GPUMEMTOPO_PREDICT_ACCESS_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "predict/warp.h"

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
