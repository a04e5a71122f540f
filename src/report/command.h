/* The commands of gpumemtopo-report: their flags, their help, and how they are run. */
#ifndef GPUMEMTOPO_REPORT_COMMAND_H
#define GPUMEMTOPO_REPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/inventory.h"

enum command_exit {
    EXIT_DONE = 0,
    EXIT_NO_REPORT = 1,
    EXIT_BAD_INPUT = 2,
    EXIT_WORSE = 3,   /* diff: a GPU is worse than it was */
    EXIT_MISSING = 4, /* diff: one is gone or no longer measured */
};

/* Zero: not given. Strings point into argv. */
struct command_options {
    char **words; /* all that stands behind the command's name */
    int word_count;
    char **files;
    int file_count;
    const char *output; /* NULL: stdout */
    const char *model;
    const char *config, *reference, *baseline;
    const char *colour;
    const char *width;
    bool compare, mt4g, topology;
};

struct command_flag {
    const char *name;
    char letter;
    const char *argument; /* NULL: takes none, the field is a bool */
    const char *help;
    size_t offset; /* of the field in command_options */
};

enum { COMMAND_FLAGS_MAX = 16, COMMAND_FILES_MAX = 1000000 };

struct command {
    const char *name;
    const char *files; /* "FILE", "FILE..." */
    const char *summary;
    int files_min, files_max;
    const struct command_flag *flags; /* up to the first without a name */
    int (*run)(const struct command_options *options);
};

/* Ends with one that has no name. */
extern const struct command commands[];

/* By name; NULL, and a message that names the nearest one, for an unknown one. */
const struct command *command_find(const char *name);

/* Takes flags and files out of the arguments behind the command's name. -EINVAL with one line that
 * says what is wrong. options->files is then an array to be freed. *out_help: --help was given. */
int command_parse(const struct command *command, int count, char **arguments,
                  struct command_options *options, bool *out_help, struct err *err);

/* Appends one command's help; the help of all on one screen. */
void command_help(const struct command *command, struct strbuf *out_text);
void command_help_all(struct strbuf *out_text);

/* Exit code for an error of a file: memory is the program's trouble, all else the file's. */
int command_exit_code(int rc);

/* Reads an inventory; says what is wrong with it and gives an exit code otherwise. */
int command_read(const char *path, struct inventory *out_inventory);

/* The model of that id, or without one the only model there is; NULL and a message otherwise. */
const struct inventory_model *command_model(const struct inventory *inventory, const char *id,
                                            const char *path);

/* Writes the text to `path` (NULL: stdout) and releases it. An exit code. */
int command_write(struct strbuf *text, const char *path);

/* Commands that have a file of their own: summary, drawing, comparison; what moved between two; one
 * out of many; which nodes to drain. */
int command_show(const struct command_options *options);
int command_diff(const struct command_options *options);
int command_merge(const struct command_options *options);
int command_drain(const struct command_options *options);

#endif
