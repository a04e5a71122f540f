/* Chooses a command of gpumemtopo-report: its name, flags and help. */
#include "report/command.h"

#include <errno.h>
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

static const struct command_flag *find_flag(const struct command *command, const char *word,
                                            size_t length)
{
    for (size_t i = 0; i < COMMAND_FLAGS_MAX && command->flags[i].name; i++) {
        const struct command_flag *flag = &command->flags[i];
        bool named = strlen(flag->name) == length && strncmp(flag->name, word, length) == 0;
        if (word[1] == '-' ? named : flag->letter && word[1] == flag->letter)
            return flag;
    }
    return NULL;
}

static int unknown_flag(const struct command *command, const char *word, struct err *err)
{
    const char *names[COMMAND_FLAGS_MAX + 1] = {"--help"};
    size_t count = 1;
    if (strcmp(word, "--anonymous") == 0 &&
        (command->run == command_drain || command->run == command_exclude ||
         command->run == command_undrain))
        return err_set(err, -EINVAL,
                       "%s has no --anonymous: it names nodes for Slurm, which does not know "
                       "pseudonyms",
                       command->name);
    if (strcmp(word, "--anonymous") == 0 && command->run == command_accept)
        return err_set(err, -EINVAL,
                       "accept has no --anonymous: supplier and customer must know which GPU is "
                       "meant, not pseudonyms");
    for (size_t i = 0; i < COMMAND_FLAGS_MAX && command->flags[i].name; i++)
        names[count++] = command->flags[i].name;
    const char *near = str_nearest(word, names, count);
    if (near)
        return err_set(err, -EINVAL, "%s has no flag %.60s; did you mean %s?", command->name, word,
                       near);
    return err_set(err, -EINVAL, "%s has no flag %.60s; gpumemtopo-report %s --help lists them",
                   command->name, word, command->name);
}

static int add_to_list(const struct command_flag *flag, const char *value,
                       struct command_list *list, struct err *err)
{
    if (!*value)
        return err_set(err, -EINVAL, "%s needs a value: %s", flag->name, flag->argument);
    if (list->count == COMMAND_LIST_MAX)
        return err_set(err, -EINVAL, "%s is given more than %d times", flag->name,
                       COMMAND_LIST_MAX);
    list->items[list->count++] = value;
    return 0;
}

/* The flag at arguments[*at]; its value follows after '=', directly after a letter, or in the next
 * argument. */
static int take_flag(const struct command *command, int count, char **arguments, int *at,
                     struct command_options *options, struct err *err)
{
    const char *word = arguments[*at];
    size_t length = strcspn(word, "=");
    const struct command_flag *flag = find_flag(command, word, length);
    if (!flag)
        return unknown_flag(command, word, err);
    const char *value = word[1] != '-' ? word + 2 : word[length] ? word + length + 1 : NULL;
    void *field = (char *)options + flag->offset;
    if (!flag->argument) {
        *(bool *)field = true;
        return value && *value ? err_set(err, -EINVAL, "%s takes no value", flag->name) : 0;
    }
    if (!value || (word[1] != '-' && !*value))
        value = ++*at < count ? arguments[*at] : "";
    if (flag->list)
        return add_to_list(flag, value, field, err);
    if (*(const char **)field)
        return err_set(err, -EINVAL, "%s is given twice; it takes %s", flag->name, flag->argument);
    *(const char **)field = value;
    return *value ? 0 : err_set(err, -EINVAL, "%s needs a value: %s", flag->name, flag->argument);
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
                  struct command_options *options, bool *out_help, struct err *err)
{
    bool flags = true;
    memset(options, 0, sizeof *options);
    options->words = arguments;
    options->word_count = count;
    *out_help = false;
    options->files = mem_array((size_t)count, sizeof *options->files);
    if (!options->files)
        return err_no_memory(err);
    for (int i = 0; i < count; i++) {
        char *word = arguments[i];
        if (!flags || word[0] != '-' || !word[1]) {
            options->files[options->file_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            flags = false;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *out_help = true;
            return 0;
        } else {
            int rc = take_flag(command, count, arguments, &i, options, err);
            if (rc)
                return rc;
        }
    }
    int rc = check_files(command, options, err);
    return rc ? rc : check_output(command, options, err);
}

static void put_flags(const struct command *command, struct strbuf *out)
{
    for (size_t i = 0; i < COMMAND_FLAGS_MAX && command->flags[i].name; i++) {
        const struct command_flag *flag = &command->flags[i];
        struct strbuf name = {0};
        if (flag->letter)
            strbuf_printf(&name, "-%c, ", flag->letter);
        strbuf_printf(&name, "%s%s%s", flag->name, flag->argument ? " " : "",
                      flag->argument ? flag->argument : "");
        strbuf_printf(out, "  %-24s %s\n", name.data ? name.data : "", flag->help);
        out->failed |= name.failed;
        strbuf_fini(&name);
    }
}

void command_help(const struct command *command, struct strbuf *out_text)
{
    strbuf_printf(out_text, "Usage: gpumemtopo-report %s [FLAG...] %s\n%s.\n\nFlags:\n",
                  command->name, command->files, command->summary);
    put_flags(command, out_text);
    strbuf_printf(out_text, "  %-24s %s\n", "-h, --help", "print this and stop");
}

void command_help_all(struct strbuf *out_text)
{
    strbuf_puts(out_text, "Usage: gpumemtopo-report COMMAND [FLAG...] FILE...\n\nCommands:\n");
    for (const struct command *command = command_table; command->name; command++) {
        struct strbuf name = {0};
        strbuf_printf(&name, "%s %s", command->name, command->files);
        strbuf_printf(out_text, "  %-24s %s\n", name.data ? name.data : "", command->summary);
        out_text->failed |= name.failed;
        strbuf_fini(&name);
    }
    strbuf_puts(out_text,
                "\nCOMMAND --help prints its flags, --help this, --version the version.\n"
                "Exit codes: 0 done; 1 no report could be made; 2 bad usage or input;\n"
                "diff: 3 worse; 4 gone or not measured; accept: 3 not as ordered; 4 not shown;\n"
                "merge: 3 outliers; 4 not measured, lost or skipped; nagios: as plugins return.\n");
}
