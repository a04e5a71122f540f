/* Makes one inventory from spool files and inventories, judged again as one fleet. */
#ifndef GPUMEMTOPO_REPORT_MERGE_MERGE_H
#define GPUMEMTOPO_REPORT_MERGE_MERGE_H

#include <stddef.h>

#include "base/err.h"
#include "inventory/inventory.h"
#include "report/basis.h"

struct report_merge;

/* Called with each message for the user, one line. */
typedef void report_note(void *user, const char *text);
struct report_merge *report_merge_create(report_note *note, void *user);
void report_merge_destroy(struct report_merge *merge); /* accepts NULL */

/* Adds one file. A file that is damaged, not ours or from a newer program is noted and counted as
 * skipped. */
void report_merge_add(struct report_merge *merge, const char *path);

/* The same for each file of a folder. survey: adds only spool files of this survey; NULL: all
 * files. -errno if the folder cannot be read. */
int report_merge_add_folder(struct report_merge *merge, const char *folder, const char *survey,
                            struct err *err);

struct report_merge_end {
    size_t files;   /* added */
    size_t skipped; /* not added */
};
struct report_merge_end report_merge_end(const struct report_merge *merge);

/* Judges the GPUs and fills `inventory`, which must be empty, including the exit code. Unless
 * own_config is set, basis->config is what the newest survey was judged by. command: for the header
 * if the files are from several surveys. May be called once. */
struct report_merge_request {
    struct report_basis *basis;
    bool own_config; /* judge by basis->config, not by that of the newest survey */
    bool ends_now;   /* the survey lasts until now, not until its last result */
    const char *version;
    char *const *command;
    size_t command_count;
};
int report_merge_finish(struct report_merge *merge, const struct report_merge_request *request,
                        struct inventory *inventory, struct err *err);

#endif
