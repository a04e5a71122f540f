/* gpumemtopo-report undrain --drained LIST FILE... */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/yaml.h"
#include "report/command.h"
#include "report/merge.h"
#include "report/undrain.h"

static void say(void *user, const char *text)
{
    (void)user;
    log_info("%s", text);
}

/* Each file is read twice: for its times, and to be judged with the others. One that was made by
 * merge may lie in the same folder: it is left out, and named. */
static int add_file(struct report_merge *merge, struct undrain_times *times, const char *path,
                    struct err *err)
{
    struct inventory inventory;
    int rc = inventory_read_file(path, &inventory, err);
    if (rc)
        return rc;
    rc = inventory.anonymous
             ? err_set_at(err, -EINVAL, path, 0, 0,
                          "is anonymous: its nodes have pseudonyms that Slurm does not know")
             : undrain_times_add(times, &inventory, path, err);
    inventory_fini(&inventory);
    if (rc == -ESTALE) {
        log_warning("%s %s", path, err->text);
        *err = (struct err){0};
        return 0;
    }
    return rc ? rc : report_merge_add(merge, path, err);
}

static int judge(const struct command_options *options, struct report_basis *basis,
                 struct undrain_times *times, struct inventory *judged, struct err *err)
{
    struct report_merge *merge = NULL;
    int rc = report_basis_load(NULL, NULL, basis, err);
    if (!rc)
        rc = report_merge_create(say, NULL, &merge, err);
    for (int i = 0; i < options->file_count && !rc; i++)
        rc = add_file(merge, times, options->files[i], err);
    const struct report_merge_request request = {.basis = basis, .version = GPUMEMTOPO_VERSION};
    if (!rc)
        rc = report_merge_finish(merge, &request, judged, err);
    report_merge_destroy(merge);
    return rc;
}

int command_undrain(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct undrain_times times = {0};
    struct inventory judged = {0};
    struct strbuf list = {0}, lines = {0}, notes = {0};
    struct err err = {0};
    if (!options->drained) {
        log_error("undrain: --drained names the list of drained nodes; see gpumemtopo-report "
                  "undrain --help");
        return EXIT_BAD_INPUT;
    }
    int rc = yaml_load_text(options->drained, &yaml_limits_inventory, &list, &err);
    if (!rc)
        rc = judge(options, &basis, &times, &judged, &err);
    if (!rc)
        rc = report_undrain(list.data ? list.data : "", options->drained, &judged, &times, &lines,
                            &notes, &err);
    inventory_fini(&judged);
    undrain_times_fini(&times);
    report_basis_fini(&basis);
    strbuf_fini(&list);
    if (rc) {
        log_failure(&err);
        strbuf_fini(&lines);
        strbuf_fini(&notes);
        return command_exit_code(rc);
    }
    if (notes.length)
        log_info("these nodes stay drained:\n%s", notes.data);
    strbuf_fini(&notes);
    return command_write(&lines, NULL);
}
