/* Reads an order: its head, its models with what is demanded of their GPUs, the nodes, and what
 * belongs together. */
#include "report/accept/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

/* fnmatch takes exponential time for many stars. */
enum { PATTERN_MAX = 200, STARS_MAX = 6 };
#define GPUS_MAX 1e6 /* a constant expression for the tables */

#define LARGEST 1e30 /* constant expressions for the tables */
#define FACT_MAX 1e9
#define FACT(which) offsetof(struct order_model, facts) + (which) * sizeof(double)

const struct order_fact_source order_fact_sources[ORDER_FACT_COUNT] = {
    [ORDER_MEMORY] = {INVENTORY_HARDWARE, "memory_bytes", "B", "memory"},
    [ORDER_SMS] = {INVENTORY_HARDWARE, "sms", "", "SMs"},
    [ORDER_L2] = {INVENTORY_HARDWARE, "l2_bytes", "B", "L2"},
    [ORDER_MEMORY_BUS] = {INVENTORY_HARDWARE, "memory_bus_bits", "bit", "memory bus"},
    [ORDER_PCIE_GENERATION] = {INVENTORY_CONFIG, "pcie_gen", "", "PCIe generation"},
    [ORDER_PCIE_WIDTH] = {INVENTORY_CONFIG, "pcie_width", "", "PCIe lanes"},
    [ORDER_NVLINKS] = {INVENTORY_HEALTH, "nvlinks_active", "", "active NVLinks"},
    [ORDER_POWER_LIMIT] = {INVENTORY_CONFIG, "power_limit_w", "W", "power limit"},
};

static void order_model_fini(struct order_model *model)
{
    for (size_t i = 0; i < model->part_count; i++)
        free(model->parts[i]);
    for (size_t i = 0; i < model->figure_count; i++) {
        free(model->figures[i].metric);
        free(model->figures[i].unit);
    }
    free(model->name);
    free(model->parts);
    free(model->figures);
    *model = (struct order_model){0};
}

static int model_read_parts(const struct yaml_node *node, struct order_model *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one part; leave out parts if any will do");
    out->parts = mem_array(yaml_count(node), sizeof *out->parts);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const char *part;
        rc = yaml_as_text(yaml_at(node, i), &part, err);
        if (rc)
            return rc;
        out->parts[out->part_count++] = str_copy(part);
    }
    return 0;
}

/* "141 GB" is 141e9 bytes in a data sheet; other files of this project read it as GiB. */
static int model_read_bytes(const struct yaml_node *node, double *out_bytes, struct err *err)
{
    const char *text = yaml_text(node);
    const size_t length = text ? strlen(text) : 0;
    uint64_t bytes;
    if (length > 1 && strpbrk(text, "kKMGTP") && (text[length - 1] != 'B' || !strchr(text, 'i')))
        return yaml_error(node, err,
                          "\"%.40s\" can mean powers of ten or of two: write KiB, MiB or GiB, or "
                          "the number of bytes",
                          text);
    int rc = yaml_as_bytes(node, 1, INT64_MAX, &bytes, err);
    if (!rc)
        *out_bytes = (double)bytes;
    return rc;
}

static int model_read_pcie(const struct yaml_node *node, struct order_model *out, struct err *err)
{
    static const struct yaml_field fields[] = {
        {"generation", YAML_F64, FACT(ORDER_PCIE_GENERATION), .min = 1, .max = 10},
        {"width", YAML_F64, FACT(ORDER_PCIE_WIDTH), .min = 1, .max = 32},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), out, err);
    if (!rc && !yaml_count(node))
        rc = yaml_error(node, err, "expected generation, width or both");
    return rc;
}

static int order_unknown_metric(const struct judge_config *config, const struct yaml_node *key,
                                struct err *err)
{
    const char **names = mem_array(config->metric_count, sizeof *names);
    for (size_t i = 0; i < config->metric_count; i++)
        names[i] = config->metrics[i].metric;
    const char *near = str_nearest(yaml_text(key), names, config->metric_count);
    int rc = near ? yaml_error(key, err, "unknown figure \"%.60s\"; did you mean \"%s\"?",
                               yaml_text(key), near)
                  : yaml_error(key, err,
                               "unknown figure \"%.60s\"; judge.metrics of the survey "
                               "configuration lists them",
                               yaml_text(key));
    free(names);
    return rc;
}

