/* Reads an order: its head, the nodes, and what belongs together. */
#include "report/accept/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "report/accept/order_model.h"

/* fnmatch takes exponential time for many stars. */
enum { PATTERN_MAX = 200, STARS_MAX = 6 };
#define GPUS_MAX 1e6 /* a constant expression for the tables */

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

static int read_head(const struct yaml_node *node, struct order *order, struct err *err)
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
    return str_copy_to(&order->number, head.number) ||
                   str_copy_to(&order->supplier, head.supplier) ||
                   str_copy_to(&order->customer, head.customer) ||
                   str_copy_to(&order->delivered, head.delivered)
               ? err_no_memory(err)
               : 0;
}

static int read_models(const struct yaml_node *node, const struct judge_config *config,
                       struct order *order, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one model");
    order->models = mem_array(yaml_count(node), sizeof *order->models);
    if (!order->models)
        return err_no_memory(err);
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

/* -ENOMEM, or -EINVAL with the nearest name. */
static int unknown_model(const struct order *order, const struct yaml_node *key, struct err *err)
{
    const char **names = mem_array(order->model_count, sizeof *names);
    if (!names)
        return err_no_memory(err);
    for (size_t i = 0; i < order->model_count; i++)
        names[i] = order->models[i].name;
    const char *near = str_nearest(yaml_text(key), names, order->model_count);
    int rc = near ? yaml_error(key, err, "no model \"%.60s\" in models; did you mean \"%.60s\"?",
                               yaml_text(key), near)
                  : yaml_error(key, err, "no model \"%.60s\" in models", yaml_text(key));
    free(names);
    return rc;
}

static int read_node_gpus(const struct yaml_node *node, const struct order *order,
                          struct order_nodes *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one model with its number of GPUs");
    out->gpus = mem_array(order->model_count, sizeof *out->gpus);
    if (!out->gpus)
        return err_no_memory(err);
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t gpus;
        size_t model = 0;
        while (model < order->model_count &&
               !str_equal(order->models[model].name, yaml_key(node, i)))
            model++;
        if (model == order->model_count)
            return unknown_model(order, yaml_key_node(node, i), err);
        rc = yaml_as_u64(yaml_at(node, i), 1, 1024, &gpus, err);
        if (rc)
            return rc;
        out->gpus[model] = (uint32_t)gpus;
    }
    return 0;
}

static bool is_pattern(const char *text)
{
    size_t stars = 0;
    for (const char *at = text; *at; at++)
        stars += *at == '*';
    return *text && strlen(text) <= PATTERN_MAX && stars <= STARS_MAX;
}

static int read_node(const struct yaml_node *node, const struct order *order,
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
    if (!is_pattern(read.names))
        return yaml_error(yaml_get(node, "names"), err,
                          "expected a name, or a pattern with at most %d stars such as "
                          "\"gpu[0-9]*\"",
                          STARS_MAX);
    out->count = read.count;
    if (str_copy_to(&out->names, read.names))
        return err_no_memory(err);
    return read_node_gpus(read.gpus, order, out, err);
}

static int read_nodes(const struct yaml_node *node, struct order *order, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one entry; leave out nodes if any will do");
    order->nodes = mem_array(yaml_count(node), sizeof *order->nodes);
    if (!order->nodes)
        return err_no_memory(err);
    for (size_t i = 0; i < yaml_count(node); i++) {
        rc = read_node(yaml_at(node, i), order, &order->nodes[order->node_count++], err);
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
static int settle_counts(const struct yaml_node *models, struct order *order, struct err *err)
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

static int read_allowed(const struct yaml_node *node, struct order *order, struct err *err)
{
    const char *kinds[ORDER_KINDS];
    for (int kind = 0; kind < ORDER_KINDS; kind++)
        kinds[kind] = inventory_kind_name((enum inventory_kind)kind);
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        size_t kind;
        rc = yaml_as_word(yaml_at(node, i), kinds, ORDER_KINDS, &kind, err);
        if (!rc)
            order->outliers_allowed[kind] = true;
    }
    return rc;
}

static int read_order(const struct yaml_node *root, const struct judge_config *config,
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
        rc = read_head(read.head, order, err);
    if (!rc)
        rc = read_models(read.models, config, order, err);
    if (!rc && read.nodes)
        rc = read_nodes(read.nodes, order, err);
    if (!rc && yaml_get(root, "other_nodes") && !read.nodes)
        rc = yaml_error(yaml_get(root, "other_nodes"), err, "other_nodes needs nodes");
    if (!rc && read.allowed)
        rc = read_allowed(read.allowed, order, err);
    order->other_nodes_ignored = read.others == 1;
    return rc ? rc : settle_counts(read.models, order, err);
}

static int take(struct yaml_doc *doc, const struct judge_config *config, struct order *out_order,
                struct err *err)
{
    struct order order = {0};
    int rc = read_order(yaml_root(doc), config, &order, err);
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
    return rc ? rc : take(doc, config, out_order, err);
}

int order_read_file(const char *path, const struct judge_config *config, struct order *out_order,
                    struct err *err)
{
    struct yaml_doc *doc = NULL;
    int rc = yaml_read_file(path, &yaml_limits_config, &doc, err);
    return rc ? rc : take(doc, config, out_order, err);
}
