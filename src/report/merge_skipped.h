/* Files that a merge could not read. A GPU whose spool file is among them is failed, not lost. */
#ifndef GPUMEMTOPO_REPORT_MERGE_SKIPPED_H
#define GPUMEMTOPO_REPORT_MERGE_SKIPPED_H

#include "report/merge_source.h"

/* Zero-initialised is empty. */
struct merge_skipped {
    char **paths;
    size_t count, capacity;
};

int merge_skipped_add(struct merge_skipped *skipped, const char *path); /* 0, -ENOMEM */
void merge_skipped_fini(struct merge_skipped *skipped);

/* Sets GPUs of the plan whose spool file was skipped to failed, with that as reason. The plan must
 * be in the pool. 0 or -ENOMEM. */
int merge_skipped_blame(struct merge_skipped *skipped, struct merge_source *plan);

#endif
