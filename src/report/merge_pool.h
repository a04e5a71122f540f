/* The GPUs of several files, each of which may tell of the same one: who counts. */
#ifndef GPUMEMTOPO_REPORT_MERGE_POOL_H
#define GPUMEMTOPO_REPORT_MERGE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inventory/gpu_result.h"

/* One file's word on one GPU. Strings are borrowed from the file. */
struct merge_entry {
    const char *uuid;
    uint64_t time_ms;
    size_t source;                   /* which file */
    const char *survey;              /* which survey's spool; NULL: an inventory */
    bool planned;                    /* known only as to be measured */
    const struct gpu_result *result; /* spool */
    size_t place;                    /* inventory: in its gpus */
    bool dropped;
    bool overtaken; /* dropped, and it is a later survey's spool that counts */
};

struct merge_pool {
    struct merge_entry *entries;
    size_t count, capacity;
};

int merge_pool_add(struct merge_pool *pool, const struct merge_entry *entry); /* 0, -ENOMEM */

/* Marks all entries but the newest of each GPU as dropped. `said` is called where two files tell of
 * one; a plan is no second word. */
void merge_pool_settle(struct merge_pool *pool,
                       void (*said)(void *user, const struct merge_entry *kept,
                                    const struct merge_entry *dropped),
                       void *user);
void merge_pool_fini(struct merge_pool *pool);

#endif
