/* Finds and reads the model files that a fleet file names. */
#include "device/sim/fleet_models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"

static const struct sim_model *find_loaded(const struct fleet_models *models, const char *path)
{
    for (size_t i = 0; i < models->count; i++)
        if (str_equal(models->items[i].path, path))
            return models->items[i].model;
    return NULL;
}

static int load_model_file(struct fleet_models *models, const struct yaml_node *at, char *path,
                           const struct sim_model **out_model, struct err *err)
{
    struct sim_model *model;
    struct err reason = {0};
    struct stat info;
    /* A fleet may name any file, even an endless pipe. */
    int rc = stat(path, &info) == 0 && !S_ISREG(info.st_mode)
                 ? err_set(&reason, -EINVAL, "is no regular file")
                 : sim_model_read_file(path, &model, &reason);
    /* An error inside the model is reported at its place there, any other error at the place that
     * names the model. */
    if (rc && reason.line && err)
        *err = reason;
    else if (rc)
        rc = yaml_error(at, err, "model file %.200s: %s", path, reason.text);
    if (rc)
        return rc;
    models->items =
        mem_grow(models->items, &models->capacity, models->count + 1, sizeof *models->items);
    models->items[models->count++] = (struct loaded){.path = path, .model = model};
    *out_model = model;
    return 0;
}

/* A bare file name is searched in ../sim; a path is relative to the fleet file. out_path is
 * released by the caller. */
static int read_model_path(const struct fleet_models *models, const struct yaml_node *at,
                           char **out_path, struct err *err)
{
    const char *name;
    int rc = yaml_as_text(at, &name, err);
    if (rc)
        return rc;
    const char *fleet = models->fleet_path, *slash = strrchr(fleet, '/');
    int length = slash ? (int)(slash - fleet) + 1 : 0;
    if (name[0] == '/')
        *out_path = str_copy(name);
    else
        *out_path = str_format("%.*s%s%s", length, fleet, strchr(name, '/') ? "" : "../sim/", name);
    return 0;
}

int fleet_models_load(struct fleet_models *models, const struct yaml_node *at,
                      const struct sim_model **out_model, struct err *err)
{
    char *path = NULL;
    int rc = read_model_path(models, at, &path, err);
    if (rc)
        return rc;
    const struct sim_model *known = find_loaded(models, path);
    if (!known)
        rc = load_model_file(models, at, path, out_model, err);
    else
        *out_model = known;
    if (known || rc)
        free(path);
    return rc;
}

int fleet_models_find(const struct fleet_models *models, const struct yaml_node *at,
                      const struct sim_model **out_model, struct err *err)
{
    char *path = NULL;
    int rc = read_model_path(models, at, &path, err);
    if (rc)
        return rc;
    const struct sim_model *known = find_loaded(models, path);
    free(path);
    if (!known)
        return yaml_error(at, err, "no node of the fleet has this model");
    *out_model = known;
    return 0;
}

void fleet_models_fini(struct fleet_models *models)
{
    for (size_t i = 0; i < models->count; i++) {
        sim_model_destroy(models->items[i].model);
        free(models->items[i].path);
    }
    free(models->items);
}
