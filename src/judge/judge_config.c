/* Reads the mappings `judge` and `policy` of the survey configuration. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/judge.h"
#include "schema/writer.h"

/* Expected false accusations per survey, unless the configuration says otherwise. */
static const double FALSE_ALARMS = 0.01;

static const char *const worse_words[] = {"lower", "higher", "any", "none", NULL};

struct metric_fields {
    int worse;
    double floor, accuse, few, peak_share;
    const struct yaml_node *follows;
};

static int judge_read_follows(const struct yaml_node *node, struct judge_metric *out,
                              struct err *err)
{
    static const struct yaml_field fields[] = {
        {"sm_clock", YAML_F64, JUDGE_SM_CLOCK * sizeof(double), .max = 1},
        {"memory_clock", YAML_F64, JUDGE_MEMORY_CLOCK * sizeof(double), .max = 1},
        {"sms", YAML_F64, JUDGE_SMS * sizeof(double), .max = 1},
        {"memory_bus", YAML_F64, JUDGE_MEMORY_BUS * sizeof(double), .max = 1},
        {"l2", YAML_F64, JUDGE_L2 * sizeof(double), .max = 1},
        {"pcie", YAML_F64, JUDGE_PCIE * sizeof(double), .max = 1},
        {"power_limit", YAML_F64, JUDGE_POWER_LIMIT * sizeof(double), .max = 1},
    };
    return yaml_read_fields(node, fields, COUNT_OF(fields), out->follows, err);
}

/* Reads what the configuration says of a metric over what *metric, of the catalogue or empty, has.
 */
static int judge_read_metric(const struct yaml_node *node, struct judge_metric *metric,
                             bool is_known, struct err *err)
{
    static const struct yaml_field fields[] = {
        {"worse", YAML_WORD, offsetof(struct metric_fields, worse), .words = worse_words},
        {"floor", YAML_F64, offsetof(struct metric_fields, floor), .max = 1},
        {"accuse", YAML_F64, offsetof(struct metric_fields, accuse), .max = 1},
        {"few", YAML_F64, offsetof(struct metric_fields, few), .max = 1},
        {"peak_share", YAML_F64, offsetof(struct metric_fields, peak_share), .max = 1},
        {"follows", YAML_NODE, offsetof(struct metric_fields, follows)},
    };
    struct metric_fields read = {.worse = (int)metric->worse,
                                 .floor = metric->floor,
                                 .accuse = metric->accuse,
                                 .few = metric->few,
                                 .peak_share = metric->peak_share};
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    if (!is_known && !yaml_get(node, "worse"))
        return yaml_error(node, err, "key \"worse\" is missing");
    if (!is_known && read.worse != JUDGE_NONE && !yaml_get(node, "floor"))
        return yaml_error(node, err, "key \"floor\" is missing");
    bool accuse_follows = metric->accuse == metric->floor && !yaml_get(node, "accuse");
    metric->worse = (enum judge_worse)read.worse;
    metric->floor = read.floor;
    metric->accuse = accuse_follows ? read.floor : read.accuse;
    metric->few = read.few;
    metric->peak_share = read.peak_share;
    return read.follows ? judge_read_follows(read.follows, metric, err) : 0;
}

static struct judge_metric metric_of(const struct metric_row *row)
{
    struct judge_metric metric = {.worse = row->worse,
                                  .floor = row->floor,
                                  .accuse = row->accuse > 0 ? row->accuse : row->floor,
                                  .few = row->few,
                                  .place_metric = row->place_metric,
                                  .for_world = row->for_world,
                                  .keep_notes = row->keep_notes,
                                  .peak_share = row->peak_share};
    memcpy(metric.follows, row->follows, sizeof metric.follows);
    return metric;
}

/* The metrics of the catalogue, then those that only the configuration has. */
static int judge_read_metrics(const struct yaml_node *node, struct judge_config *config,
                              struct err *err)
{
    size_t given = node ? yaml_count(node) : 0;
    config->metrics = mem_array(metric_row_count + given, sizeof *config->metrics);
    for (size_t i = 0; i < metric_row_count; i++) {
        struct judge_metric *metric = &config->metrics[config->metric_count++];
        *metric = metric_of(&metric_rows[i]);
        metric->metric = str_copy(metric_rows[i].key);
    }
    int rc = 0;
    for (size_t i = 0; i < given && !rc; i++) {
        const char *name = yaml_key(node, i);
        size_t at = 0;
        while (at < metric_row_count && strcmp(metric_rows[at].key, name) != 0)
            at++;
        bool is_known = at < metric_row_count;
        if (!is_known) {
            at = config->metric_count++;
            config->metrics[at].metric = str_copy(name);
        }
        rc = judge_read_metric(yaml_at(node, i), &config->metrics[at], is_known, err);
    }
    return rc;
}

static int judge_read_node_size(const char *pattern, const struct yaml_node *node,
                                struct judge_config *config, struct err *err)
{
    enum { GPUS_MAX = 1024 };
    uint64_t gpus;
    int rc = yaml_as_u64(node, 0, GPUS_MAX, &gpus, err);
    if (rc)
        return rc;
    config->node_sizes[config->node_size_count++] =
        (struct judge_node_size){.pattern = str_copy(pattern), .gpus = (uint32_t)gpus};
    return 0;
}

