/* The sets of a TLB, from the number of pages that miss when there is one page too many, two, ...
 */
#ifndef GPUMEMTOPO_PROBES_METHOD_TLB_SETS_H
#define GPUMEMTOPO_PROBES_METHOD_TLB_SETS_H

#include "probes/method/tlb_levels.h"

enum { TLB_DOUBT_MAX = 120 };

enum tlb_policy {
    TLB_UNKNOWN,
    TLB_OLDEST, /* LRU or FIFO: a chase in order does not tell them apart */
    TLB_RANDOM,
};

struct tlb_sets {
    uint64_t entries; /* 0: not told */
    uint64_t sets;    /* 0: not told */
    uint64_t ways;    /* of equal sets; of unequal ones the smallest */
    uint64_t largest; /* the largest set; the same as `ways` if they are equal */
    enum tlb_policy policy;
    bool shown;                /* neighbouring pages show the level too */
    bool clear;                /* it is a level, and no other effect */
    uint32_t n;                /* numbers of pages that were chased */
    char doubt[TLB_DOUBT_MAX]; /* empty: none */
};

int tlb_sets_measure(struct probe_context *context, const struct tlb_levels *levels, size_t number,
                     struct tlb_sets *out_sets, struct err *err);

#endif
