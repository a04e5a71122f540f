/* From what was collected to the inventory file, the summary and the exit code. */
#ifndef GPUMEMTOPO_SURVEY_EMIT_H
#define GPUMEMTOPO_SURVEY_EMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "device/replay/record_read.h"
#include "report/text.h"
#include "survey/judging.h"
#include "survey/options.h"
#include "survey/root.h"
#include "survey/survey.h"

/* 4 wins over 3. */
enum survey_exit emit_exit_code(size_t unmeasured, size_t lost_ranks, size_t outliers);

/* Whether a file could be put at `path` ("-": stdout): its folder is there and writable and it is
 * no folder itself; a file is created beside it and removed. flag: that named it. -EINVAL and the
 * like with text. */
int emit_check_output(const char *flag, const char *path, struct err *err);

/* Refuses what would replace a file that the survey reads; `output` is the inventory's. A baseline
 * may be replaced: the new inventory is one, too. -EINVAL. */
int emit_check_inputs(const struct survey_options *options, const char *output, struct err *err);

struct emit_input {
    const struct survey_options *options;
    const char *output; /* path, or "-" */
    int argc;
    char *const *argv;
    int ranks;
    double wall_s;
    struct root_view view;
    struct judging *judging;       /* has all results that the view says were taken */
    const struct record *replayed; /* NULL: measured */
    struct report_style style;     /* of the summary */
    bool unrecorded;               /* a record was asked for and could not be written */
    bool unspooled;                /* a spool has not all of it */
};

struct emit_result {
    enum survey_exit code; /* of the process: the inventory's, or 1 where that is 0 and a record or
                              page was asked for and could not be written */
    bool page;             /* was asked for and is written */
};

/* Judges, writes the file, reads it back and appends the summary for people. An inventory that can
 * neither be written nor made of the spool is put into TMPDIR, and that is said; an error all the
 * same. */
int emit_inventory(const struct emit_input *input, struct strbuf *out_summary,
                   struct emit_result *out_result, struct err *err);

#endif
