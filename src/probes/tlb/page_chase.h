/* Chases over pages: one line of each page, all of them in L2, so that only the TLBs change. */
#ifndef GPUMEMTOPO_PROBES_TLB_PAGE_CHASE_H
#define GPUMEMTOPO_PROBES_TLB_PAGE_CHASE_H

#include <stdint.h>

#include "probes/method/pool.h"
#include "probes/probe.h"

enum { PAGE_CHASE_LINE_BYTES = 128, PAGE_CHASE_PAGES_MAX = 32768, PAGE_CHASE_DRIFT_LINES = 6 };

/* The memory that is chased, and how many of its lines L2 holds for certain. */
struct page_chase {
    uint64_t room_bytes;
    uint64_t pages_max;
};

/* What a chase saw; timer included. */
struct page_cycles {
    struct pool loads;
    double mean;
    double error; /* of the mean: lines differ by their place in L2 */
};

/* All memory that jobs may reach; the usual part of it if the GPU is not to be had alone. */
int page_chase_open(struct probe_context *context, struct page_chase *out_chase, struct err *err);

/* How many pages fit at this stride. */
uint64_t page_chase_room(const struct page_chase *chase, uint64_t stride);

/* The largest stride at which `pages` elements fit: a prime number of pages, as GPUs have them, so
 * that the pages use all sets of a TLB alike. */
uint64_t page_chase_stride(const struct page_chase *chase, uint64_t pages);

/* The array of `pages` elements, one line each, `stride` bytes apart and an odd number of lines
 * more, less than PAGE_CHASE_DRIFT_LINES: so all sets of L2 are used. number: which of the lines of
 * a page, and how many lines more. */
struct device_array page_chase_array(uint64_t stride, uint64_t pages, uint64_t number);

/* Times `pages` pages again and again, on SM 0, at so many lines of each page that their places
 * average out. */
int page_chase_measure(struct probe_context *context, uint64_t stride, uint64_t pages,
                       struct page_cycles *out_cycles, struct err *err);

#endif
