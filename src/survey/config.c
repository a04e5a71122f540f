/* The survey's configuration file. */
#include "survey/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/shipped.h"
#include "base/str.h"
#include "base/yaml.h"
#include "probes/probes.h"

struct config_nodes {
    const struct yaml_node *time_limit_s;
    const struct yaml_node *start_timeout;
    const struct yaml_node *load;
    const struct yaml_node *memory;
    const struct yaml_node *judge;
    const struct yaml_node *policy;
};

/* A misspelt metric would silently not be judged. */
static int config_check_metrics(const struct yaml_node *judge, struct err *err)
{
    const struct yaml_node *metrics = yaml_get(judge, "metrics");
    bool named = metrics && yaml_kind(metrics) == YAML_MAPPING; /* judge_config_read checks it */
    for (size_t i = 0; named && i < yaml_count(metrics); i++) {
        const char *nearest, *name = yaml_key(metrics, i);
        if (probe_reports(name, &nearest))
            continue;
        if (nearest)
            return yaml_error(yaml_at(metrics, i), err,
                              "no probe reports \"%.60s\"; did you mean \"%s\"?", name, nearest);
        return yaml_error(yaml_at(metrics, i), err, "no probe reports \"%.60s\"", name);
    }
    return 0;
}

void survey_config_defaults(struct survey_config *out_config)
{
    *out_config = (struct survey_config){.start_timeout = {.least_s = 240, .per_rank_s = 0.1},
                                         .load_stagger_s = 5,
                                         .region_bytes = UINT64_C(1) << 30};
}

static int config_read_memory(const struct yaml_node *memory, struct survey_config *config,
                              struct err *err)
{
    static const struct yaml_field fields[] = {
        {"region", YAML_BYTES, offsetof(struct survey_config, region_bytes), true, 0x1p26, 0x1p34},
    };
    int rc = yaml_read_fields(memory, fields, COUNT_OF(fields), config, err);
    if (rc)
        return rc;
    if (config->region_bytes & (config->region_bytes - 1))
        return yaml_error(memory, err, "region: expected a power of two, such as 512 MiB or 1 GiB");
    return 0;
}

static int config_read_document(const struct yaml_node *root, struct survey_config *out,
                                struct err *err)
{
    static const struct yaml_field top[] = {
        {"time_limit_s", YAML_NODE, offsetof(struct config_nodes, time_limit_s), .required = true},
        {"start_timeout_s", YAML_NODE, offsetof(struct config_nodes, start_timeout)},
        {"start_patience_s", YAML_NODE,
         offsetof(struct config_nodes, start_timeout)}, /* till 0.2 */
        {"load", YAML_NODE, offsetof(struct config_nodes, load)},
        {"memory", YAML_NODE, offsetof(struct config_nodes, memory)},
        {"judge", YAML_NODE, offsetof(struct config_nodes, judge), .required = true},
        {"policy", YAML_NODE, offsetof(struct config_nodes, policy)},
    };
    static const struct yaml_field limits[] = {
        {"quick", YAML_F64, PROFILE_QUICK * sizeof(double), true, 0.1, 86400},
        {"standard", YAML_F64, PROFILE_STANDARD * sizeof(double), true, 0.1, 86400},
        {"full", YAML_F64, PROFILE_FULL * sizeof(double), true, 0.1, 86400},
    };
    static const struct yaml_field start_timeout[] = {
        {"least", YAML_F64, offsetof(struct survey_start_timeout, least_s), true, 1, 86400},
        {"per_rank", YAML_F64, offsetof(struct survey_start_timeout, per_rank_s), true, 0, 60},
    };
    static const struct yaml_field load[] = {
        {"stagger_s", YAML_F64, offsetof(struct survey_config, load_stagger_s), true, 0, 600},
    };
    struct config_nodes nodes = {0};
    struct survey_config config;
    survey_config_defaults(&config); /* records of version 0.1.0 do not have start_timeout_s */
    int rc = yaml_read_fields(root, top, COUNT_OF(top), &nodes, err);
    if (!rc)
        rc = yaml_read_fields(nodes.time_limit_s, limits, COUNT_OF(limits), config.time_limit_s,
                              err);
    if (!rc && nodes.start_timeout)
        rc = yaml_read_fields(nodes.start_timeout, start_timeout, COUNT_OF(start_timeout),
                              &config.start_timeout, err);
    if (!rc && nodes.load)
        rc = yaml_read_fields(nodes.load, load, COUNT_OF(load), &config, err);
    if (!rc && nodes.memory)
        rc = config_read_memory(nodes.memory, &config, err);
    if (!rc)
        rc = config_check_metrics(nodes.judge, err);
    if (!rc)
        rc = judge_config_read(nodes.judge, nodes.policy, &config.judge, err);
    if (rc)
        judge_config_fini(&config.judge);
    else
        *out = config;
    return rc;
}

/* Takes ownership of the text, also on failure. */
static int config_read_text(char *text, size_t length, const char *name,
                            struct survey_config *out_config, struct err *err)
{
    struct survey_config config = {0};
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text ? text : "", length, name, &yaml_limits_config, &doc, err);
    if (!rc)
        rc = config_read_document(yaml_root(doc), &config, err);
    yaml_destroy(doc);
    if (rc) {
        free(text);
        return rc;
    }
    config.text = text;
    config.name = str_copy(name);
    *out_config = config;
    return 0;
}

int survey_config_load(const char *path, struct survey_config *out_config, struct err *err)
{
    struct strbuf text = {0};
    char *found = NULL;
    int rc = path ? 0 : shipped_path("survey.yaml", &found, err);
    if (rc)
        return rc;
    rc = yaml_load_text(path ? path : found, &yaml_limits_config, &text, err);
    if (rc)
        strbuf_fini(&text);
    else
        rc = config_read_text(text.data, text.length, path ? path : found, out_config, err);
    free(found);
    return rc;
}

int survey_config_read(const char *text, const char *name, struct survey_config *out_config,
                       struct err *err)
{
    return config_read_text(str_copy(text), strlen(text), name, out_config, err);
}

void survey_config_fini(struct survey_config *config)
{
    judge_config_fini(&config->judge);
    free(config->name);
    free(config->text);
    memset(config, 0, sizeof *config);
}
