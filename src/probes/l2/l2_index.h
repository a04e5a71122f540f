/* Whether lines a power of two apart share few sets of L2. */
#ifndef GPUMEMTOPO_PROBES_L2_L2_INDEX_H
#define GPUMEMTOPO_PROBES_L2_L2_INDEX_H

#include "probes/probe.h"

enum l2_index_kind {
    L2_INDEX_UNKNOWN,
    L2_INDEX_REGULAR,     /* lines some power of two apart evict each other */
    L2_INDEX_NOT_BY_BITS, /* lines any power of two apart stay, as any other lines do */
};

struct l2_index {
    enum l2_index_kind kind;
    uint64_t stride_bytes; /* regular: the smallest; not by bits: the largest */
    uint64_t lines;        /* that were loaded at each stride */
    uint32_t n;            /* timed loads */
};

/* The study must have its line and its capacity. */
int l2_measure_index(struct probe_context *context, const struct l2_study *l2,
                     struct l2_index *out_index, struct err *err);

#endif
