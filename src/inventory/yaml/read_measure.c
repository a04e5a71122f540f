/* Reads the measures in the nested `memory` mapping of a model. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/names.h"
#include "inventory/yaml/field.h"

static int read_bound(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    static const char *const words[] = {"at_least"};
    size_t index;
    int rc = yaml_as_word(node, words, 1, &index, err);
    if (!rc)
        measure->bound = MEASURE_AT_LEAST;
    return rc;
}

static int read_status(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    size_t index;
    int rc = yaml_as_word(node, measure_status_names, MEASURE_STATUS_COUNT, &index, err);
    if (!rc)
        measure->status = (enum measure_status)index;
    return rc;
}

static int read_confidence(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    if (yaml_is_null(node)) {
        measure->confidence = NAN;
        return 0;
    }
    return yaml_as_f64(node, 0, 1, &measure->confidence, err);
}

static int read_n(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    uint64_t n;
    int rc = yaml_as_u64(node, 0, UINT32_MAX, &n, err);
    if (!rc)
        measure->n = (uint32_t)n;
    return rc;
}

static int read_value(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    if (yaml_kind(node) != YAML_SEQUENCE)
        return field_number(node, &measure->value, err);
    measure->kind = MEASURE_WORDS;
    return field_texts(node, &measure->words, &measure->word_count, err);
}

/* Any other key is a note. */
static int read_member(const char *key, const struct yaml_node *node, struct measure *measure,
                       struct err *err)
{
    if (strcmp(key, "value") == 0)
        return read_value(node, measure, err);
    if (strcmp(key, "unit") == 0)
        return field_text_or_null(node, &measure->unit, err);
    if (strcmp(key, "spread") == 0)
        return field_number(node, &measure->spread, err);
    if (strcmp(key, "confidence") == 0)
        return read_confidence(node, measure, err);
    if (strcmp(key, "n") == 0)
        return read_n(node, measure, err);
    if (strcmp(key, "method") == 0)
        return field_text_or_null(node, &measure->method, err);
    if (strcmp(key, "status") == 0)
        return read_status(node, measure, err);
    if (strcmp(key, "reason") == 0)
        return field_text_or_null(node, &measure->reason, err);
    if (strcmp(key, "bound") == 0)
        return read_bound(node, measure, err);
    return field_fact(key, node, &measure->notes, err);
}

static int check_measure(const struct yaml_node *node, const struct measure *measure,
                         struct err *err)
{
    bool valued = measure_status_valued(measure->status);
    if (!yaml_get(node, "value"))
        return yaml_error(node, err, "key \"value\" is missing");
    if (measure->kind == MEASURE_NUMBER && valued && isnan(measure->value))
        return yaml_error(node, err, "a value that is null needs a status that says why");
    if (!valued && !isnan(measure->value))
        return yaml_error(node, err, "a measure that is %s has no value: expected null",
                          measure_status_name(measure->status));
    static const char *const needed[] = {"unit", "spread", "confidence", "n", "method"};
    for (size_t i = 0; valued && measure->kind == MEASURE_NUMBER && i < 5; i++)
        if (!yaml_get(node, needed[i]))
            return yaml_error(node, err, "key \"%s\" is missing", needed[i]);
    return 0;
}

static int append(struct measures *measures, struct measure *measure, struct err *err)
{
    struct measure *grown =
        mem_grow(measures->items, &measures->capacity, measures->count + 1, sizeof *grown);
    if (!grown)
        return err_no_memory(err);
    measures->items = grown;
    grown[measures->count++] = *measure;
    memset(measure, 0, sizeof *measure);
    return 0;
}

static int read_mapping(const struct yaml_node *node, struct measure *measure, struct err *err)
{
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = read_member(yaml_key(node, i), yaml_at(node, i), measure, err);
        if (rc) {
            err_prefix(err, "%s", yaml_key(node, i));
            return rc;
        }
    }
    return check_measure(node, measure, err);
}

static int read_measure(const char *metric, const struct yaml_node *node, struct measures *measures,
                        struct err *err)
{
    if (measures_get(measures, metric))
        return yaml_error(node, err, "the measure \"%.60s\" occurs twice", metric);
    struct measure measure = {.metric = str_copy(metric), .value = NAN};
    if (!measure.metric)
        return err_no_memory(err);
    int rc = yaml_kind(node) == YAML_SEQUENCE ? read_value(node, &measure, err)
                                              : read_mapping(node, &measure, err);
    if (!rc)
        rc = append(measures, &measure, err);
    measure_fini(&measure);
    return rc;
}

/* A measure contains scalars; a group contains only measures and groups. */
static bool is_measure(const struct yaml_node *node)
{
    if (yaml_kind(node) != YAML_MAPPING)
        return true;
    for (size_t i = 0; i < yaml_count(node); i++)
        if (yaml_kind(yaml_at(node, i)) == YAML_SCALAR)
            return true;
    return false;
}

static int read_group(const struct yaml_node *group, const char *prefix, struct measures *measures,
                      struct err *err)
{
    int rc = yaml_expect(group, YAML_MAPPING, err);
    for (size_t i = 0; !rc && i < yaml_count(group); i++) {
        const struct yaml_node *node = yaml_at(group, i);
        char *metric = str_format("%s%s%s", prefix, *prefix ? "." : "", yaml_key(group, i));
        if (!metric)
            return err_no_memory(err);
        if (yaml_kind(node) == YAML_SCALAR)
            rc = yaml_error(node, err, "%.60s: expected a measure {value: ...}", metric);
        else if (yaml_kind(node) == YAML_MAPPING && !yaml_count(node))
            rc = yaml_error(node, err, "%.60s: expected a measure, found an empty mapping", metric);
        else if (is_measure(node))
            rc = read_measure(metric, node, measures, err);
        else
            rc = read_group(node, metric, measures, err);
        free(metric);
    }
    return rc;
}

int field_measures(const struct yaml_node *node, struct measures *measures, struct err *err)
{
    return read_group(node, "", measures, err);
}
