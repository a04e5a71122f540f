/* gpumemtopo-report drain FILE */
#include "base/log.h"
#include "report/command.h"
#include "report/drain.h"

int command_drain(const struct command_options *options)
{
    struct inventory inventory;
    struct strbuf lines = {0}, refused = {0};
    struct err err = {0};
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    int rc = report_drain(&inventory, &lines, &refused, &err);
    inventory_fini(&inventory);
    if (rc) {
        log_failure(&err);
        strbuf_fini(&lines);
        code = EXIT_NO_REPORT;
    } else
        code = command_write(&lines, NULL);
    if (refused.length)
        log_warning("no line for a node whose name is not valid in Slurm: %s", refused.data);
    strbuf_fini(&refused);
    return code;
}
