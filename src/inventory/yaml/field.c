/* Reads typed values from the YAML of an inventory. */
#include "inventory/yaml/field.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

int field_text(const struct yaml_node *node, char **out_text, struct err *err)
{
    const char *text;
    int rc = yaml_as_text(node, &text, err);
    if (rc)
        return rc;
    char *copy = str_copy(text);
    if (!copy)
        return err_no_memory(err);
    *out_text = copy;
    return 0;
}

int field_text_or_null(const struct yaml_node *node, char **out_text, struct err *err)
{
    if (!yaml_is_null(node))
        return field_text(node, out_text, err);
    *out_text = NULL;
    return 0;
}

int field_number(const struct yaml_node *node, double *out_value, struct err *err)
{
    if (!yaml_is_null(node))
        return yaml_as_f64(node, -HUGE_VAL, HUGE_VAL, out_value, err);
    *out_value = NAN;
    return 0;
}

int field_index(const struct yaml_node *node, int32_t *out_value, struct err *err)
{
    uint64_t value;
    if (yaml_is_null(node)) {
        *out_value = -1;
        return 0;
    }
    int rc = yaml_as_u64(node, 0, INT32_MAX, &value, err);
    if (!rc)
        *out_value = (int32_t)value;
    return rc;
}

int field_texts(const struct yaml_node *node, char ***out_texts, size_t *out_count, struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc || !yaml_count(node))
        return rc;
    char **texts = mem_array(yaml_count(node), sizeof *texts);
    if (!texts)
        return err_no_memory(err);
    *out_texts = texts;
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        rc = field_text(yaml_at(node, i), &texts[i], err);
        *out_count = i + !rc;
    }
    return rc;
}

/* True for digits with an optional minus, if the value fits into int64_t. */
static bool as_integer(const char *text, int64_t *out_value)
{
    const char *digits = text + (*text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")])
        return false;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno)
        return false;
    *out_value = value;
    return true;
}

int field_fact(const char *key, const struct yaml_node *node, struct facts *facts, struct err *err)
{
    int rc = yaml_expect(node, YAML_SCALAR, err);
    if (rc)
        return rc;
    const char *text = yaml_text(node);
    bool flag;
    double real;
    int64_t integer;
    /* The typed readers take only unquoted scalars, so that "9.0" in quotes stays a text. */
    if (yaml_is_null(node))
        rc = facts_set_unknown(facts, key, NULL);
    else if (yaml_as_bool(node, &flag, NULL) == 0)
        rc = facts_set_bool(facts, key, flag);
    else if (yaml_as_f64(node, -HUGE_VAL, HUGE_VAL, &real, NULL) == 0)
        rc = as_integer(text, &integer) ? facts_set_int(facts, key, integer)
                                        : facts_set_real(facts, key, real);
    else
        rc = facts_set_text(facts, key, text);
    return rc ? err_no_memory(err) : 0;
}

int field_facts(const struct yaml_node *node, struct facts *facts, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    for (size_t i = 0; !rc && i < yaml_count(node); i++)
        rc = field_fact(yaml_key(node, i), yaml_at(node, i), facts, err);
    return rc;
}
