/* Reads the configuration, references and baseline for judging a fleet. */
#include "report/basis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/shipped.h"
#include "base/yaml.h"

static int load_references(const char *folder, struct judge_references *out, struct err *err)
{
    char *shipped = NULL;
    struct err ignored = {0};
    if (folder)
        return judge_references_read(folder, out, err);
    if (shipped_path("models", &shipped, &ignored))
        return 0;
    int rc = judge_references_read(shipped, out, err);
    if (rc == -ENOENT) { /* a user's configuration folder need not contain references */
        err_clear(err);
        rc = 0;
    }
    free(shipped);
    return rc;
}

int report_basis_load(const char *reference_folder, const char *baseline_path,
                      struct report_basis *basis, struct err *err)
{
    int rc = load_references(reference_folder, &basis->references, err);
    if (rc || !baseline_path)
        return rc;
    rc = inventory_read_file(baseline_path, &basis->baseline, err);
    basis->has_baseline = !rc;
    return rc;
}

int report_basis_load_world(const char *const *paths, size_t count, struct report_basis *basis,
                            struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = world_add_file(&basis->world, paths[i], err);
        if (rc)
            return rc;
        basis->has_world = true;
    }
    return 0;
}

static int basis_take_config(const struct yaml_doc *doc, struct report_basis *basis,
                             struct err *err)
{
    /* What a survey reads besides (survey/config.c) is known and skipped. */
    static const struct yaml_field keys[] = {{"judge", YAML_NODE, 0, .required = true},
                                             {"time_limit_s", YAML_NODE, sizeof(void *)},
                                             {"start_timeout_s", YAML_NODE, sizeof(void *)},
                                             {"start_patience_s", YAML_NODE, sizeof(void *)},
                                             {"load", YAML_NODE, sizeof(void *)},
                                             {"memory", YAML_NODE, sizeof(void *)},
                                             {"policy", YAML_NODE, 2 * sizeof(void *)}};
    const struct yaml_node *judge_other_policy[3] = {NULL};
    int rc = yaml_read_fields(yaml_root(doc), keys, COUNT_OF(keys), judge_other_policy, err);
    return rc ? rc
              : judge_config_read(judge_other_policy[0], judge_other_policy[2], &basis->config,
                                  err);
}

int report_basis_read_config(const char *text, const char *name, struct report_basis *basis,
                             struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text, strlen(text), name, &yaml_limits_config, &doc, err);
    if (!rc)
        rc = basis_take_config(doc, basis, err);
    yaml_destroy(doc);
    return rc;
}

int report_basis_load_config(const char *path, struct report_basis *basis, struct err *err)
{
    struct yaml_doc *doc = NULL;
    char *shipped = NULL;
    int rc = path ? 0 : shipped_path("survey.yaml", &shipped, err);
    if (!rc)
        rc = yaml_read_file(path ? path : shipped, &yaml_limits_config, &doc, err);
    if (!rc)
        rc = basis_take_config(doc, basis, err);
    yaml_destroy(doc);
    free(shipped);
    return rc;
}

struct judge_basis report_basis_view(const struct report_basis *basis,
                                     const struct judge_config *config)
{
    return (struct judge_basis){
        .config = config ? config : &basis->config,
        .references = &basis->references,
        .baseline = basis->has_baseline ? &basis->baseline : NULL,
        .world = basis->has_world ? &basis->world : NULL,
        .program = *basis->program ? basis->program : NULL,
    };
}

void report_basis_fini(struct report_basis *basis)
{
    judge_config_fini(&basis->config);
    judge_references_fini(&basis->references);
    inventory_fini(&basis->baseline);
    world_fini(&basis->world);
    memset(basis, 0, sizeof *basis);
}
