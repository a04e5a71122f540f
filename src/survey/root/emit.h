/* Turns the collected results into the inventory file, the summary and the exit code. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_EMIT_H
#define GPUMEMTOPO_SURVEY_ROOT_EMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "device/record/record.h"
#include "report/entries.h"
#include "survey/options.h"
#include "survey/root/judging.h"
#include "survey/root/root.h"
#include "survey/start/exit_file.h"

/* Incomplete (4) takes precedence over outliers (3). */
enum survey_exit emit_exit_code(size_t unmeasured, size_t lost_ranks, bool drain);

/* Refuses outputs that would replace a file that the survey reads; `output` is the path of the
 * inventory. A baseline may be replaced, since the new inventory is one too. -EINVAL. */
int emit_check_inputs(const struct survey_options *options, const char *output, struct err *err);

/* Where an inventory is written, and what is printed about it. */
struct emit_target {
    const struct survey_options *options;
    const char *output;                        /* path, or "-" */
    const struct judge_references *references; /* for the page; NULL: none */
    const struct gpu_result *slowest;          /* the GPU whose timings are printed; NULL: none */
    bool unrecorded;                           /* a record was requested and could not be written */
    bool unspooled;                            /* the spool does not have all results */
};

/* Writes the inventory and the page, reads the inventory back, and prints the summary. *out_code:
 * the exit code of the process. It is the exit code in the inventory, or 1 if that is 0 and a
 * requested record or page could not be written. If the inventory cannot be written, and the spool
 * does not have all results either, it is written to TMPDIR, with a message; that is still an
 * error. */
int emit_write(const struct emit_target *target, const struct inventory *inventory,
               enum survey_exit *out_code, struct err *err);

struct recording;
struct emit_input {
    struct emit_target target;
    int argc;
    char *const *argv;
    int ranks;
    double wall_s;
    struct root_view view;
    struct judging *judging;       /* has all results */
    const struct record *replayed; /* NULL: measured */
    struct recording *recording;   /* gets the pseudonyms of the inventory; NULL: no record */
};

/* Judges, fills the inventory and writes it with emit_write. */
int emit_inventory(const struct emit_input *input, enum survey_exit *out_code, struct err *err);

#endif
