/* The command line of gpumemtopo-survey, table-driven. */
#include "survey/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

struct option_row;

typedef int option_setter(struct survey_options *options, const struct option_row *row,
                          const char *value, struct err *err);

/* A row without a name is a heading of --help. A flag without help text shares the line of the next
 * flag. */
struct option_row {
    const char *name;
    char letter;
    const char *argument; /* NULL: takes none */
    const char *help;
    option_setter *set;
    size_t offset; /* set_text, set_flag: of the field */
    enum survey_action action;
};

static int needs_value(const struct option_row *row, struct err *err)
{
    return err_set(err, -EINVAL, "%s needs a value: %s", row->name, row->argument);
}

static int set_text(struct survey_options *options, const struct option_row *row, const char *value,
                    struct err *err)
{
    if (!*value)
        return needs_value(row, err);
    *(const char **)((char *)options + row->offset) = value;
    return 0;
}

static int add_world(struct survey_options *options, const struct option_row *row,
                     const char *value, struct err *err)
{
    if (!*value)
        return needs_value(row, err);
    if (options->world_count == SURVEY_WORLD_MAX)
        return err_set(err, -EINVAL,
                       "--world is given more than %d times: combine the files with "
                       "gpumemtopo-report share",
                       SURVEY_WORLD_MAX);
    options->world[options->world_count++] = value;
    return 0;
}

static int set_flag(struct survey_options *options, const struct option_row *row, const char *value,
                    struct err *err)
{
    (void)value, (void)err;
    *(bool *)((char *)options + row->offset) = true;
    return 0;
}

static int set_action(struct survey_options *options, const struct option_row *row,
                      const char *value, struct err *err)
{
    (void)value, (void)err;
    options->action = row->action;
    return 0;
}

static int set_profile(struct survey_options *options, const struct option_row *row,
                       const char *value, struct err *err)
{
    (void)row;
    if (probe_profile_parse(value, &options->profile))
        return err_set(err, -EINVAL, "--profile is quick, standard or full, not \"%.40s\"", value);
    options->profile_given = true;
    return 0;
}

static int set_busy(struct survey_options *options, const struct option_row *row, const char *value,
                    struct err *err)
{
    (void)row;
    bool measure = strcmp(value, "measure") == 0;
    if (!measure && strcmp(value, "skip") != 0)
        return err_set(err, -EINVAL, "--busy is skip or measure, not \"%.40s\"", value);
    options->measure_busy = measure;
    options->busy_given = true;
    return 0;
}

static int set_time_limit(struct survey_options *options, const struct option_row *row,
                          const char *value, struct err *err)
{
    const double day_s = 86400;
    double seconds = 0;
    (void)row;
    if (str_parse_f64(value, &seconds) || seconds <= 0 || seconds > day_s)
        return err_set(err, -EINVAL,
                       "--time-limit is a number of seconds above 0 and up to %g, not \"%.40s\"",
                       day_s, value);
    options->time_limit_s = seconds;
    return 0;
}

static int set_load(struct survey_options *options, const struct option_row *row, const char *value,
                    struct err *err)
{
    const double hour_s = 3600;
    double seconds = 0;
    (void)row;
    if (str_parse_f64(value, &seconds) || seconds < 0 || seconds > hour_s)
        return err_set(err, -EINVAL,
                       "--load is a number of seconds from 0 (no load) to %g, not \"%.40s\"",
                       hour_s, value);
    options->load_s = seconds;
    return 0;
}

static int set_seed(struct survey_options *options, const struct option_row *row, const char *value,
                    struct err *err)
{
    (void)row;
    if (str_parse_u64(value, &options->seed))
        return err_set(err, -EINVAL, "--seed is a whole number from 0 on, not \"%.40s\"", value);
    options->seed_given = true;
    return 0;
}

