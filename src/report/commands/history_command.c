/* gpumemtopo-report history FILE...: several inventories of the same GPUs over time, given as files
 * or kept in a store. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "inventory/anonymous.h"
#include "report/basis.h"
#include "report/command.h"
#include "report/history/history.h"
#include "report/history/history_changes.h"
#include "report/history/history_store.h"

/* The inventories to be read: those of the command line, or those of the store. */
struct paths {
    char *const *items;
    size_t count;
};

/* The pseudonyms of the names in all files that can be read. */
static struct pseudonyms *history_learn(const struct paths *paths)
{
    struct pseudonyms *names = NULL;
    names = pseudonyms_create();
    for (size_t i = 0; i < paths->count; i++) {
        struct inventory inventory = {0};
        struct err ignored = {0}; /* history_add_files reports it */
        if (!inventory_read_file(paths->items[i], &inventory, &ignored))
            anonymous_learn(names, &inventory);
        inventory_fini(&inventory);
    }
    pseudonyms_seal(names);
    return names;
}

/* One inventory at a time is in memory. names NULL: they stay. */
static int history_add_file(struct history *history, const char *path, struct pseudonyms *names,
                            struct err *err)
{
    struct strbuf text = {0};
    struct inventory inventory;
    int rc = yaml_load_text(path, &yaml_limits_plain, &text, err);
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
    if (names)
        anonymous_apply(names, &inventory);
    rc = history_add(history, path, hash, &inventory, err);
    inventory_fini(&inventory);
out:
    strbuf_fini(&text);
    return rc;
}

/* Adds all files. A bad file is named and left out, unless it is the only one. */
static int history_add_files(struct history *history, const struct paths *paths,
                             struct pseudonyms *names, size_t *out_bad, struct err *err)
{
    size_t bad = 0;
    for (size_t i = 0; i < paths->count; i++) {
        *err = (struct err){0};
        int rc = history_add_file(history, paths->items[i], names, err);
        if (rc && bad + 1 == paths->count)
            return rc;
        if (rc)
            log_failure(err);
        bad += rc != 0;
    }
    if (bad)
        log_warning("%zu of %zu files left out", bad, paths->count);
    *out_bad = bad;
    return 0;
}

static int store_file(struct history_store *store, const char *path, bool *out_readable,
                      struct err *err)
{
    struct strbuf text = {0};
    struct inventory inventory;
    bool is_new = false;
    int rc = yaml_load_text(path, &yaml_limits_plain, &text, err);
    const char *data = text.data ? text.data : "";
    if (!rc)
        rc = inventory_read_text(data, text.length, path, &inventory, err);
    *out_readable = !rc;
    if (!rc) {
        rc = history_store_add(store, inventory.generated, data, text.length, &is_new, err);
        if (rc == -EINVAL) { /* the file has no time */
            *out_readable = false;
            err_prefix(err, "%s", path);
        }
        inventory_fini(&inventory);
    }
    if (!rc && !is_new)
        log_info("%s is already in %s", path, store->folder);
    strbuf_fini(&text);
    return rc;
}

/* What cannot be added is named; what the store has is reported nevertheless. Returns the exit code
 * that this deserves. */
static int store_files(struct history_store *store, const struct command_options *options)
{
    int code = EXIT_DONE;
    for (int i = 0; i < options->file_count; i++) {
        struct err err = {0};
        bool readable = false;
        int rc = store_file(store, options->files[i], &readable, &err);
        if (!rc)
            continue;
        log_failure(&err);
        if (readable)
            code = EXIT_NO_REPORT;
        else if (!code)
            code = EXIT_BAD_INPUT;
    }
    return code;
}

