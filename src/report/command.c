/* What all commands of gpumemtopo-report share: flags, help, reading, choosing a model, writing. */
#include "report/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "inventory/anonymous.h"

/* So many ids of models are compared with one that is unknown. */
enum { NAMES_MAX = 32 };

static struct option_set command_option_set(const struct command *command)
{
    return (struct option_set){.program = "gpumemtopo-report",
                               .command = command->name,
                               .options = command->options,
                               .count = command->option_count};
}

static int command_check_files(const struct command *command, const struct command_options *options,
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
static int command_check_written(const struct command *command,
                                 const struct command_options *options, const char *flag,
                                 const char *output, struct err *err)
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

int command_parse(const struct command *command, int count, char **arguments,
                  struct command_options *options, const char **out_help, struct err *err)
{
    const struct option_set set = command_option_set(command);
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
    rc = command_check_files(command, options, err);
    if (!rc)
        rc = command_check_written(command, options, "--output", options->output, err);
    if (!rc)
        rc = command_check_written(command, options, "--html", options->html, err);
    if (!rc && out_file_is_same(options->output, options->html))
        rc = err_set(err, -EINVAL, "--output and --html name the same file");
    return rc;
}

void command_help(const struct command *command, const char *form, struct strbuf *out_text)
{
    const struct option_set set = command_option_set(command);
    char *head = str_format("Usage: gpumemtopo-report %s [FLAG...] %s\n%s.\n\nFlags:\n",
                            command->name, command->files, command->summary);
    options_print(&set, form, head, "", out_text);
    free(head);
}

int command_exit_code(int rc)
{
    return rc ? EXIT_BAD_INPUT : EXIT_DONE;
}

int command_read(const char *path, struct inventory *out_inventory)
{
    struct err err = {0};
    int rc = inventory_read_file(path, out_inventory, &err);
    if (rc)
        log_failure(&err);
    return command_exit_code(rc);
}

void command_anonymise(const struct command_options *options, struct inventory *const *inventories,
                       size_t count, const struct inventory *baseline)
{
    if (options->anonymous)
        anonymous_inventories(inventories, count, baseline);
}

int command_read_given(const struct command_options *options, int file,
                       struct inventory *out_inventory)
{
    int code = command_read(options->files[file], out_inventory);
    if (!code)
        command_anonymise(options, (struct inventory *const[]){out_inventory}, 1, NULL);
    return code;
}

static void command_say_models(const struct inventory *inventory, const char *id, const char *path)
{
    const char *ids[NAMES_MAX];
    struct strbuf list = {0};
    size_t count = 0;
    for (; count < inventory->model_count && count < NAMES_MAX; count++) {
        ids[count] = inventory->models[count].id;
        strbuf_printf(&list, "%s%.60s", count ? ", " : "", ids[count]);
    }
    const char *near = id ? str_nearest(id, ids, count) : NULL;
    const char *known = list.data ? list.data : "none";
    if (near)
        log_error("%s: no model \"%.60s\"; did you mean \"%s\"?", path, id, near);
    else if (id)
        log_error("%s: no model \"%.60s\"; there is %s", path, id, known);
    else if (!count)
        log_error("%s: has no model, because no GPU was measured", path);
    else
        log_error("%s: several models; choose one with --model: %s", path, known);
    strbuf_fini(&list);
}

const struct inventory_model *command_model(const struct inventory *inventory, const char *id,
                                            const char *path)
{
    if (!id && inventory->model_count == 1)
        return &inventory->models[0];
    for (size_t i = 0; id && i < inventory->model_count; i++)
        if (strcmp(inventory->models[i].id, id) == 0)
            return &inventory->models[i];
    command_say_models(inventory, id, path);
    return NULL;
}

int command_write(struct strbuf *text, const char *path)
{
    struct err err = {0};
    int rc = out_file_write(path ? path : "-", text->data ? text->data : "", text->length, &err);
    strbuf_fini(text);
    if (rc)
        log_failure(&err);
    return rc ? EXIT_NO_REPORT : EXIT_DONE;
}
