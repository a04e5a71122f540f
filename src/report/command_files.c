/* Shared by the commands of gpumemtopo-report: reading, choosing a model, writing. */
#include <string.h>

#include "base/log.h"
#include "base/out_file.h"
#include "inventory/anonymous.h"
#include "report/command.h"

enum { NAMES_MAX = 32 };

int command_exit_code(int rc)
{
    return rc ? EXIT_BAD_INPUT : EXIT_DONE;
}

int command_read(const char *path, struct inventory *out_inventory)
{
    struct err err = {0};
    int rc = inventory_read_file(path, out_inventory, &err);
    if (rc)
        log_failure(&err);
    return command_exit_code(rc);
}

void command_anonymise(const struct command_options *options, struct inventory *const *inventories,
                       size_t count, const struct inventory *baseline)
{
    if (options->anonymous)
        anonymous_inventories(inventories, count, baseline);
}

int command_read_given(const struct command_options *options, int file,
                       struct inventory *out_inventory)
{
    int code = command_read(options->files[file], out_inventory);
    if (!code)
        command_anonymise(options, (struct inventory *const[]){out_inventory}, 1, NULL);
    return code;
}

static void say_choice(const struct inventory *inventory, const char *id, const char *path)
{
    const char *ids[NAMES_MAX];
    struct strbuf list = {0};
    size_t count = 0;
    for (; count < inventory->model_count && count < NAMES_MAX; count++) {
        ids[count] = inventory->models[count].id;
        strbuf_printf(&list, "%s%.60s", count ? ", " : "", ids[count]);
    }
    const char *near = id ? str_nearest(id, ids, count) : NULL;
    const char *known = list.data ? list.data : "none";
    if (near)
        log_error("%s: no model \"%.60s\"; did you mean \"%s\"?", path, id, near);
    else if (id)
        log_error("%s: no model \"%.60s\"; there is %s", path, id, known);
    else if (!count)
        log_error("%s: has no model, because no GPU was measured", path);
    else
        log_error("%s: several models; choose one with --model: %s", path, known);
    strbuf_fini(&list);
}

const struct inventory_model *command_model(const struct inventory *inventory, const char *id,
                                            const char *path)
{
    if (!id && inventory->model_count == 1)
        return &inventory->models[0];
    for (size_t i = 0; id && i < inventory->model_count; i++)
        if (strcmp(inventory->models[i].id, id) == 0)
            return &inventory->models[i];
    say_choice(inventory, id, path);
    return NULL;
}

int command_write(struct strbuf *text, const char *path)
{
    struct err err = {0};
    int rc = out_file_write(path ? path : "-", text->data ? text->data : "", text->length, &err);
    strbuf_fini(text);
    if (rc)
        log_failure(&err);
    return rc ? EXIT_NO_REPORT : EXIT_DONE;
}
