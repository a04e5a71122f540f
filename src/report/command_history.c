/* gpumemtopo-report history FILE...: several inventories of the same GPUs over time. */
#include <errno.h>

#include "base/log.h"
#include "inventory/anonymous.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/history/history.h"

/* The pseudonyms of the names in all files that can be read. */
static int learn(const struct command_options *options, struct pseudonyms **out_names,
                 struct err *err)
{
    struct pseudonyms *names = NULL;
    int rc = pseudonyms_create(&names) ? err_no_memory(err) : 0;
    for (int i = 0; i < options->file_count && !rc; i++) {
        struct inventory inventory = {0};
        struct err ignored = {0}; /* add_files tells it */
        int unread = inventory_read_file(options->files[i], &inventory, &ignored);
        if (unread == -ENOMEM || (!unread && anonymous_learn(names, &inventory)))
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
        rc = history_add(history, path, hash, &inventory, err);
    if (!rc && names)
        history->surveys[history->survey_count - 1].path = "(path)";
    inventory_fini(&inventory);
out:
    strbuf_fini(&text);
    return rc;
}

/* Adds all files. A bad file is named and left out, unless it is the only one. */
static int add_files(struct history *history, const struct command_options *options,
                     struct pseudonyms *names, int *out_bad, struct err *err)
{
    int bad = 0;
    for (int i = 0; i < options->file_count; i++) {
        *err = (struct err){0};
        int rc = add_file(history, options->files[i], names, err);
        if (rc == -ENOMEM || (rc && bad + 1 == options->file_count))
            return rc;
        if (rc)
            log_failure(err);
        bad += rc != 0;
    }
    if (bad)
        log_warning("%d of %d files left out", bad, options->file_count);
    *out_bad = bad;
    return 0;
}

int command_history(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct history history = {0};
    struct strbuf text = {0};
    struct pseudonyms *names = NULL;
    struct err err = {0};
    int bad = 0;
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (!rc && options->anonymous)
        rc = learn(options, &names, &err);
    if (!rc)
        rc = add_files(&history, options, names, &bad, &err);
    if (!rc)
        rc = history_finish(&history, &basis.config, &err);
    if (!rc && options->json)
        history_put_json(&history, &text);
    else if (!rc)
        history_put_text(&history, &text);
    history_fini(&history);
    pseudonyms_destroy(names);
    report_basis_fini(&basis);
    if (rc) {
        log_failure(&err);
        return command_exit_code(rc);
    }
    int code = command_write(&text, options->output);
    return code == EXIT_DONE && bad ? EXIT_BAD_INPUT : code;
}
