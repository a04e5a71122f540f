/* Reads what an order demands of the GPUs of one model. */
#include "report/accept/order_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

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

void order_model_fini(struct order_model *model)
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

static int read_parts(const struct yaml_node *node, struct order_model *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    if (!yaml_count(node))
        return yaml_error(node, err, "expected at least one part; leave out parts if any will do");
    out->parts = mem_array(yaml_count(node), sizeof *out->parts);
    if (!out->parts)
        return err_no_memory(err);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const char *part;
        rc = yaml_as_text(yaml_at(node, i), &part, err);
        if (rc)
            return rc;
        if (str_copy_to(&out->parts[out->part_count++], part))
            return err_no_memory(err);
    }
    return 0;
}

/* "141 GB" is 141e9 bytes in a data sheet; other files of this project read it as GiB. */
static int read_bytes(const struct yaml_node *node, double *out_bytes, struct err *err)
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

static int read_pcie(const struct yaml_node *node, struct order_model *out, struct err *err)
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

static int unknown_metric(const struct judge_config *config, const struct yaml_node *key,
                          struct err *err)
{
    const char **names = mem_array(config->metric_count, sizeof *names);
    if (!names)
        return err_no_memory(err);
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

static int check_figure(const struct yaml_node *node, const struct order_figure *figure,
                        const char *unit, struct err *err)
{
    const bool limited = !isnan(figure->at_least) || !isnan(figure->at_most);
    if (!limited && isnan(figure->spread))
        return yaml_error(node, err, "expected at_least, at_most or spread");
    if (limited && !unit)
        return yaml_error(node, err, "key \"unit\" is missing: at_least and at_most need one");
    if (figure->at_least > figure->at_most)
        return yaml_error(node, err, "at_least is larger than at_most");
    return 0;
}

static int read_figure(const struct yaml_node *node, const char *metric, struct order_figure *out,
                       struct err *err)
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
    if (!rc)
        rc = check_figure(node, &read.figure, read.unit, err);
    if (rc)
        return rc;
    *out = read.figure;
    return str_copy_to(&out->metric, metric) || str_copy_to(&out->unit, read.unit)
               ? err_no_memory(err)
               : 0;
}

static int read_figures(const struct yaml_node *node, const struct judge_config *config,
                        struct order_model *out, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    if (rc)
        return rc;
    out->figures = mem_array(yaml_count(node), sizeof *out->figures);
    if (!out->figures)
        return err_no_memory(err);
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        size_t known = 0;
        while (known < config->metric_count &&
               !str_equal(config->metrics[known].metric, yaml_key(node, i)))
            known++;
        rc = known == config->metric_count ? unknown_metric(config, yaml_key_node(node, i), err)
                                           : read_figure(yaml_at(node, i), yaml_key(node, i),
                                                         &out->figures[out->figure_count++], err);
    }
    return rc;
}

int order_model_read(const struct yaml_node *node, const struct judge_config *config,
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
    if (str_copy_to(&out_model->name, read.name))
        return err_no_memory(err);
    if (read.parts)
        rc = read_parts(read.parts, out_model, err);
    if (!rc && read.memory)
        rc = read_bytes(read.memory, &out_model->facts[ORDER_MEMORY], err);
    if (!rc && read.l2)
        rc = read_bytes(read.l2, &out_model->facts[ORDER_L2], err);
    if (!rc && read.pcie)
        rc = read_pcie(read.pcie, out_model, err);
    if (!rc && read.figures)
        rc = read_figures(read.figures, config, out_model, err);
    return rc;
}
