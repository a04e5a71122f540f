/* gpumemtopo-report history FILE...: several inventories of the same GPUs over time. */
#include "base/log.h"
#include "inventory/anonymous.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/history/history.h"

/* The pseudonyms of the names in all files. */
static int learn(const struct command_options *options, struct pseudonyms **out_names,
                 struct err *err)
{
    struct pseudonyms *names = NULL;
    int rc = pseudonyms_create(&names) ? err_no_memory(err) : 0;
    for (int i = 0; i < options->file_count && !rc; i++) {
        struct inventory inventory = {0};
        rc = inventory_read_file(options->files[i], &inventory, err);
        if (!rc && anonymous_learn(names, &inventory))
            rc = err_no_memory(err);
        inventory_fini(&inventory);
    }
    if (!rc && pseudonyms_seal(names))
        rc = err_no_memory(err);
    if (rc)
        pseudonyms_destroy(names);
    else
        *out_names = names;
    return rc;
}

/* One inventory at a time is in memory. names NULL: they stay. */
static int add_file(struct history *history, const char *path, struct pseudonyms *names,
                    struct err *err)
{
    struct strbuf text = {0};
    struct inventory inventory;
    int rc = yaml_load_text(path, &yaml_limits_inventory, &text, err);
    if (rc)
        goto out;
    uint64_t hash = str_hash(text.data ? text.data : "");
    const struct history_survey *twin = history_twin(history, hash);
    if (twin) {
        log_warning("%s and %s are the same survey; it counts once", twin->path, path);
        goto out;
    }
    rc = inventory_read_text(text.data ? text.data : "", text.length, path, &inventory, err);
    strbuf_fini(&text);
    if (rc)
        return rc;
    if (names && anonymous_apply(names, &inventory))
        rc = err_no_memory(err);
    else
        rc = history_add(history, names ? "(path)" : path, hash, &inventory, err);
    inventory_fini(&inventory);
out:
    strbuf_fini(&text);
    return rc;
}

int command_history(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct history history = {0};
    struct strbuf text = {0};
    struct pseudonyms *names = NULL;
    struct err err = {0};
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (!rc && options->anonymous)
        rc = learn(options, &names, &err);
    for (int i = 0; i < options->file_count && !rc; i++)
        rc = add_file(&history, options->files[i], names, &err);
    if (!rc)
        rc = history_finish(&history, &basis.config, &err);
    if (!rc && options->json)
        history_put_json(&history, &text);
    else if (!rc)
        history_put_text(&history, &text);
    history_fini(&history);
    pseudonyms_destroy(names);
    report_basis_fini(&basis);
    if (!rc)
        return command_write(&text, options->output);
    log_failure(&err);
    return command_exit_code(rc);
}
