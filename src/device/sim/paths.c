/* The paths of a model: the caches that a load goes through, and its cost by the level that serves
 * it. */
#include <errno.h>

#include "base/str.h"
#include "device/sim/model.h"

static const char *const path_keys[DEVICE_PATH_COUNT] = {
    [DEVICE_GLOBAL_CA] = "global_ca", [DEVICE_GLOBAL_CG] = "global_cg",
    [DEVICE_READ_ONLY] = "read_only", [DEVICE_TEXTURE] = "texture",
    [DEVICE_CONSTANT] = "constant",   [DEVICE_SHARED] = "shared",
    [DEVICE_HOST] = "host",
};

static const double cycles_min = 1, cycles_max = 1e6;

static int find_cache(const struct sim_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->cache_count; i++)
        if (str_equal(model->caches[i].name, name))
            return (int)i;
    return -1;
}

/* path->l2_cycles and path->main_cycles tell whether these levels were already listed. */
static int add_level(const struct sim_model *model, const struct yaml_node *item,
                     struct sim_path *path, double *previous, struct err *err)
{
    if (yaml_kind(item) != YAML_MAPPING || yaml_count(item) != 1)
        return yaml_error(item, err, "expected one level such as `l1: 32`");
    const char *name = yaml_key(item, 0);
    double cycles;
    int rc = yaml_as_f64(yaml_at(item, 0), cycles_min, cycles_max, &cycles, err);
    if (rc)
        return rc;
    if (cycles <= *previous)
        return yaml_error(yaml_at(item, 0), err, "latencies must rise with depth");
    *previous = cycles;
    if (path->main_cycles > 0)
        return yaml_error(item, err, "`main` must be the last level");
    if (str_equal(name, "main")) {
        if (path->l2_cycles <= 0)
            return yaml_error(item, err, "`l2` must come before `main`");
        path->main_cycles = cycles;
        return 0;
    }
    if (path->l2_cycles > 0)
        return yaml_error(item, err, "only `main` may follow `l2`");
    if (str_equal(name, "l2")) {
        path->l2_cycles = cycles;
        return 0;
    }
    int cache = find_cache(model, name);
    if (cache < 0)
        return yaml_error(item, err, "no cache \"%.60s\" in `caches`", name);
    for (uint32_t i = 0; i < path->cache_count; i++)
        if (path->caches[i] == (uint32_t)cache)
            return yaml_error(item, err, "the path passes \"%.60s\" twice", name);
    path->caches[path->cache_count] = (uint32_t)cache;
    path->cache_cycles[path->cache_count++] = cycles;
    return 0;
}

static int read_levels(const struct sim_model *model, const struct yaml_node *node,
                       struct sim_path *path, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_LEVELS_MAX)
        return yaml_error(node, err, "at most %d levels", SIM_LEVELS_MAX);
    double previous = 0;
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = add_level(model, yaml_at(node, i), path, &previous, err);
        if (rc)
            return rc;
    }
    if (path->main_cycles <= 0)
        return yaml_error(node, err, "the path must end in `main`");
    return 0;
}

static int read_path(struct sim_model *model, enum device_path which, const struct yaml_node *node,
                     struct err *err)
{
    struct sim_path *path = &model->paths[which];
    int rc = which == DEVICE_SHARED || which == DEVICE_HOST
                 ? yaml_as_f64(node, cycles_min, cycles_max, &path->main_cycles, err)
                 : read_levels(model, node, path, err);
    if (rc)
        return rc;
    if (which == DEVICE_GLOBAL_CG && path->cache_count)
        return yaml_error(node, err, "must begin at `l2`: these loads go through no other cache");
    path->present = true;
    return 0;
}

int sim_read_overheads(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    static const double most = 10000;
    struct yaml_field fields[DEVICE_PATH_COUNT];
    double all;
    if (yaml_kind(node) == YAML_MAPPING) {
        for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
            fields[i] = (struct yaml_field){path_keys[i], YAML_F64, i * sizeof(double), .min = 0,
                                            .max = most};
        return yaml_read_fields(node, fields, DEVICE_PATH_COUNT, model->timer_overhead_cycles, err);
    }
    int rc = yaml_as_f64(node, 0, most, &all, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
        model->timer_overhead_cycles[i] = all;
    return 0;
}

int sim_read_paths(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct yaml_field fields[DEVICE_PATH_COUNT];
    const struct yaml_node *nodes[DEVICE_PATH_COUNT] = {0};
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
        fields[i] = (struct yaml_field){
            .key = path_keys[i],
            .type = YAML_NODE,
            .offset = i * sizeof nodes[0],
            .required = i == DEVICE_GLOBAL_CA || i == DEVICE_GLOBAL_CG,
        };
    int rc = yaml_read_fields(node, fields, DEVICE_PATH_COUNT, nodes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++) {
        if (!nodes[i])
            continue;
        rc = read_path(model, (enum device_path)i, nodes[i], err);
        if (rc) {
            err_prefix(err, "path %s", path_keys[i]);
            return rc;
        }
    }
    return 0;
}
