/* The memories of a model for drawing: which of them share an array, and the text for each. */
#ifndef GPUMEMTOPO_REPORT_HIERARCHY_H
#define GPUMEMTOPO_REPORT_HIERARCHY_H

#include "base/str.h"
#include "inventory/inventory.h"

enum { HIERARCHY_LINES_MAX = 8, HIERARCHY_BLOCKS_MAX = 5 };

/* Lines are short text without control characters; figures without a value say why. */
struct hierarchy_memory {
    const char *key;  /* "l1_data" */
    const char *name; /* "L1 data" */
    char *lines[HIERARCHY_LINES_MAX];
    size_t line_count;
};

/* Memories of an SM that share storage are drawn as one block. */
struct hierarchy_block {
    struct hierarchy_memory memories[HIERARCHY_BLOCKS_MAX];
    size_t count;
};

/* A memory that no probe measured has no lines. */
struct hierarchy {
    struct hierarchy_block blocks[HIERARCHY_BLOCKS_MAX]; /* of one SM */
    size_t block_count;
    struct hierarchy_memory constant_l15, l2, main, host;
    char *sm_title;    /* "SM, one of 132, 1980 MHz" */
    double l15_sms;    /* SMs that share a constant L1.5; NaN: unknown */
    unsigned l2_parts; /* 1 if unknown */
};

/* Released with report_hierarchy_fini. */
void report_hierarchy_init(struct hierarchy *hierarchy, const struct inventory_model *model);
void report_hierarchy_fini(struct hierarchy *hierarchy);

#endif
