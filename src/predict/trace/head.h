/* What a trace says about itself: the launch in its first page, what it holds in its last one. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_HEAD_H
#define GPUMEMTOPO_PREDICT_TRACE_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { TRACE_VERSION = 1, TRACE_NAME_MAX = 192, TRACE_MAKER_MAX = 32, TRACE_THREADS_MAX = 1024 };

enum { TRACE_HEAD_GRID_AT = 24 }; /* byte of a file where the extents of the grid are */

/* Addresses are below this; so are those of all GPUs. */
#define TRACE_ADDRESS_END (UINT64_C(1) << 56)
#define TRACE_BLOCKS_MAX UINT32_MAX

struct trace_head {
    char name[TRACE_NAME_MAX];   /* of the kernel */
    char maker[TRACE_MAKER_MAX]; /* where the accesses come from: "kernel", "nvbit", "csv" */
    uint32_t grid[3], block[3];  /* blocks; threads of a block */
    uint64_t shared_bytes;       /* of a block */
    uint32_t registers;          /* of a thread; 0: not known */
    bool has_pc;                 /* otherwise a pc is the number of an opcode */
    uint32_t page_bytes;
};

uint64_t trace_head_blocks(const struct trace_head *head);
uint32_t trace_head_warps(const struct trace_head *head); /* of a block */

/* 0 or -EINVAL: what makes no sense. */
int trace_head_check(const struct trace_head *head, struct err *err);

struct trace_totals {
    uint64_t accesses, loads, lanes; /* lanes: active ones of all accesses */
    uint64_t blocks;                 /* that have accesses */
    uint64_t lowest, highest;        /* addresses: first and last byte */
    uint32_t bytes_max;              /* of a lane's element */
    uint32_t root, pages;            /* first root page; pages of the file */
};

/* Pages of the index: leaves have a position per block, roots a page number per leaf. */
uint64_t trace_head_leaves(const struct trace_head *head);
uint64_t trace_head_roots(const struct trace_head *head);
uint32_t trace_head_leaf_blocks(const struct trace_head *head); /* of one leaf */
uint32_t trace_head_root_leaves(const struct trace_head *head); /* of one root page */

/* The bytes behind the header of the first and the last page. Return how many. */
uint32_t trace_head_put(const struct trace_head *head, uint8_t *out_bytes);
uint32_t trace_head_put_totals(const struct trace_totals *totals, uint8_t *out_bytes);

/* Read them; 0 or -EINVAL. */
int trace_head_get(const uint8_t *payload, uint32_t length, struct trace_head *out_head,
                   struct err *err);
int trace_head_get_totals(const uint8_t *payload, uint32_t length, struct trace_totals *out_totals,
                          struct err *err);

/* The size of pages, from the first TRACE_PAGE_BYTES_MIN bytes of a file, which are not checked
 * yet. -EINVAL: it is no trace, or of another version. */
int trace_head_page_bytes(const uint8_t *beginning, uint32_t *out_bytes, struct err *err);

#endif
