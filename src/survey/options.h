/* The command line of gpumemtopo-survey: flags into a struct, and the text of --help. */
#ifndef GPUMEMTOPO_SURVEY_OPTIONS_H
#define GPUMEMTOPO_SURVEY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "probes/probes.h"

enum survey_action { SURVEY_RUN, SURVEY_HELP, SURVEY_VERSION, SURVEY_LIST_PROBES };

enum { SURVEY_WORLD_MAX = 16 };

/* Strings point into argv. NULL: not given. */
struct survey_options {
    enum survey_action action;
    const char *output;
    const char *html;
    const char *config;
    const char *reference;
    const char *baseline;
    const char *world[SURVEY_WORLD_MAX]; /* files, in the order given */
    size_t world_count;
    const char *probes;
    const char *simulate;
    const char *record;
    const char *spool;
    const char *replay;
    enum probe_profile profile;
    bool measure_busy; /* also measure GPUs on which other processes compute */
    bool profile_given, seed_given, busy_given;
    double load_s; /* 0: no load; below 0: as the profile says */
    bool load_one;
    double time_limit_s; /* 0: use the one of the configuration */
    uint64_t seed;
    bool quiet;
    bool verbose;
    bool no_progress;
    bool no_mpi;    /* every task surveys alone */
    bool anonymous; /* write pseudonyms instead of names */
};

/* Reads argv[1..]. Sets the defaults first. -EINVAL with a one-line message, which suggests the
 * nearest flag for a misspelt one; out_options is untouched on failure. */
int survey_options_parse(int argc, char *const *argv, struct survey_options *out_options,
                         struct err *err);

/* Appends the help, made from the same table that the parser reads. */
void survey_options_help(struct strbuf *out_text);

#endif
