/* Reads typed values from YAML, and mappings into structs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

static const char *yaml_kind_name(enum yaml_kind kind)
{
    static const char *const names[] = {"a single value", "a list", "a mapping (key: value)"};
    return names[kind];
}

int yaml_expect(const struct yaml_node *node, enum yaml_kind kind, struct err *err)
{
    if (yaml_kind(node) == kind)
        return 0;
    return yaml_error(node, err, "expected %s, found %s", yaml_kind_name(kind),
                      yaml_kind_name(yaml_kind(node)));
}

bool yaml_is_null(const struct yaml_node *node)
{
    const char *text = yaml_plain(node);
    return text && (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

int yaml_as_text(const struct yaml_node *node, const char **out_text, struct err *err)
{
    if (yaml_expect(node, YAML_SCALAR, err))
        return -EINVAL;
    if (yaml_is_null(node))
        return yaml_error(node, err, "expected a text, found nothing");
    *out_text = yaml_text(node);
    return 0;
}

int yaml_as_bool(const struct yaml_node *node, bool *out_value, struct err *err)
{
    const char *text = yaml_plain(node);
    bool yes = text && strcmp(text, "true") == 0;
    if (!yes && !(text && strcmp(text, "false") == 0))
        return yaml_error(node, err, "expected true or false");
    *out_value = yes;
    return 0;
}

static const char *shown(const struct yaml_node *node)
{
    const char *text = yaml_text(node);
    return text ? text : yaml_kind_name(yaml_kind(node));
}

int yaml_as_u64(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *out_value,
                struct err *err)
{
    uint64_t value;
    if (str_parse_u64(yaml_plain(node), &value))
        return yaml_error(node, err, "expected a whole number, found \"%.60s\"", shown(node));
    if (value < min || value > max)
        return yaml_error(node, err, "%.40s is outside %llu to %llu", yaml_text(node),
                          (unsigned long long)min, (unsigned long long)max);
    *out_value = value;
    return 0;
}

int yaml_as_f64(const struct yaml_node *node, double min, double max, double *out_value,
                struct err *err)
{
    double value;
    if (str_parse_f64(yaml_plain(node), &value))
        return yaml_error(node, err, "expected a number, found \"%.60s\"", shown(node));
    if (!(value >= min && value <= max))
        return yaml_error(node, err, "%.40s is outside %g to %g", yaml_text(node), min, max);
    *out_value = value;
    return 0;
}

int yaml_as_bytes(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *out_bytes,
                  struct err *err)
{
    uint64_t value;
    if (str_parse_bytes(yaml_text(node), &value))
        return yaml_error(node, err, "expected a size such as 131072 or 128 KiB, found \"%.60s\"",
                          shown(node));
    if (value < min || value > max)
        return yaml_error(node, err, "%.40s is outside %llu to %llu bytes", yaml_text(node),
                          (unsigned long long)min, (unsigned long long)max);
    *out_bytes = value;
    return 0;
}

int yaml_as_word(const struct yaml_node *node, const char *const *words, size_t count,
                 size_t *out_index, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(yaml_text(node), words[i])) {
            *out_index = i;
            return 0;
        }
    }
    struct strbuf list = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&list, "%s%s", i ? ", " : "", words[i]);
    int rc = yaml_error(node, err, "expected one of %s; found \"%.60s\"",
                        list.data ? list.data : "", shown(node));
    strbuf_fini(&list);
    return rc;
}

/* More keys than this are not listed. */
enum { KEYS_SHOWN_MAX = 16 };

static int unknown_key(const struct yaml_node *key, const struct yaml_field *fields, size_t count,
                       struct err *err)
{
    const char **known = mem_array(count, sizeof *known);
    struct strbuf list = {0};
    for (size_t i = 0; i < count; i++) {
        known[i] = fields[i].key;
        strbuf_printf(&list, "%s%s", i ? ", " : "; expected one of ", fields[i].key);
    }
    const char *word = yaml_text(key);
    const char *near = str_nearest(word, known, count);
    int rc = near ? yaml_error(key, err, "unknown key \"%.60s\"; did you mean \"%s\"?", word, near)
                  : yaml_error(key, err, "unknown key \"%.60s\"%s", word,
                               count && count <= KEYS_SHOWN_MAX ? list.data : "");
    strbuf_fini(&list);
    free(known);
    return rc;
}

static int yaml_value_read_field(const struct yaml_node *node, const struct yaml_field *f,
                                 void *slot, struct err *err)
{
    bool bounded = f->min != 0 || f->max != 0;
    uint64_t low = bounded && f->min > 0 ? (uint64_t)f->min : 0; /* real numbers may be negative */
    uint64_t high = bounded && f->max < (double)INT64_MAX ? (uint64_t)f->max : INT64_MAX;
    uint64_t number;
    size_t index, words = 0;
    int rc;
    switch (f->type) {
    case YAML_BOOL:
        return yaml_as_bool(node, slot, err);
    case YAML_U32:
        rc = yaml_as_u64(node, low, bounded ? high : UINT32_MAX, &number, err);
        if (!rc)
            *(uint32_t *)slot = (uint32_t)number;
        return rc;
    case YAML_U64:
        return yaml_as_u64(node, low, high, slot, err);
    case YAML_BYTES:
        return yaml_as_bytes(node, low, high, slot, err);
    case YAML_F64:
        return yaml_as_f64(node, bounded ? f->min : -1e300, bounded ? f->max : 1e300, slot, err);
    case YAML_STRING:
        return yaml_as_text(node, slot, err);
    case YAML_WORD:
        while (f->words[words])
            words++;
        rc = yaml_as_word(node, f->words, words, &index, err);
        if (!rc)
            *(int *)slot = (int)index;
        return rc;
    case YAML_NODE:
        *(const struct yaml_node **)slot = node;
        return 0;
    }
    return yaml_error(node, err, "internal: field type");
}

int yaml_read_fields(const struct yaml_node *mapping, const struct yaml_field *fields, size_t count,
                     void *out_struct, struct err *err)
{
    if (yaml_expect(mapping, YAML_MAPPING, err))
        return -EINVAL;
    for (size_t i = 0; i < yaml_count(mapping); i++) {
        size_t f = 0;
        while (f < count && strcmp(fields[f].key, yaml_key(mapping, i)) != 0)
            f++;
        if (f == count)
            return unknown_key(yaml_key_node(mapping, i), fields, count, err);
        int rc = yaml_value_read_field(yaml_at(mapping, i), &fields[f],
                                       (char *)out_struct + fields[f].offset, err);
        if (rc) {
            err_prefix(err, "%s", fields[f].key);
            return rc;
        }
    }
    for (size_t f = 0; f < count; f++)
        if (fields[f].required && !yaml_get(mapping, fields[f].key))
            return yaml_error(mapping, err, "key \"%s\" is missing", fields[f].key);
    return 0;
}
