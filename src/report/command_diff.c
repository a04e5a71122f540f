/* gpumemtopo-report diff: compares two inventories of the same GPUs. */
#include "base/log.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/diff.h"

int command_diff(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct inventory before = {0}, after = {0};
    struct report_diff diff = {0};
    struct err err = {0};
    struct strbuf text = {0};
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (rc)
        goto out;
    rc = inventory_read_file(options->files[0], &before, &err);
    if (rc)
        goto out;
    rc = inventory_read_file(options->files[1], &after, &err);
    if (rc)
        goto out;
    if (command_anonymise(options, (struct inventory *const[]){&before, &after}, 2, NULL)) {
        rc = err_no_memory(&err);
        goto out;
    }
    rc = report_diff(&before, &after, &basis.config, &text, &diff, &err);
out:
    inventory_fini(&before);
    inventory_fini(&after);
    report_basis_fini(&basis);
    if (rc) {
        strbuf_fini(&text);
        log_failure(&err);
        return command_exit_code(rc);
    }
    int code = command_write(&text, NULL);
    if (code != EXIT_DONE)
        return code;
    return diff.missing ? EXIT_MISSING : diff.worse ? EXIT_WORSE : EXIT_DONE;
}
