/* A model's memories as they are drawn: which of them are one array, and what is written in. */
#ifndef GPUMEMTOPO_REPORT_HIERARCHY_H
#define GPUMEMTOPO_REPORT_HIERARCHY_H

#include "base/str.h"
#include "inventory/inventory.h"

enum { HIERARCHY_LINES_MAX = 6, HIERARCHY_BLOCKS_MAX = 5 };

/* Lines are for people, clean and short; figures that could not be had are named as such. */
struct hierarchy_memory {
    const char *key;  /* "l1_data" */
    const char *name; /* "L1 data" */
    char *lines[HIERARCHY_LINES_MAX];
    size_t line_count;
};

/* Memories of an SM that share storage: drawn as one. */
struct hierarchy_block {
    struct hierarchy_memory memories[HIERARCHY_BLOCKS_MAX];
    size_t count;
};

/* A memory of which nothing was tried has no lines. */
struct hierarchy {
    struct hierarchy_block blocks[HIERARCHY_BLOCKS_MAX]; /* of one SM */
    size_t block_count;
    struct hierarchy_memory constant_l15, l2, main, host;
    char *sm_title;    /* "SM, one of 132, 1980 MHz" */
    double l15_sms;    /* that share a constant L1.5; NaN unknown */
    unsigned l2_parts; /* 1 where unknown */
};

/* 0 or -ENOMEM; released with hierarchy_fini in either case. */
int hierarchy_init(struct hierarchy *hierarchy, const struct inventory_model *model);
void hierarchy_fini(struct hierarchy *hierarchy);

#endif
