/* The command line of gpumemtopo-survey: flags into a struct, and the text of --help. */
#ifndef GPUMEMTOPO_SURVEY_OPTIONS_H
#define GPUMEMTOPO_SURVEY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/options.h"
#include "base/str.h"
#include "probes/probes.h"

enum survey_action { SURVEY_RUN, SURVEY_HELP, SURVEY_VERSION, SURVEY_LIST_PROBES, SURVEY_SWEEPS };

enum { SURVEY_WORLD_MAX = 16 };

/* What to do with GPUs on which other processes compute. */
enum survey_busy { SURVEY_BUSY_SKIP, SURVEY_BUSY_MEASURE };

/* Strings point into argv. NULL: not given. */
struct survey_options {
    enum survey_action action;
    const char *output;
    const char *html;
    bool page; /* beside the inventory, unless html says where */
    const char *config;
    const char *reference;
    const char *baseline;
    struct option_list world;
    const char *probes;
    const char *simulate;
    const char *record;
    const char *spool;
    const char *replay;
    enum probe_profile profile;
    enum survey_busy busy;
    bool profile_given, seed_given, busy_given;
    double load_s; /* 0: no load; below 0: as the profile says */
    bool load_one;
    double time_limit_s; /* 0: use the one of the configuration */
    uint64_t seed;
    bool quiet;
    bool verbose;
    bool no_progress;
    bool no_mpi; /* every task surveys alone */
    const char *mpi_library;
    bool anonymous; /* write pseudonyms instead of names */
    bool list_probes, version;
    const char *sweeps; /* a file or folder of sweeps to analyse */
    const char *help;   /* the form of the help (options_print); NULL: none */
};

/* Reads argv[1..]. Sets the defaults first. -EINVAL with a one-line message, which suggests the
 * nearest flag for a misspelt one; out_options is untouched on failure. */
int survey_options_parse(int argc, char **argv, struct survey_options *out_options,
                         struct err *err);

/* Appends the help in this form (options_print), made from the same table that the parser reads. */
void survey_options_help(const char *form, struct strbuf *out_text);

#endif
