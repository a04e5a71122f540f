/* One file of a merge: a spool file or an inventory. */
#ifndef GPUMEMTOPO_REPORT_MERGE_SOURCE_H
#define GPUMEMTOPO_REPORT_MERGE_SOURCE_H

#include "base/err.h"
#include "inventory/inventory.h"
#include "inventory/wire/spool.h"
#include "report/merge_pool.h"

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

/* -ENOMEM, or an error that says what is wrong with the file. */
int merge_source_read(const char *path, struct merge_source *out_source, struct err *err);
void merge_source_fini(struct merge_source *source);

/* Adds the GPUs of the file to the pool. 0 or -ENOMEM. */
int merge_source_pool(struct merge_source *source, size_t number, struct merge_pool *pool);

#endif