static int order_read_figure(const struct yaml_node *node, const char *metric,
                             struct order_figure *out, struct err *err)
{
    struct fields {
        struct order_figure figure;
        const char *unit;
    } read = {.figure = {.at_least = NAN, .at_most = NAN, .spread = NAN}};
    static const struct yaml_field fields[] = {
        {"at_least", YAML_F64, offsetof(struct fields, figure.at_least), .min = 0, .max = LARGEST},
        {"at_most", YAML_F64, offsetof(struct fields, figure.at_most), .min = 0, .max = LARGEST},
        {"unit", YAML_STRING, offsetof(struct fields, unit)},
        {"spread", YAML_F64, offsetof(struct fields, figure.spread), .min = 0, .max = 10},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    const bool limited = !isnan(read.figure.at_least) || !isnan(read.figure.at_most);
    if (!limited && isnan(read.figure.spread))
        return yaml_error(node, err, "expected at_least, at_most or spread");
    if (limited && !read.unit)
        return yaml_error(node, err, "key \"unit\" is missing: at_least and at_most need one");
    if (read.figure.at_least > read.figure.at_most)
        return yaml_error(node, err, "at_least is larger than at_most");
    *out = read.figure;
    out->metric = str_copy(metric);
    out->unit = str_copy(read.unit);
    return 0;
}

static int model_read_figures(const struct yaml_node *node, const struct judge_config *config,
                              struct order_model *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc)
        return rc;
    out->figures = mem_array(yaml_count(node), sizeof *out->figures);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        size_t known = 0;
        while (known < config->metric_count &&
               !str_equal(config->metrics[known].metric, yaml_key(node, i)))
            known++;
        rc = known == config->metric_count
                 ? order_unknown_metric(config, yaml_key_node(node, i), err)
                 : order_read_figure(yaml_at(node, i), yaml_key(node, i),
                                     &out->figures[out->figure_count++], err);
    }
    return rc;
}

/* Reads an entry of `models`. *out_model, which must be empty, may be partly filled on failure. */
static int order_model_read(const struct yaml_node *node, const struct judge_config *config,
                            struct order_model *out_model, struct err *err)
{
    struct fields {
        struct order_model model;
        const char *name;
        const struct yaml_node *parts, *memory, *l2, *pcie, *figures;
    } read = {0};
    static const struct yaml_field fields[] = {
        {"name", YAML_STRING, offsetof(struct fields, name), true},
        {"count", YAML_U32, offsetof(struct fields, model.count), .min = 1, .max = 1e6},
        {"parts", YAML_NODE, offsetof(struct fields, parts)},
        {"memory", YAML_NODE, offsetof(struct fields, memory)},
        {"sms", YAML_F64, FACT(ORDER_SMS), .min = 1, .max = FACT_MAX},
        {"l2", YAML_NODE, offsetof(struct fields, l2)},
        {"memory_bus_bits", YAML_F64, FACT(ORDER_MEMORY_BUS), .min = 1, .max = FACT_MAX},
        {"pcie", YAML_NODE, offsetof(struct fields, pcie)},
        {"nvlinks", YAML_F64, FACT(ORDER_NVLINKS), .min = 1, .max = FACT_MAX},
        {"power_limit_w", YAML_F64, FACT(ORDER_POWER_LIMIT), .min = 1, .max = FACT_MAX},
        {"figures", YAML_NODE, offsetof(struct fields, figures)},
    };
    for (int fact = 0; fact < ORDER_FACT_COUNT; fact++)
        read.model.facts[fact] = NAN;
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    if (!*read.name)
        return yaml_error(node, err, "expected the name that the driver reports");
    *out_model = read.model;
    out_model->name = str_copy(read.name);
    if (read.parts)
        rc = model_read_parts(read.parts, out_model, err);
    if (!rc && read.memory)
        rc = model_read_bytes(read.memory, &out_model->facts[ORDER_MEMORY], err);
    if (!rc && read.l2)
        rc = model_read_bytes(read.l2, &out_model->facts[ORDER_L2], err);
    if (!rc && read.pcie)
        rc = model_read_pcie(read.pcie, out_model, err);
    if (!rc && read.figures)
        rc = model_read_figures(read.figures, config, out_model, err);
    return rc;
}

void order_fini(struct order *order)
{
    for (size_t i = 0; i < order->model_count; i++)
        order_model_fini(&order->models[i]);
    for (size_t i = 0; i < order->node_count; i++) {
        free(order->nodes[i].names);
        free(order->nodes[i].gpus);
    }
    free(order->models);
    free(order->nodes);
    free(order->number);
    free(order->supplier);
    free(order->customer);
    free(order->delivered);
    *order = (struct order){0};
}

