/* gpumemtopo-report share [-o WORLD] FILE... */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/share.h"

/* Adds a world file to `world`, or appends an inventory. */
static int take_file(const char *path, struct world *world, struct inventory *inventories,
                     size_t *count, struct err *err)
{
    if (world_is_file(path))
        return world_add_file(world, path, err);
    int rc = inventory_read_file(path, &inventories[*count], err);
    *count += !rc;
    return rc;
}

static int share(const struct command_options *options, const struct judge_config *config,
                 struct world *world, struct err *err)
{
    struct inventory *inventories = mem_array((size_t)options->file_count, sizeof *inventories);
    size_t count = 0;
    int rc = inventories ? 0 : err_no_memory(err);
    for (int i = 0; i < options->file_count && !rc; i++)
        rc = take_file(options->files[i], world, inventories, &count, err);
    if (!rc)
        rc = report_share(inventories, count, config, world, err);
    for (size_t i = 0; i < count; i++)
        inventory_fini(&inventories[i]);
    free(inventories);
    return rc;
}

int command_share(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct world world = {0};
    struct strbuf text = {0};
    struct err err = {0};
    int rc = report_basis_load_config(options->config, &basis, &err);
    if (!rc)
        rc = share(options, &basis.config, &world, &err);
    int code = command_exit_code(rc);
    if (rc)
        log_failure(&err);
    else if (!world.model_count) {
        log_error("nothing to share: no file has a healthy GPU that was measured");
        code = EXIT_NO_REPORT;
    } else {
        world_print(&world, GPUMEMTOPO_VERSION, &text);
        code = command_write(&text, options->output);
    }
    world_fini(&world);
    report_basis_fini(&basis);
    return code;
}