static const struct option_row rows[] = {
    {.help = "Input, measuring, judging"},
    {"--simulate", 0, "FLEET.yaml", "simulated GPUs instead of this cluster's", set_text,
     offsetof(struct survey_options, simulate)},
    {"--replay", 0, "FILE", "analyse a record again instead of measuring", set_text,
     offsetof(struct survey_options, replay)},
    {"--profile", 0, "NAME", "quick, standard (default) or full", set_profile},
    {"--probes", 0, "LIST", "only these probes or groups, comma-separated", set_text,
     offsetof(struct survey_options, probes)},
    {"--time-limit", 0, "SECONDS", "for one GPU (default 20, 120, 1200 by profile)",
     set_time_limit},
    {"--load-one", 0, NULL, NULL, set_flag, offsetof(struct survey_options, load_one)},
    {"--load", 0, "S", "S seconds of full load, each GPU of a node singly", set_load},
    {"--busy", 0, "WHAT", "GPUs that others use: skip (default) or measure", set_busy},
    {"--no-mpi", 0, NULL, NULL, set_flag, offsetof(struct survey_options, no_mpi)},
    {"--anonymous", 0, NULL, NULL, set_flag, offsetof(struct survey_options, anonymous)},
    {"--seed", 0, "N", "each task alone; pseudonyms; seed (default 1)", set_seed},
    {"--config", 'c', "FILE", "survey configuration (default: as shipped)", set_text,
     offsetof(struct survey_options, config)},
    {"--reference", 0, "DIR", "expected values by model (default: models as shipped)", set_text,
     offsetof(struct survey_options, reference)},
    {"--baseline", 0, "FILE", "an earlier inventory: report drift against it", set_text,
     offsetof(struct survey_options, baseline)},
    {"--world", 0, "FILE", "figures of GPUs elsewhere, for models with few GPUs", add_world},
    {.help = "Output and messages"},
    {"--output", 'o', "FILE", "inventory (default gpumemtopo-<UTC>.yaml; -: stdout)", set_text,
     offsetof(struct survey_options, output)},
    {"--html", 0, "FILE", "also write a page", set_text, offsetof(struct survey_options, html)},
    {"--record", 0, "FILE", "keep every raw sample, for --replay", set_text,
     offsetof(struct survey_options, record)},
    {"--spool", 0, "DIR", "folder for early results (default OUTPUT.spool)", set_text,
     offsetof(struct survey_options, spool)},
    {"--quiet", 0, NULL, NULL, set_flag, offsetof(struct survey_options, quiet)},
    {"--verbose", 0, NULL, NULL, set_flag, offsetof(struct survey_options, verbose)},
    {"--no-progress", 0, NULL, "errors only; more; no progress line", set_flag,
     offsetof(struct survey_options, no_progress)},
    {"--list-probes", 0, NULL, NULL, set_action, .action = SURVEY_LIST_PROBES},
    {"--version", 0, NULL, NULL, set_action, .action = SURVEY_VERSION},
    {"--help", 'h', NULL, "print it and exit", set_action, .action = SURVEY_HELP},
};

enum { ROW_COUNT = COUNT_OF(rows) };

static const struct option_row *find_name(const char *name, size_t length)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].name && strlen(rows[i].name) == length &&
            strncmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

static const struct option_row *find_letter(char letter)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].name && rows[i].letter && rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

static int unknown_flag(const char *word, size_t length, struct err *err)
{
    const char *names[ROW_COUNT];
    size_t count = 0;
    char name[64];
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].name)
            names[count++] = rows[i].name;
    size_t kept = length < sizeof name ? length : sizeof name - 1;
    memcpy(name, word, kept);
    name[kept] = '\0';
    const char *near = str_nearest(name, names, count);
    if (near)
        return err_set(err, -EINVAL, "no such flag: %s; did you mean %s?", name, near);
    return err_set(err, -EINVAL, "no such flag: %s; --help lists them", name);
}

/* Finds the flag of argv[*at] and its value: after '=', directly after a short flag, or the next
 * argument. */
