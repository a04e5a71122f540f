/* A folder that keeps inventories by date, and which of them are worth keeping. */
#ifndef GPUMEMTOPO_REPORT_HISTORY_HISTORY_STORE_H
#define GPUMEMTOPO_REPORT_HISTORY_HISTORY_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "report/history/history.h"

/* Opened by one writer or by any number of readers at a time. Zero-initialised is closed. */
struct history_store {
    const char *folder; /* not owned */
    int fd;             /* of the lock; -1: a folder without one */
    bool writes;
    char **files; /* paths, by time */
    size_t file_count;
    size_t others; /* files in the folder that are not of the store */
};

/* Locks the folder; a writer makes it if it is not there. Waits for other processes, and says so.
 * -ENOENT and other errors of the system. folder must outlive the store. */
int history_store_open(const char *folder, bool writes, struct history_store *out_store,
                       struct err *err);

/* Adds the text of an inventory, complete or not at all. The name follows from `generated` and from
 * the text, so the same inventory is kept once; *out_is_new is false then. -EINVAL if `generated`
 * is no time in UTC. */
int history_store_add(struct history_store *store, const char *generated, const char *text,
                      size_t length, bool *out_is_new, struct err *err);

/* Fills `files` and `others`. A writer also removes what an interrupted writer left. */
int history_store_list(struct history_store *store, struct err *err);

/* Removes one of `files` from the folder. */
int history_store_remove(const char *path, struct err *err);

void history_store_close(struct history_store *store);

/* All of the last days count, then one of each week, then one of each month. Time counts from the
 * newest survey, so that a store that nobody feeds loses nothing. */
enum { HISTORY_THIN_DAYS = 14, HISTORY_THIN_WEEKS = 26 };

/* Sets out_keep, by survey. The first and the last one are kept, and both sides of each change: a
 * GPU became or ceased to be an outlier or unmeasured, a card moved, is new or gone. To be called
 * after history_finish. What is left of a thinned history is kept when it is thinned again. */
void history_thin(const struct history *history, bool *out_keep);

#endif
