/* gpumemtopo-report diff: compares two inventories of the same GPUs. */
#include "base/clock.h"
#include "base/log.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/diff.h"

/* In the wrong order, repaired GPUs look like broken ones. */
static void check_order(const struct command_options *options, const struct inventory *before,
                        const struct inventory *after)
{
    int64_t before_s = 0, after_s = 0;
    if (clock_parse_stamp(before->generated, &before_s) ||
        clock_parse_stamp(after->generated, &after_s) || before_s <= after_s)
        return;
    log_warning("%s (%s) is newer than %s (%s): the older file comes first", options->files[0],
                before->generated, options->files[1], after->generated);
}

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
    check_order(options, &before, &after);
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