static int order_read_head(const struct yaml_node *node, struct order *order, struct err *err)
{
    struct head {
        uint32_t schema;
        const char *number, *supplier, *customer, *delivered;
    } head = {0};
    static const struct yaml_field fields[] = {
        {"schema", YAML_U32, offsetof(struct head, schema), true, 1, 1e6},
        {"number", YAML_STRING, offsetof(struct head, number)},
        {"supplier", YAML_STRING, offsetof(struct head, supplier)},
        {"customer", YAML_STRING, offsetof(struct head, customer)},
        {"delivered", YAML_STRING, offsetof(struct head, delivered)},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &head, err);
    if (rc)
        return rc;
    if (head.schema > ORDER_SCHEMA)
        return yaml_error(node, err,
                          "the file has schema %u, newer than the %d that this program knows: read "
                          "it with a newer gpumemtopo",
                          head.schema, ORDER_SCHEMA);
    order->number = str_copy(head.number);
    order->supplier = str_copy(head.supplier);
    order->customer = str_copy(head.customer);
    order->delivered = str_copy(head.delivered);
    return 0;
}

static int order_read_models(const struct yaml_node *node, const struct judge_config *config,
                             struct order *order, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one model");
    order->models = mem_array(yaml_count(node), sizeof *order->models);
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = order_model_read(yaml_at(node, i), config, &order->models[order->model_count++], err);
        if (rc)
            return rc;
        for (size_t k = 0; k < i; k++)
            if (str_equal(order->models[k].name, order->models[i].name))
                return yaml_error(yaml_at(node, i), err, "a second entry for \"%.60s\"",
                                  order->models[i].name);
    }
    return 0;
}

/* -EINVAL with the nearest name. */
static int order_unknown_model(const struct order *order, const struct yaml_node *key,
                               struct err *err)
{
    const char **names = mem_array(order->model_count, sizeof *names);
    for (size_t i = 0; i < order->model_count; i++)
        names[i] = order->models[i].name;
    const char *near = str_nearest(yaml_text(key), names, order->model_count);
    int rc = near ? yaml_error(key, err, "no model \"%.60s\" in models; did you mean \"%.60s\"?",
                               yaml_text(key), near)
                  : yaml_error(key, err, "no model \"%.60s\" in models", yaml_text(key));
    free(names);
    return rc;
}

static int order_read_node_gpus(const struct yaml_node *node, const struct order *order,
                                struct order_nodes *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one model with its number of GPUs");
    out->gpus = mem_array(order->model_count, sizeof *out->gpus);
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t gpus;
        size_t model = 0;
        while (model < order->model_count &&
               !str_equal(order->models[model].name, yaml_key(node, i)))
            model++;
        if (model == order->model_count)
            return order_unknown_model(order, yaml_key_node(node, i), err);
        rc = yaml_as_u64(yaml_at(node, i), 1, 1024, &gpus, err);
        if (rc)
            return rc;
        out->gpus[model] = (uint32_t)gpus;
    }
    return 0;
}

static bool is_node_pattern(const char *text)
{
    size_t stars = 0;
    for (const char *at = text; *at; at++)
        stars += *at == '*';
    return *text && strlen(text) <= PATTERN_MAX && stars <= STARS_MAX;
}

static int order_read_node(const struct yaml_node *node, const struct order *order,
                           struct order_nodes *out, struct err *err)
{
    struct fields {
        const char *names;
        uint32_t count;
        const struct yaml_node *gpus;
    } read = {0};
    static const struct yaml_field fields[] = {
        {"names", YAML_STRING, offsetof(struct fields, names), true},
        {"count", YAML_U32, offsetof(struct fields, count), true, 1, GPUS_MAX},
        {"gpus", YAML_NODE, offsetof(struct fields, gpus), true},
    };
    int rc = yaml_read_fields(node, fields, COUNT_OF(fields), &read, err);
    if (rc)
        return rc;
    if (!is_node_pattern(read.names))
        return yaml_error(yaml_get(node, "names"), err,
                          "expected a name, or a pattern with at most %d stars such as "
                          "\"gpu[0-9]*\"",
                          STARS_MAX);
    out->count = read.count;
    out->names = str_copy(read.names);
    return order_read_node_gpus(read.gpus, order, out, err);
}

