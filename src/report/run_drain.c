/* gpumemtopo-report drain FILE */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/commands.h"
#include "report/drain.h"

static int print(const struct strbuf *lines, struct err *err)
{
    if ((lines->length && fwrite(lines->data, 1, lines->length, stdout) != lines->length) ||
        fflush(stdout))
        return err_set(err, -EIO, "cannot print: %s", strerror(errno));
    return 0;
}

int report_run_drain(int count, char **arguments)
{
    struct inventory inventory = {0};
    struct strbuf lines = {0}, refused = {0};
    struct err err = {0};
    (void)count;
    int rc = inventory_read_file(arguments[0], &inventory, &err);
    int code = !rc ? EXIT_DONE : rc == -ENOMEM ? EXIT_NO_REPORT : EXIT_BAD_INPUT;
    if (!rc) {
        rc = report_drain(&inventory, &lines, &refused, &err);
        if (!rc)
            rc = print(&lines, &err);
        if (refused.length)
            log_warning("not a name that a Slurm node can have, so no line for it: %s",
                        refused.data);
        code = rc ? EXIT_NO_REPORT : EXIT_DONE;
    }
    if (rc)
        log_failure(&err);
    strbuf_fini(&lines);
    strbuf_fini(&refused);
    inventory_fini(&inventory);
    return code;
}
