/* gpumemtopo-report drain FILE, gpumemtopo-report exclude FILE */
#include "base/log.h"
#include "report/command.h"
#include "report/drain.h"

/* A report of bad nodes: drain or exclude. */
typedef size_t report_nodes(const struct inventory *inventory, struct strbuf *out_text,
                            struct strbuf *out_refused);

static int drain_print(const struct command_options *options, report_nodes *report)
{
    struct inventory inventory;
    struct strbuf text = {0}, refused = {0};
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    if (inventory.anonymous) {
        log_error("%s: is anonymous: its nodes have pseudonyms that Slurm does not know; use the "
                  "inventory with names",
                  options->files[0]);
        inventory_fini(&inventory);
        return EXIT_BAD_INPUT;
    }
    size_t spared = report(&inventory, &text, &refused);
    inventory_fini(&inventory);
    code = command_write(&text, NULL);
    if (refused.length)
        log_warning("left out, because the name of the node is not valid in Slurm: %s",
                    refused.data);
    if (spared)
        log_info("left out: %zu outlier%s: the policy alerts, and does not drain; the report lists "
                 "%s",
                 spared, spared == 1 ? "" : "s", spared == 1 ? "it" : "them");
    strbuf_fini(&refused);
    return code;
}

int command_drain(const struct command_options *options)
{
    return drain_print(options, report_drain);
}

int command_exclude(const struct command_options *options)
{
    return drain_print(options, report_exclude);
}
