/* The inventory of a survey that has no rank 0 to write it: the last process that leaves makes it
 * from the spool. */
#ifndef GPUMEMTOPO_SURVEY_START_LAST_OUT_H
#define GPUMEMTOPO_SURVEY_START_LAST_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "survey/exit_code.h"
#include "survey/options.h"

struct last_out {
    const char *folder; /* of the spool */
    const char *owner;  /* the file that its processes lock */
    int rank;
    const struct survey_options *options;
    bool orphans; /* a rank 0 is lost: it may have begun to write into a pipe or device already */
    size_t tasks; /* without MPI: so many plans must be there first; 0: it does not matter */
};

enum last_out_state {
    LAST_OUT_OTHERS, /* other ranks hold locks */
    LAST_OUT_RANK_0, /* only rank 0 is there (and stands still, if it is silent) */
    LAST_OUT_EARLY,  /* nobody measures, but some tasks have not begun */
    LAST_OUT_DONE,   /* another process has made the inventory */
    LAST_OUT_MADE,   /* this one has, and said so */
};

/* Tries once; this process must have closed its own lock. *out_code: with LAST_OUT_MADE. A negative
 * errno when the inventory could not be made: the spool stays. */
int last_out_try(const struct last_out *input, enum survey_exit *out_code, struct err *err);

#endif
