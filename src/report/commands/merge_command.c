/* gpumemtopo-report merge [-o FILE] DIR|FILE... */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/command.h"
#include "report/merge/merge.h"
#include "report/summary.h"

static int add_paths(struct report_merge *merge, const struct command_options *options,
                     struct err *err)
{
    int rc = 0;
    for (int i = 0; i < options->file_count && !rc; i++) {
        const char *path = options->files[i];
        struct stat info;
        if (stat(path, &info))
            rc = err_set_at(err, -errno, path, 0, 0, "cannot open: %s", strerror(errno));
        else
            rc = S_ISDIR(info.st_mode) ? report_merge_add_folder(merge, path, NULL, err)
                                       : report_merge_add(merge, path, err);
    }
    return rc;
}

static int load_basis(const struct command_options *options, struct report_basis *basis,
                      struct err *err)
{
    int rc = report_basis_load(options->reference, options->baseline, basis, err);
    if (rc)
        return rc;
    rc = report_basis_load_world(options->world.items, options->world.count, basis, err);
    if (rc)
        return rc;
    return options->config ? report_basis_load_config(options->config, basis, err) : 0;
}

static void merge_say(void *user, const char *text)
{
    (void)user;
    log_warning("%s", text);
}

static void merge_say_summary(const struct inventory *inventory, const char *output)
{
    struct strbuf text = {0};
    if (strcmp(output, "-") == 0)
        return;
    const struct report_style style = report_style_for(STDERR_FILENO);
    report_summary(inventory, &style, &text);
    if (text.failed)
        log_warning("no summary: out of memory");
    else if (text.data)
        fputs(text.data, stderr);
    log_info("inventory written to %s", output);
    strbuf_fini(&text);
}

/* Judges and writes the inventory; *out_code is its exit code. */
static int merge_finish(struct report_merge *merge, const struct command_options *options,
                        struct report_basis *basis, char *const *command, size_t command_count,
                        int *out_code, struct err *err)
{
    struct inventory inventory = {0};
    const char *output = options->output ? options->output : "-";
    const struct report_merge_request request = {
        .basis = basis,
        .own_config = options->config != NULL,
        .version = GPUMEMTOPO_VERSION,
        .command = command,
        .command_count = command_count,
    };
    if (!report_merge_end(merge).files)
        return err_set(
            err, -ENODATA,
            "nothing to merge: no spool file and no inventory was found that can be read");
    int rc = report_merge_finish(merge, &request, &inventory, err);
    if (rc)
        goto out;
    if (command_anonymise(options, (struct inventory *const[]){&inventory}, 1,
                          basis->has_baseline ? &basis->baseline : NULL)) {
        rc = err_no_memory(err);
        goto out;
    }
    rc = inventory_write_file(&inventory, output, err);
    if (rc)
        goto out;
    merge_say_summary(&inventory, output);
    *out_code = inventory.exit_code;
out:
    inventory_fini(&inventory);
    return rc;
}

/* The command line as it was given. */
static char **full_command(int count, char **arguments)
{
    char **command = mem_array((size_t)count + 2, sizeof *command);
    if (!command)
        return NULL;
    command[0] = (char *)"gpumemtopo-report";
    command[1] = (char *)"merge";
    for (int i = 0; i < count; i++)
        command[i + 2] = arguments[i];
    return command;
}

int command_merge(const struct command_options *options)
{
    struct report_merge *merge = NULL;
    struct report_basis basis = {0};
    struct err err = {0};
    int code = EXIT_NO_REPORT;
    char **command = full_command(options->word_count, options->words);
    int rc = command ? 0 : err_no_memory(&err);
    if (rc)
        goto out;
    rc = load_basis(options, &basis, &err);
    if (rc) {
        code = command_exit_code(rc);
        goto out;
    }
    rc = report_merge_create(merge_say, NULL, &merge, &err);
    if (rc)
        goto out;
    rc = add_paths(merge, options, &err);
    if (rc) {
        code = command_exit_code(rc);
        goto out;
    }
    rc =
        merge_finish(merge, options, &basis, command, (size_t)options->word_count + 2, &code, &err);
out:
    if (rc)
        log_failure(&err);
    report_merge_destroy(merge);
    report_basis_fini(&basis);
    free(command);
    return code;
}
