/* What rank 0 needs before anything is measured. */
#ifndef GPUMEMTOPO_SURVEY_PREPARATION_H
#define GPUMEMTOPO_SURVEY_PREPARATION_H

#include "base/err.h"
#include "report/basis.h"
#include "survey/config.h"
#include "survey/judging.h"
#include "survey/options.h"
#include "survey/spooling.h"

struct record;
struct recording;

struct preparation_input {
    const struct survey_options *options;
    const struct record *record; /* that is replayed; NULL: none */
    int argc;
    char *const *argv;
    const struct comm *comm;
};

struct preparation {
    struct survey_config config;
    struct report_basis basis;
    struct recording *recording; /* NULL: none */
    struct spooling spooling;
    struct judge_basis judge_basis; /* this one and the next: the caller's to connect */
    struct judging judging;
    char default_output[128];
    const char *output;
};

/* Checks the outputs, claims the default one, reads the inputs, begins record and spool.
 * `out` points into itself and stays where it is; preparation_fini also after a failure. -EINVAL
 * and the like with text: nothing was measured yet. */
int preparation_begin(const struct preparation_input *input, struct preparation *out,
                      struct err *err);

void preparation_fini(struct preparation *preparation);

#endif