static int order_read_nodes(const struct yaml_node *node, struct order *order, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one entry; leave out nodes if any will do");
    order->nodes = mem_array(yaml_count(node), sizeof *order->nodes);
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = order_read_node(yaml_at(node, i), order, &order->nodes[order->node_count++], err);
        if (rc)
            return rc;
        for (size_t k = 0; k < i; k++)
            if (str_equal(order->nodes[k].names, order->nodes[i].names))
                return yaml_error(yaml_at(node, i), err, "a second entry for \"%.60s\"",
                                  order->nodes[i].names);
    }
    return 0;
}

/* The numbers of `models` and of `nodes` must agree; one that is not given follows from the nodes.
 * A spread needs two GPUs. */
static int order_settle_counts(const struct yaml_node *models, struct order *order, struct err *err)
{
    for (size_t m = 0; m < order->model_count; m++) {
        struct order_model *model = &order->models[m];
        const struct yaml_node *node = yaml_at(models, m);
        uint64_t sum = 0;
        for (size_t n = 0; n < order->node_count; n++)
            sum += (uint64_t)order->nodes[n].count * order->nodes[n].gpus[m];
        if (!model->count && !order->node_count)
            return yaml_error(node, err, "key \"count\" is missing, and there are no nodes");
        if (order->node_count && !sum)
            return yaml_error(node, err, "no entry of nodes has \"%.60s\"", model->name);
        if (sum && model->count && sum != model->count)
            return yaml_error(node, err, "count is %u, but the nodes have %llu of \"%.60s\"",
                              model->count, (unsigned long long)sum, model->name);
        if (sum > GPUS_MAX)
            return yaml_error(node, err, "the nodes have more than %.0f GPUs", GPUS_MAX);
        if (sum)
            model->count = (uint32_t)sum;
        for (size_t i = 0; i < model->figure_count && model->count == 1; i++)
            if (model->figures[i].spread >= 0)
                return yaml_error(node, err, "the spread of %.60s needs at least two GPUs",
                                  model->figures[i].metric);
    }
    return 0;
}

static int order_read_allowed(const struct yaml_node *node, struct order *order, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        size_t verdict;
        rc = yaml_as_word(yaml_at(node, i), verdict_names, VERDICT_BUILT_SLOWER, &verdict, err);
        if (!rc)
            order->outliers_allowed[verdict] = true;
    }
    return rc;
}

static int order_read_root(const struct yaml_node *root, const struct judge_config *config,
                           struct order *order, struct err *err)
{
    struct fields {
        const struct yaml_node *head, *models, *nodes, *allowed;
        int others;
    } read = {0};
    static const char *const others[] = {"refused", "ignored", NULL};
    static const struct yaml_field fields[] = {
        {"gpumemtopo_order", YAML_NODE, offsetof(struct fields, head), true},
        {"models", YAML_NODE, offsetof(struct fields, models), true},
        {"nodes", YAML_NODE, offsetof(struct fields, nodes)},
        {"other_nodes", YAML_WORD, offsetof(struct fields, others), .words = others},
        {"outliers_allowed", YAML_NODE, offsetof(struct fields, allowed)},
    };
    int rc = yaml_read_fields(root, fields, COUNT_OF(fields), &read, err);
    if (!rc)
        rc = order_read_head(read.head, order, err);
    if (!rc)
        rc = order_read_models(read.models, config, order, err);
    if (!rc && read.nodes)
        rc = order_read_nodes(read.nodes, order, err);
    if (!rc && yaml_get(root, "other_nodes") && !read.nodes)
        rc = yaml_error(yaml_get(root, "other_nodes"), err, "other_nodes needs nodes");
    if (!rc && read.allowed)
        rc = order_read_allowed(read.allowed, order, err);
    order->other_nodes_ignored = read.others == 1;
    return rc ? rc : order_settle_counts(read.models, order, err);
}

static int order_take(struct yaml_doc *doc, const struct judge_config *config,
                      struct order *out_order, struct err *err)
{
    struct order order = {0};
    int rc = order_read_root(yaml_root(doc), config, &order, err);
    yaml_destroy(doc);
    if (rc)
        order_fini(&order);
    else
        *out_order = order;
    return rc;
}

int order_read_text(const char *text, size_t length, const char *name,
                    const struct judge_config *config, struct order *out_order, struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_text(text, length, name, &yaml_limits_config, &doc, err);
    return rc ? rc : order_take(doc, config, out_order, err);
}

int order_read_file(const char *path, const struct judge_config *config, struct order *out_order,
                    struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_file(path, &yaml_limits_config, &doc, err);
    return rc ? rc : order_take(doc, config, out_order, err);
}
