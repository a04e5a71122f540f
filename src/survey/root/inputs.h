/* Checks and reads the inputs of rank 0 before anything is measured. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_INPUTS_H
#define GPUMEMTOPO_SURVEY_ROOT_INPUTS_H

#include "base/err.h"
#include "report/basis.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/rank/spooling.h"
#include "survey/root/judging.h"

struct record;
struct recording;

/* Opens the record that `options` names. Takes seed, profile, probes and --busy from it, unless the
 * command line set them. The strings belong to the record. -EINVAL for a bad file, or for one that
 * needs something this program does not know. */
int inputs_open_record(struct survey_options *options, struct record **out_record, struct err *err);

struct inputs_request {
    const struct survey_options *options;
    const struct record *record; /* the replayed record; NULL: none */
    int argc;
    char *const *argv;
    const struct comm *comm;
};

struct inputs {
    struct survey_config config;
    struct report_basis basis;
    struct recording *recording; /* NULL: none */
    struct spooling spooling;
    struct judge_basis judge_basis; /* the caller fills in this one and the next */
    struct judging judging;
    char default_output[128];
    const char *output;
};

/* Checks the outputs, claims the default output, reads the inputs, begins the record and the spool.
 * `out` points into itself and must not be moved; call inputs_fini also after a failure. -EINVAL
 * and others, with text; nothing has been measured then. */
int inputs_begin(const struct inputs_request *input, struct inputs *out, struct err *err);

void inputs_fini(struct inputs *inputs);

#endif
