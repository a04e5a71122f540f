/* The levels of TLBs: how many entries each has, what an entry covers, what a miss costs, and their
 * sets. */
#ifndef GPUMEMTOPO_PROBES_TLB_TLB_LEVELS_H
#define GPUMEMTOPO_PROBES_TLB_TLB_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "probes/tlb/page_chase.h"

enum { TLB_LEVELS_MAX = 4, TLB_SWEEP_MAX = 40 };

/* A rise of the latency with the number of pages. Cycles are without those of earlier levels. */
struct tlb_level {
    uint64_t hit_pages;  /* so many do not show it */
    uint64_t miss_pages; /* so many show it whole */
    uint64_t far_pages;  /* up to so many no other level begins */
    uint64_t span_bytes; /* that an entry covers; 0: not known */
    double base_cycles;  /* mean latency before it */
    double miss_cycles;  /* what it adds to a load */
    double page_cycles;  /* by how much pages in turn take longer, if all miss */
    double error;        /* of miss_cycles */
};

struct tlb_levels {
    struct page_chase chase;
    struct tlb_level levels[TLB_LEVELS_MAX];
    size_t count;
    uint64_t pages;         /* the most that were chased, all memory between them */
    double smallest_cycles; /* a rise of less is not seen, or not told from other effects */
};

/* Finds the levels: a sweep over the number of pages, spread over all memory; then the number and
 * the size of the pages of each. */
int tlb_levels_find(struct probe_context *context, struct tlb_levels *out_levels, struct err *err);

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
    double
        rise_cycles; /* that neighbouring pages take longer, if all miss, than those that all hit */
    bool shown;      /* neighbouring pages show the level too */
    bool clear;      /* it is a level, and no other effect */
    uint32_t n;      /* numbers of pages that were chased */
    char doubt[TLB_DOUBT_MAX]; /* empty: none */
};

int tlb_sets_measure(struct probe_context *context, const struct tlb_levels *levels, size_t number,
                     struct tlb_sets *out_sets, struct err *err);

#endif
