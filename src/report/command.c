/* Chooses a command of gpumemtopo-report: its name, flags and help. */
#include "report/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"

enum { NAMES_MAX = 32 };

const struct command *command_find(const char *name)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; command_table[count].name && count < NAMES_MAX; count++) {
        names[count] = command_table[count].name;
        if (strcmp(name, names[count]) == 0)
            return &command_table[count];
    }
    const char *near = str_nearest(name, names, count);
    if (near)
        log_error("unknown command \"%.60s\"; did you mean \"%s\"?", name, near);
    else
        log_error("unknown command \"%.60s\"; see gpumemtopo-report --help", name);
    return NULL;
}

static struct option_set options_of(const struct command *command)
{
    return (struct option_set){.program = "gpumemtopo-report",
                               .command = command->name,
                               .options = command->options,
                               .count = command->option_count};
}

static int check_files(const struct command *command, const struct command_options *options,
                       struct err *err)
{
    int wanted_max = options->compare ? 2 : command->files_max;
    int wanted_min = options->compare ? 1 : options->store ? 0 : command->files_min;
    if (options->file_count >= wanted_min && options->file_count <= wanted_max)
        return 0;
    return err_set(err, -EINVAL, "%s%s takes %s; see gpumemtopo-report %s --help", command->name,
                   options->compare ? " --compare" : "",
                   options->compare              ? "one or two files"
                   : command->run == command_rma ? "a file and a UUID"
                   : wanted_max == 1             ? "one file"
                   : wanted_max == 2             ? "two files"
                                                 : "at least one file",
                   command->name);
}

/* Merging may write to an inventory that it reads; any other command would destroy its input. */
static int check_written(const struct command *command, const struct command_options *options,
                         const char *flag, const char *output, struct err *err)
{
    const struct {
        const char *flag, *path;
    } read[] = {{"--config", options->config}, {"--order", options->order}};
    for (int i = 0; output && i < options->file_count; i++)
        if (command->run != command_merge && out_file_replaces(output, options->files[i]))
            return err_set(err, -EINVAL, "%s would replace %s, which it reads", command->name,
                           options->files[i]);
    for (size_t i = 0; output && i < options->world.count; i++)
        if (out_file_replaces(output, options->world.items[i]))
            return err_set(err, -EINVAL, "--world and %s name the same file", flag);
    for (size_t i = 0; output && i < COUNT_OF(read); i++)
        if (read[i].path && out_file_replaces(output, read[i].path))
            return err_set(err, -EINVAL, "%s and %s name the same file", read[i].flag, flag);
    return 0;
}

static int check_output(const struct command *command, const struct command_options *options,
                        struct err *err)
{
    int rc = check_written(command, options, "--output", options->output, err);
    if (!rc)
        rc = check_written(command, options, "--html", options->html, err);
    if (!rc && options->output && options->html && strcmp(options->output, options->html) == 0)
        rc = err_set(err, -EINVAL, "--output and --html name the same file");
    return rc;
}

int command_parse(const struct command *command, int count, char **arguments,
                  struct command_options *options, const char **out_help, struct err *err)
{
    const struct option_set set = options_of(command);
    struct option_rest rest;
    *options = (struct command_options){.words = arguments, .word_count = count};
    for (int i = 0; i < count && command->no_anonymous; i++)
        if (strcmp(arguments[i], "--anonymous") == 0)
            return err_set(err, -EINVAL, "%s has no --anonymous: %s", command->name,
                           command->no_anonymous);
    int rc = options_read(&set, count, arguments, options, &rest, err);
    if (rc)
        return rc;
    options->files = rest.words;
    options->file_count = rest.count;
    *out_help = rest.help;
    if (rest.help)
        return 0;
    rc = check_files(command, options, err);
    return rc ? rc : check_output(command, options, err);
}

void command_help(const struct command *command, const char *form, struct strbuf *out_text)
{
    const struct option_set set = options_of(command);
    char *head = str_format("Usage: gpumemtopo-report %s [FLAG...] %s\n%s.\n\nFlags:\n",
                            command->name, command->files, command->summary);
    options_print(&set, form, head, "", out_text);
    free(head);
}

void command_help_all(struct strbuf *out_text)
{
    strbuf_puts(out_text, "Usage: gpumemtopo-report COMMAND [FLAG...] FILE...\n\nCommands:\n");
    for (const struct command *command = command_table; command->name; command++) {
        struct strbuf name = {0};
        strbuf_printf(&name, "%s %s", command->name, command->files);
        strbuf_printf(out_text, "  %-24s %s\n", name.data, command->summary);
        strbuf_fini(&name);
    }
    strbuf_puts(out_text,
                "\nCOMMAND --help prints its flags, --help this, --version the version.\n"
                "Exit codes: 0 done; 1 no report could be made; 2 bad usage or input;\n"
                "diff: 3 worse; 4 gone or not measured; accept: 3 not as ordered; 4 not shown;\n"
                "merge: 3 outliers; 4 not measured, lost or skipped; nagios: as plugins return.\n");
}
