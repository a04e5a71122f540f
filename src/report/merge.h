/* One inventory out of spool files and inventories, judged anew as one fleet. */
#ifndef GPUMEMTOPO_REPORT_MERGE_H
#define GPUMEMTOPO_REPORT_MERGE_H

#include <stddef.h>

#include "base/err.h"
#include "inventory/inventory.h"
#include "report/basis.h"

struct report_merge;

/* note: called with each thing that people should know, one line. */
typedef void report_note(void *user, const char *text);
int report_merge_create(report_note *note, void *user, struct report_merge **out_merge,
                        struct err *err);
void report_merge_destroy(struct report_merge *merge); /* accepts NULL */

/* Takes one file in. One that is damaged, foreign or from a newer program is noted and counted as
 * skipped. 0 or -ENOMEM. */
int report_merge_add(struct report_merge *merge, const char *path, struct err *err);

/* The same for each file of a folder; survey: only spool files of this one (NULL: all there is).
 * -errno when the folder cannot be read. */
int report_merge_add_folder(struct report_merge *merge, const char *folder, const char *survey,
                            struct err *err);

struct report_merge_end {
    size_t files;   /* taken in */
    size_t skipped; /* not */
};
struct report_merge_end report_merge_end(const struct report_merge *merge);

/* Judges and fills `inventory`, which is empty, exit code included. basis: of a survey when none is
 * in basis->config. command: for the header where the files are of several surveys. Once, and the
 * merge is used up by it. */
struct report_merge_request {
    struct report_basis *basis;
    bool own_config; /* judge by basis->config, not as the survey would have */
    bool ends_now;   /* the survey lasted until now, not until its last result */
    const char *version;
    char *const *command;
    size_t command_count;
};
int report_merge_finish(struct report_merge *merge, const struct report_merge_request *request,
                        struct inventory *inventory, struct err *err);

#endif
