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

static int merge_add_paths(struct report_merge *merge, const struct command_options *options,
                           struct err *err)
{
    int rc = 0;
    for (int i = 0; i < options->file_count && !rc; i++) {
        const char *path = options->files[i];
        struct stat info;
        if (stat(path, &info))
            rc = err_set_at(err, -errno, path, 0, 0, "cannot open: %s", strerror(errno));
        else if (S_ISDIR(info.st_mode))
            rc = report_merge_add_folder(merge, path, NULL, err);
        else
            report_merge_add(merge, path);
    }
    return rc;
}

static void merge_warn(void *user, const char *text)
{
    (void)user;
    log_warning("%s", text);
}

static void merge_say_summary(const struct inventory *inventory, const char *output, bool anonymous)
{
    struct strbuf text = {0};
    if (strcmp(output, "-") == 0)
        return;
    const struct report_style style = report_style_for(STDERR_FILENO);
    report_summary(inventory, anonymous ? NULL : output, &style, &text);
    log_info("inventory written to %s", output);
    fputs(text.data, stderr);
    strbuf_fini(&text);
}

/* Judges and writes the inventory; *out_code is its exit code. */
static int merge_write(struct report_merge *merge, const struct command_options *options,
                       struct report_basis *basis, int *out_code, struct err *err)
{
    const size_t words = (size_t)options->word_count;
    const char *output = options->output ? options->output : "-";
    struct inventory inventory = {0};
    if (!report_merge_end(merge).files)
        return err_set(
            err, -ENODATA,
            "nothing to merge: no spool file and no inventory was found that can be read");
    char **command = mem_array(words + 2, sizeof *command); /* as it was given */
    command[0] = (char *)"gpumemtopo-report";
    command[1] = (char *)"merge";
    for (size_t i = 0; i < words; i++)
        command[i + 2] = options->words[i];
    const struct report_merge_request request = {
        .basis = basis,
        .own_config = options->config != NULL,
        .version = GPUMEMTOPO_VERSION,
        .command = command,
        .command_count = words + 2,
    };
    int rc = report_merge_finish(merge, &request, &inventory, err);
    free(command);
    if (!rc) {
        command_anonymise(options, (struct inventory *const[]){&inventory}, 1,
                          basis->has_baseline ? &basis->baseline : NULL);
        rc = inventory_write_file(&inventory, output, err);
    }
    if (!rc) {
        merge_say_summary(&inventory, output, options->anonymous);
        *out_code = inventory.exit_code;
    }
    inventory_fini(&inventory);
    return rc;
}

int command_merge(const struct command_options *options)
{
    struct report_merge *merge = report_merge_create(merge_warn, NULL);
    struct report_basis basis = {0};
    struct err err = {0};
    int rc = report_basis_load(options->reference, options->baseline, &basis, &err);
    if (!rc)
        rc = report_basis_load_world(options->world.items, options->world.count, &basis, &err);
    if (!rc && options->config)
        rc = report_basis_load_config(options->config, &basis, &err);
    if (!rc)
        rc = merge_add_paths(merge, options, &err);
    int code = rc ? command_exit_code(rc) : EXIT_NO_REPORT;
    if (!rc)
        rc = merge_write(merge, options, &basis, &code, &err);
    if (rc)
        log_failure(&err);
    report_merge_destroy(merge);
    report_basis_fini(&basis);
    return code;
}