static int match_flag(int argc, char *const *argv, int *at, const struct option_row **out_row,
                      const char **out_value, struct err *err)
{
    const char *word = argv[*at];
    const char *value = NULL;
    const struct option_row *row = NULL;
    size_t length = strcspn(word, "=");
    if (word[0] != '-' || !word[1])
        return err_set(err, -EINVAL, "unexpected argument \"%.60s\": only flags are expected",
                       word);
    if (word[1] == '-') {
        row = find_name(word, length);
        value = word[length] ? word + length + 1 : NULL;
    } else {
        length = strlen(word);
        row = find_letter(word[1]);
        value = word[2] ? word + 2 : NULL;
    }
    if (!row)
        return unknown_flag(word, length, err);
    if (!row->argument && value)
        return err_set(err, -EINVAL, "%s takes no value", row->name);
    if (row->argument && !value) {
        if (*at + 1 >= argc)
            return needs_value(row, err);
        value = argv[++*at];
    }
    *out_row = row;
    *out_value = value;
    return 0;
}

static int check_together(const struct survey_options *options, struct err *err)
{
    if (options->quiet && options->verbose)
        return err_set(err, -EINVAL, "--quiet and --verbose exclude each other");
    if (options->replay && options->simulate)
        return err_set(err, -EINVAL, "--replay and --simulate exclude each other");
    if (options->replay && options->record)
        return err_set(err, -EINVAL, "--replay and --record exclude each other");
    if (str_equal(options->record, "-"))
        return err_set(err, -EINVAL, "--record needs a file: a record does not go to stdout");
    if (options->spool && str_equal(options->spool, "-"))
        return err_set(err, -EINVAL, "--spool needs a folder: files do not go to stdout");
    if (options->spool && str_equal(options->spool, options->output))
        return err_set(err, -EINVAL, "--spool and --output name the same path");
    if (options->html && str_equal(options->html, options->output))
        return err_set(err, -EINVAL, "--html and --output name the same file");
    if (options->record && str_equal(options->record, options->output))
        return err_set(err, -EINVAL, "--record and --output name the same file");
    return 0;
}

int survey_options_parse(int argc, char *const *argv, struct survey_options *out_options,
                         struct err *err)
{
    struct survey_options options = {.profile = PROFILE_STANDARD, .load_s = -1, .seed = 1};
    for (int i = 1; i < argc; i++) {
        const struct option_row *row = NULL;
        const char *value = NULL;
        int rc = match_flag(argc, argv, &i, &row, &value, err);
        if (rc)
            return rc;
        rc = row->set(&options, row, value, err);
        if (rc)
            return rc;
        if (options.action == SURVEY_HELP)
            break;
    }
    int rc = check_together(&options, err);
    if (!rc)
        *out_options = options;
    return rc;
}

/* Fits a terminal of 80 x 24 with the prompt below it. */
void survey_options_help(struct strbuf *out_text)
{
    struct strbuf names = {0};
    strbuf_puts(out_text,
                "Usage: [srun --mpi=pmix | mpirun] gpumemtopo-survey [FLAG...]\n"
                "Surveys the memory of every GPU its ranks see and writes one YAML inventory.\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct option_row *row = &rows[i];
        if (!row->name) {
            strbuf_printf(out_text, "%s:\n", row->help);
            continue;
        }
        strbuf_puts(&names, names.length ? ", " : "");
        if (row->letter)
            strbuf_printf(&names, "-%c, ", row->letter);
        strbuf_printf(&names, "%s%s%s", row->name, row->argument ? " " : "",
                      row->argument ? row->argument : "");
        if (!row->help)
            continue;
        strbuf_printf(out_text, "  %-24s %s\n", names.data ? names.data : "", row->help);
        out_text->failed |= names.failed;
        strbuf_fini(&names);
    }
    strbuf_puts(out_text, "Exit codes: 0 done; 1 no report; 2 bad usage or input; 3 outliers; "
                          "4 unmeasured\n");
}
