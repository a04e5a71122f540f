/* From what was collected to the inventory file, the summary and the exit code. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_EMIT_H
#define GPUMEMTOPO_SURVEY_ROOT_EMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "device/replay/record_read.h"
#include "report/text.h"
#include "survey/exit_code.h"
#include "survey/options.h"
#include "survey/root/judging.h"
#include "survey/root/root.h"

/* 4 wins over 3. */
enum survey_exit emit_exit_code(size_t unmeasured, size_t lost_ranks, size_t outliers);

/* Refuses what would replace a file that the survey reads; `output` is the inventory's. A baseline
 * may be replaced: the new inventory is one, too. -EINVAL. */
int emit_check_inputs(const struct survey_options *options, const char *output, struct err *err);

/* Where an inventory goes, and what is said of it. */
struct emit_target {
    const struct survey_options *options;
    const char *output;                        /* path, or "-" */
    const struct judge_references *references; /* for the page; NULL: none */
    const struct gpu_result *slowest;          /* whose timings are told; NULL: nobody's */
    bool unrecorded;                           /* a record was asked for and could not be written */
    bool unspooled;                            /* a spool has not all of it */
};

/* Writes the inventory and the page, reads the inventory back, and says the summary. *out_code: of
 * the process; the inventory's own, or 1 where that is 0 and a record or page was asked for and
 * could not be written. An inventory that can neither be written nor made of the spool is put into
 * TMPDIR, and that is said; an error all the same. */
int emit_write(const struct emit_target *target, const struct inventory *inventory,
               enum survey_exit *out_code, struct err *err);

struct emit_input {
    struct emit_target target;
    int argc;
    char *const *argv;
    int ranks;
    double wall_s;
    struct root_view view;
    struct judging *judging;       /* has all results */
    const struct record *replayed; /* NULL: measured */
};

/* Judges, fills the inventory and writes it as above. */
int emit_inventory(const struct emit_input *input, enum survey_exit *out_code, struct err *err);

#endif