/* Opens the store and adds the files of the command line. Returns an exit code. */
static int history_open_store(const struct command_options *options, struct history_store *store)
{
    struct err err = {0};
    int rc = history_store_open(options->store, options->file_count > 0, store, &err);
    int code = EXIT_DONE;
    if (!rc) {
        code = store_files(store, options);
        rc = history_store_list(store, &err);
    }
    if (rc) {
        log_failure(&err);
        return options->file_count || rc == -EBUSY ? EXIT_NO_REPORT : command_exit_code(rc);
    }
    if (store->others)
        log_warning("%s: %zu other file%s not read; to add one, name it as FILE", options->store,
                    store->others, store->others == 1 ? " is" : "s are");
    return code;
}

static int thin_out(const struct history *history, struct err *err)
{
    bool *keep = mem_array(history->survey_count, sizeof *keep);
    size_t removed = 0;
    history_thin(history, keep);
    int rc = 0;
    for (size_t i = 0; i < history->survey_count && !rc; i++) {
        if (!keep[i])
            rc = history_store_remove(history->surveys[i].path, err);
        removed += !keep[i];
    }
    if (!rc && removed)
        log_info("thinned out: %zu of %zu inventories removed", removed, history->survey_count);
    free(keep);
    return rc;
}

/* The history of all GPUs, or the answer about one. */
static int history_put_answer(const struct history *history, const struct command_options *options,
                              const struct judge_config *config, struct strbuf *text,
                              struct strbuf *page, struct err *err)
{
    const struct history_gpu *gpu;
    struct history_changes changes;
    if (!options->gpu) {
        (options->json ? history_put_json : history_put_text)(history, text);
        return 0;
    }
    int rc = history_changes_gpu(history, options->gpu, &gpu, err);
    if (!rc)
        rc = history_changes_find(history, gpu, config, options->metric, &changes, err);
    if (rc)
        return rc;
    (options->json ? history_changes_put_json : history_changes_put_text)(&changes, text);
    if (options->html)
        history_changes_put_page(&changes, page);
    history_changes_fini(&changes);
    return 0;
}

static int history_report(const struct command_options *options, const struct paths *paths,
                          bool thins)
{
    struct report_basis basis = {0};
    struct history history = {0};
    struct strbuf text = {0}, page = {0};
    struct pseudonyms *names = NULL;
    struct err err = {0};
    size_t bad = 0;
    int rc = report_basis_load_config(NULL, &basis, &err);
    if (!rc && options->anonymous)
        names = history_learn(paths);
    if (!rc)
        rc = history_add_files(&history, paths, names, &bad, &err);
    if (!rc)
        history_finish(&history, &basis.config);
    if (!rc && thins)
        rc = thin_out(&history, &err);
    for (size_t i = 0; i < history.survey_count && names; i++)
        history.surveys[i].path = "(path)";
    if (!rc)
        rc = history_put_answer(&history, options, &basis.config, &text, &page, &err);
    history_fini(&history);
    pseudonyms_destroy(names);
    report_basis_fini(&basis);
    int code = command_exit_code(rc);
    if (rc)
        log_failure(&err);
    else
        code = command_write(&text, options->output);
    if (!code && options->html)
        code = command_write(&page, options->html);
    strbuf_fini(&text);
    strbuf_fini(&page);
    return code == EXIT_DONE && bad ? EXIT_BAD_INPUT : code;
}

int command_history(const struct command_options *options)
{
    struct history_store store = {0};
    struct paths paths = {options->files, (size_t)options->file_count};
    const char *wrong = options->metric && !options->gpu       ? "--metric needs --gpu"
                        : options->html && !options->gpu       ? "--html needs --gpu"
                        : options->keep_all && !options->store ? "--keep-all needs --store"
                                                               : NULL;
    int added = EXIT_DONE;
    if (wrong) {
        log_error("history: %s", wrong);
        return EXIT_BAD_INPUT;
    }
    if (options->store) {
        added = history_open_store(options, &store);
        if (!store.folder || !store.files) {
            history_store_close(&store);
            return added;
        }
        paths = (struct paths){store.files, store.file_count};
    }
    /* Nothing is removed when something could not be added. */
    int code = history_report(
        options, &paths, options->store && options->file_count && !added && !options->keep_all);
    history_store_close(&store);
    return code == EXIT_NO_REPORT || !added ? code : added;
}
