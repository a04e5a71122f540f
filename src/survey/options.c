/* The command line of gpumemtopo-survey, table-driven. */
#include "survey/options.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

typedef int option_setter(struct survey_options *options, const char *value, struct err *err);

static int set_output(struct survey_options *options, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, -EINVAL, "--output needs a file name");
    options->output = value;
    return 0;
}

static int set_config(struct survey_options *options, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, -EINVAL, "--config needs a file name");
    options->config = value;
    return 0;
}

static int set_probes(struct survey_options *options, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, -EINVAL, "--probes needs names of probes or groups");
    options->probes = value;
    return 0;
}

static int set_profile(struct survey_options *options, const char *value, struct err *err)
{
    if (probe_profile_parse(value, &options->profile))
        return err_set(err, -EINVAL, "--profile is quick, standard or full, not \"%.40s\"", value);
    return 0;
}

static int set_simulate(struct survey_options *options, const char *value, struct err *err)
{
    if (!*value)
        return err_set(err, -EINVAL, "--simulate needs a fleet file");
    options->simulate = value;
    return 0;
}

static int set_time_limit(struct survey_options *options, const char *value, struct err *err)
{
    const double day_s = 86400;
    double seconds = 0;
    if (str_parse_f64(value, &seconds) || seconds <= 0 || seconds > day_s)
        return err_set(err, -EINVAL,
                       "--time-limit is a number of seconds above 0 and up to %g, not \"%.40s\"",
                       day_s, value);
    options->time_limit_s = seconds;
    return 0;
}

static int set_seed(struct survey_options *options, const char *value, struct err *err)
{
    if (str_parse_u64(value, &options->seed))
        return err_set(err, -EINVAL, "--seed is a whole number from 0 on, not \"%.40s\"", value);
    return 0;
}

static int set_quiet(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->quiet = true;
    return 0;
}

static int set_verbose(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->verbose = true;
    return 0;
}

static int set_no_progress(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->no_progress = true;
    return 0;
}

static int set_list_probes(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->action = SURVEY_LIST_PROBES;
    return 0;
}

static int set_version(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->action = SURVEY_VERSION;
    return 0;
}

static int set_help(struct survey_options *options, const char *value, struct err *err)
{
    (void)value, (void)err;
    options->action = SURVEY_HELP;
    return 0;
}

/* A row without a name is a heading of --help. */
struct option_row {
    const char *name;
    char letter;
    const char *argument; /* NULL: takes none */
    option_setter *set;
    const char *help;
};

static const struct option_row rows[] = {
    {.help = "What to survey"},
    {"--simulate", 0, "FLEET.yaml", set_simulate, "simulated GPUs instead of this cluster's"},
    {"--profile", 0, "NAME", set_profile, "quick, standard (default) or full"},
    {"--probes", 0, "LIST", set_probes, "only these probes or groups, comma-separated"},
    {"--list-probes", 0, NULL, set_list_probes, "name all probes, one line each"},
    {"--time-limit", 0, "SECONDS", set_time_limit,
     "for one GPU (default 20, 120, 1200 by profile)"},
    {"--seed", 0, "N", set_seed, "every random choice follows from it (default 1)"},
    {"--config", 'c', "FILE", set_config, "survey configuration (default: survey.yaml as shipped)"},
    {.help = "What comes out"},
    {"--output", 'o', "FILE", set_output,
     "the inventory (default gpumemtopo-<UTC time>.yaml, - is stdout)"},
    {"--quiet", 0, NULL, set_quiet, "errors only"},
    {"--verbose", 0, NULL, set_verbose, "say more"},
    {"--no-progress", 0, NULL, set_no_progress, "no progress line"},
    {"--version", 0, NULL, set_version, "print the version and stop"},
    {"--help", 'h', NULL, set_help, "print this and stop"},
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

/* Finds the flag of argv[*at] and its value: after '=', glued to a letter, or the next word. */
static int match_flag(int argc, char *const *argv, int *at, const struct option_row **out_row,
                      const char **out_value, struct err *err)
{
    const char *word = argv[*at];
    const char *value = NULL;
    const struct option_row *row = NULL;
    size_t length = strcspn(word, "=");
    if (word[0] != '-' || !word[1])
        return err_set(err, -EINVAL, "unexpected argument \"%.60s\": everything here is a flag",
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
            return err_set(err, -EINVAL, "%s needs a value: %s", row->name, row->argument);
        value = argv[++*at];
    }
    *out_row = row;
    *out_value = value;
    return 0;
}

int survey_options_parse(int argc, char *const *argv, struct survey_options *out_options,
                         struct err *err)
{
    struct survey_options options = {.profile = PROFILE_STANDARD, .seed = 1};
    for (int i = 1; i < argc; i++) {
        const struct option_row *row = NULL;
        const char *value = NULL;
        int rc = match_flag(argc, argv, &i, &row, &value, err);
        if (!rc)
            rc = row->set(&options, value, err);
        if (rc)
            return rc;
        if (options.action == SURVEY_HELP)
            break;
    }
    if (options.quiet && options.verbose)
        return err_set(err, -EINVAL, "--quiet and --verbose exclude each other");
    *out_options = options;
    return 0;
}

void survey_options_help(struct strbuf *out_text)
{
    strbuf_puts(out_text,
                "Usage: gpumemtopo-survey [FLAG...]\n"
                "Surveys the memory hierarchy of every GPU its ranks see and writes one YAML\n"
                "inventory. Run it under srun (--mpi=pmix), under mpirun, or alone for this "
                "machine.\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct option_row *row = &rows[i];
        if (!row->name) {
            strbuf_printf(out_text, "\n%s:\n", row->help);
            continue;
        }
        struct strbuf name = {0};
        if (row->letter)
            strbuf_printf(&name, "-%c, ", row->letter);
        strbuf_printf(&name, "%s%s%s", row->name, row->argument ? " " : "",
                      row->argument ? row->argument : "");
        strbuf_printf(out_text, "  %-24s %s\n", name.data ? name.data : "", row->help);
        strbuf_fini(&name);
    }
    strbuf_puts(out_text,
                "\nExit codes: 0 done; 1 no report; 2 bad usage or input; 3 outliers found;\n"
                "4 some GPUs could not be measured or ranks were lost.\n");
}
