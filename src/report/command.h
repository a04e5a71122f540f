/* The commands of gpumemtopo-report: their flags, their help, and how they are run. */
#ifndef GPUMEMTOPO_REPORT_COMMAND_H
#define GPUMEMTOPO_REPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/options.h"
#include "base/str.h"
#include "inventory/inventory.h"

enum command_exit {
    EXIT_DONE = 0,
    EXIT_NO_REPORT = 1,
    EXIT_BAD_INPUT = 2,
    EXIT_WORSE = 3,   /* diff: a GPU is worse than it was; accept: not as ordered */
    EXIT_MISSING = 4, /* diff: a GPU is gone or no longer measured; accept: not shown */
};

enum { COMMAND_WORLD_MAX = 16, COMMAND_FILES_MAX = 1000000 };

/* Zero: not given. Strings point into argv. */
struct command_options {
    char **words; /* all arguments after the name of the command */
    int word_count;
    char **files;
    int file_count;
    const char *output; /* NULL: stdout */
    const char *model;
    const char *config, *reference, *baseline, *racks;
    struct option_list world;
    const char *colour;
    const char *width;
    const char *max_age, *record;
    const char *order, *html;
    const char *drained;
    const char *store, *gpu, *metric;
    bool all, anonymous, compare, json, keep_all, mt4g, old_labels, openmetrics, topology,
        warn_watch;
};

struct command {
    const char *name;
    const char *files; /* "FILE", "FILE..." */
    const char *summary;
    int files_min, files_max;
    const struct option *options;
    size_t option_count;
    int (*run)(const struct command_options *options);
    int (*failed)(
        const struct err *err); /* reports bad usage, returns an exit code; NULL: as usual */
    const char *no_anonymous;   /* why it has no --anonymous; NULL: nobody expects one */
};

/* Ends with a command without a name. */
extern const struct command command_table[];

/* Finds a command by name. NULL if it is unknown; then a message names the nearest one. */
const struct command *command_find(const char *name);

/* Reads flags and files from the arguments after the name of the command. -EINVAL with one line
 * that says what is wrong. options->files is an array that the caller frees. *out_help: the form of
 * the help that --help asks for; NULL: it was not given. */
int command_parse(const struct command *command, int count, char **arguments,
                  struct command_options *options, const char **out_help, struct err *err);

/* Append the help of one command in this form (options_print); the help of all on one screen. */
void command_help(const struct command *command, const char *form, struct strbuf *out_text);
void command_help_all(struct strbuf *out_text);

/* Exit code for an error of a file: EXIT_BAD_INPUT. */
int command_exit_code(int rc);

/* Reads an inventory. On failure prints a message and returns an exit code. */
int command_read(const char *path, struct inventory *out_inventory);

/* The same for a file of the command line, without names if --anonymous was given. */
int command_read_given(const struct command_options *options, int file,
                       struct inventory *out_inventory);

/* Replaces the names of these inventories if --anonymous was given; the same name gets the same
 * pseudonym in all of them. baseline: as for anonymous_inventories. */
void command_anonymise(const struct command_options *options, struct inventory *const *inventories,
                       size_t count, const struct inventory *baseline);

/* The model with this id; without an id the only model. Otherwise NULL, and a message. */
const struct inventory_model *command_model(const struct inventory *inventory, const char *id,
                                            const char *path);

/* Writes the text to `path` (NULL: stdout) and releases it. Returns an exit code. */
int command_write(struct strbuf *text, const char *path);

/* Each in a separate file. */
int command_accept(const struct command_options *options);
int command_csv(const struct command_options *options);
int command_show(const struct command_options *options);
int command_diff(const struct command_options *options);
int command_merge(const struct command_options *options);
int command_drain(const struct command_options *options);
int command_undrain(const struct command_options *options);
int command_exclude(const struct command_options *options);
int command_history(const struct command_options *options);
int command_rma(const struct command_options *options);
int command_nagios(const struct command_options *options);
int command_nagios_failed(const struct err *err);
int command_prometheus(const struct command_options *options);
int command_validate(const struct command_options *options);
int command_share(const struct command_options *options);

#endif
