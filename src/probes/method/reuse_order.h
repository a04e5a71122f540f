/* LRU or FIFO: what is still there after some lines were used again and new ones came. */
#ifndef GPUMEMTOPO_PROBES_METHOD_REUSE_ORDER_H
#define GPUMEMTOPO_PROBES_METHOD_REUSE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Lines of a set are numbered. Lines 0 .. ways - 1 are loaded, then again first .. first + again -
 * 1, then the new ones ways .. ways + more - 1. Then lines 0 .. timed - 1 are timed. */
struct reuse_pattern {
    uint32_t ways;
    uint32_t first, again, more, timed;
};

/* Which timed lines miss in a set of LRU, or of FIFO. 0 or -ENOMEM. */
int reuse_order_predict(const struct reuse_pattern *pattern, bool fifo, bool *out_missed);

#endif
