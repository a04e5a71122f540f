/* Makes the inventory of a survey without a rank 0. The last process that leaves makes it from the
 * spool. */
#ifndef GPUMEMTOPO_SURVEY_START_LAST_OUT_H
#define GPUMEMTOPO_SURVEY_START_LAST_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "survey/exit_code.h"
#include "survey/options.h"

struct last_out {
    const char *folder; /* of the spool */
    const char *owner;  /* its lock file */
    int rank;
    const struct survey_options *options;
    bool orphans; /* rank 0 is lost; it may have begun to write to a pipe or device */
    size_t tasks; /* without MPI: wait until the spool has this many plans; 0: do not wait */
};

enum last_out_state {
    LAST_OUT_OTHERS, /* other ranks hold locks */
    LAST_OUT_RANK_0, /* only rank 0 holds a lock (if it is silent, it hangs) */
    LAST_OUT_EARLY,  /* no process measures, but some tasks have not begun */
    LAST_OUT_DONE,   /* another process has made the inventory */
    LAST_OUT_MADE,   /* this process has made it, and printed the summary */
};

/* Tries once. This process must have closed its own lock. *out_code: set with LAST_OUT_MADE,
 * and with LAST_OUT_DONE if ranks are lost. A negative errno if the inventory could not be made;
 * the spooled results are kept. */
int last_out_try(const struct last_out *input, enum survey_exit *out_code, struct err *err);

#endif
