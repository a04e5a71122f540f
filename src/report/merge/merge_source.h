/* One file of a merge: a spool file or an inventory. Several files may have the same GPU; the
 * newest entry is used, of a survey that was interrupted only if there is no other. */
#ifndef GPUMEMTOPO_REPORT_MERGE_MERGE_SOURCE_H
#define GPUMEMTOPO_REPORT_MERGE_MERGE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inventory/gpu_result.h"
#include "inventory/inventory.h"
#include "inventory/wire/spool.h"
#include "judge/judge.h"
#include "report/merge/merge.h"

/* The entry of one file for one GPU. Strings are borrowed from the file. */
struct merge_entry {
    const char *uuid;
    uint64_t time_ms;
    size_t source;                   /* index of the file */
    const char *survey;              /* name of the survey, for a spool file; NULL: an inventory */
    bool planned;                    /* only planned, no result */
    bool cut_short;                  /* the survey was interrupted before it was measured */
    const struct gpu_result *result; /* for spool files */
    size_t place;                    /* for inventories: index in its gpus */
    bool dropped;
    bool overtaken; /* dropped for the spool file of a later survey */
};

struct merge_pool {
    struct merge_entry *entries;
    size_t count, capacity;
};

void merge_pool_add(struct merge_pool *pool, const struct merge_entry *entry);

/* Marks all entries of each GPU except the newest that is not cut short as dropped. `report` is
 * called for each result dropped for that of another file; not for plans. */
void merge_pool_settle(struct merge_pool *pool,
                       void (*report)(void *user, const struct merge_entry *kept,
                                      const struct merge_entry *dropped),
                       void *user);
void merge_pool_fini(struct merge_pool *pool);

enum merge_kind { MERGE_GPU, MERGE_SURVEY, MERGE_INVENTORY };

struct merge_source {
    char *name;
    enum merge_kind kind;
    struct spool_file spool;    /* MERGE_GPU, MERGE_SURVEY */
    struct inventory inventory; /* MERGE_INVENTORY */
    uint64_t time_ms;
    bool again; /* another file is used instead: it describes the same survey, or a later one with
                   the same GPUs */
};

/* Fails with an error that says what is wrong with the file. */
int merge_source_read(const char *path, struct merge_source *out_source, struct err *err);
void merge_source_fini(struct merge_source *source);

/* Adds the GPUs of the file to the pool. */
void merge_source_pool(struct merge_source *source, size_t number, struct merge_pool *pool);

/* merge_head.c: header, counts, nodes and ranks of a merged inventory. The ranks of each survey
 * count once, and a rank whose GPUs are in another file is not lost. */

/* Marks all plans and inventories of a survey but one, if several files describe it. */
void merge_find_again(struct merge_source *sources, size_t count);

/* Marks plans whose GPUs were all measured by a later survey, for folders that are used repeatedly.
 * The pool must be settled. */
void merge_find_overtaken(struct merge_source *sources, size_t count,
                          const struct merge_pool *pool);

/* Called before judging: fills in header, counts and nodes without a GPU. The pool must be settled.
 */
void merge_head(const struct merge_source *sources, size_t count, const struct merge_pool *pool,
                const struct report_merge_request *request, struct inventory *inventory);

/* merge_earlier.c: adds findings of inventories to the judge that no later result of the GPU looked
 * for, and returns how many. The pool must be settled, and no GPU of an inventory removed. */
size_t merge_add_earlier(const struct merge_source *sources, size_t count,
                         const struct merge_pool *pool, struct judge *judge);

/* Called after judging: adds the ranks whose GPUs are not known. */
void merge_unknown(const struct merge_source *sources, size_t count, struct inventory *inventory);

#endif