/* One number for all nodes, or a mapping of patterns to numbers. */
static int judge_read_node_sizes(const struct yaml_node *node, struct judge_config *config,
                                 struct err *err)
{
    bool single = yaml_kind(node) == YAML_SCALAR;
    int rc = single ? 0 : yaml_expect(node, YAML_MAPPING, err);
    if (rc)
        return rc;
    config->node_sizes = mem_array(single ? 1 : yaml_count(node), sizeof *config->node_sizes);
    if (single)
        return judge_read_node_size("*", node, config, err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++)
        rc = judge_read_node_size(yaml_key(node, i), yaml_at(node, i), config, err);
    return rc;
}

/* Whether the configuration changed how metric number i is judged. */
static bool metric_is_changed(const struct judge_config *config, size_t i)
{
    const struct judge_metric *is = &config->metrics[i];
    if (i >= metric_row_count)
        return true;
    const struct judge_metric was = metric_of(&metric_rows[i]);
    bool same = is->worse == was.worse && is->floor == was.floor && is->accuse == was.accuse &&
                is->few == was.few && is->peak_share == was.peak_share;
    for (int k = 0; k < JUDGE_CONDITION_COUNT; k++)
        same &= is->follows[k] == was.follows[k];
    return !same;
}

static const struct yaml_node *metric_changed(const struct judge_config *config, size_t i,
                                              const struct yaml_node *metrics)
{
    return metrics && metric_is_changed(config, i) ? yaml_get(metrics, config->metrics[i].metric)
                                                   : NULL;
}

static void put_node(struct writer *writer, const char *key, const struct yaml_node *node)
{
    const char *plain = yaml_plain(node);
    if (plain && !strpbrk(plain, ",[]{}"))
        writer_raw(writer, key, plain);
    else if (yaml_kind(node) == YAML_SCALAR)
        writer_text(writer, key, yaml_text(node));
    else {
        bool mapping = yaml_kind(node) == YAML_MAPPING;
        (mapping ? writer_map : writer_list)(writer, key, WRITER_FLOW);
        for (size_t i = 0; i < yaml_count(node); i++)
            put_node(writer, mapping ? yaml_key(node, i) : NULL, yaml_at(node, i));
        writer_end(writer);
    }
}

/* What differs from the defaults, as a configuration; NULL: nothing does. */
static char *judge_own_text(const struct judge_config *config, const struct yaml_node *judge,
                            const struct yaml_node *policy)
{
    const struct yaml_node *metrics = yaml_get(judge, "metrics");
    bool own_policy = !policy_is_default(&config->policy);
    bool own = own_policy || config->node_size_count || config->false_alarms != FALSE_ALARMS;
    for (size_t i = 0; i < config->metric_count; i++)
        own |= metric_changed(config, i, metrics) != NULL;
    if (!own)
        return NULL;
    struct strbuf text = {0};
    struct writer writer = {.out = &text, .format = WRITER_YAML};
    writer_map(&writer, NULL, WRITER_FLOW);
    writer_map(&writer, "judge", WRITER_FLOW);
    writer_number(&writer, "false_alarms", config->false_alarms);
    if (config->node_size_count)
        put_node(&writer, "gpus_per_node", yaml_get(judge, "gpus_per_node"));
    writer_map(&writer, "metrics", WRITER_FLOW);
    for (size_t i = 0; i < config->metric_count; i++)
        if (metric_changed(config, i, metrics))
            put_node(&writer, config->metrics[i].metric, metric_changed(config, i, metrics));
    writer_end(&writer);
    writer_end(&writer);
    if (own_policy)
        put_node(&writer, "policy", policy);
    writer_end(&writer);
    return text.data;
}

struct judge_fields {
    double false_alarms;
    const struct yaml_node *node_sizes;
    const struct yaml_node *metrics;
};

int judge_config_read(const struct yaml_node *mapping, const struct yaml_node *policy,
                      struct judge_config *out_config, struct err *err)
{
    static const struct yaml_field fields[] = {
        {"false_alarms", YAML_F64, offsetof(struct judge_fields, false_alarms), .min = 1e-12,
         .max = 1},
        {"gpus_per_node", YAML_NODE, offsetof(struct judge_fields, node_sizes)},
        {"metrics", YAML_NODE, offsetof(struct judge_fields, metrics)},
    };
    struct judge_fields read = {.false_alarms = FALSE_ALARMS};
    int rc = yaml_read_fields(mapping, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    rc = read.metrics ? yaml_expect(read.metrics, YAML_MAPPING, err) : 0;
    if (rc)
        return rc;
    struct judge_config config = {.false_alarms = read.false_alarms};
    if (read.node_sizes)
        rc = judge_read_node_sizes(read.node_sizes, &config, err);
    if (!rc)
        rc = judge_read_metrics(read.metrics, &config, err);
    if (!rc)
        rc = policy_read(policy, &config.policy, err);
    if (rc) {
        judge_config_fini(&config);
        return rc;
    }
    config.own = judge_own_text(&config, mapping, policy);
    *out_config = config;
    return 0;
}

void judge_config_fini(struct judge_config *config)
{
    for (size_t i = 0; i < config->metric_count; i++)
        free(config->metrics[i].metric);
    free(config->metrics);
    for (size_t i = 0; i < config->node_size_count; i++)
        free(config->node_sizes[i].pattern);
    free(config->node_sizes);
    policy_fini(&config->policy);
    free(config->own);
    *config = (struct judge_config){0};
}
