/* Structs that a schema describes, from YAML: every key is known, every value has its type. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/member.h"
#include "schema/schema.h"

enum { SCHEMA_FIELDS_MAX = 32 };

int schema_read_number(const struct yaml_node *node, double *out_value, struct err *err)
{
    if (!yaml_is_null(node))
        return yaml_as_f64(node, -HUGE_VAL, HUGE_VAL, out_value, err);
    *out_value = NAN;
    return 0;
}

int schema_read_text(const struct yaml_node *node, bool nullable, char **out_text, struct err *err)
{
    const char *text = NULL;
    int rc = nullable && yaml_is_null(node) ? 0 : yaml_as_text(node, &text, err);
    if (!rc)
        *out_text = str_copy(text);
    return rc;
}

int schema_read_texts(const struct yaml_node *node, char ***out_texts, size_t *out_count,
                      struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc || !yaml_count(node))
        return rc;
    char **texts = mem_array(yaml_count(node), sizeof *texts);
    *out_texts = texts;
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        rc = schema_read_text(yaml_at(node, i), false, &texts[i], err);
        *out_count = i + !rc;
    }
    return rc;
}

/* True for digits with an optional minus, if the value fits into int64_t. */
static bool is_whole(const char *text, int64_t *out_value)
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

static bool is_number(const struct yaml_node *node)
{
    double number;
    return yaml_as_f64(node, -HUGE_VAL, HUGE_VAL, &number, NULL) == 0;
}

/* A list is one of texts if its first item that is not null is a text. */
static bool is_list_of_texts(const struct yaml_node *node)
{
    size_t i = 0;
    while (i < yaml_count(node) && yaml_is_null(yaml_at(node, i)))
        i++;
    return i < yaml_count(node) && !is_number(yaml_at(node, i));
}

/* A list of lists of numbers, all of the same length. */
static int read_rows_fact(const struct yaml_node *node, struct fact *out_fact, struct err *err)
{
    size_t rows = yaml_count(node), columns = yaml_count(yaml_at(node, 0));
    int rc = 0;
    if (!columns || columns > FACT_COLUMNS_MAX)
        return yaml_error(yaml_at(node, 0), err, "expected 1 to %d numbers", FACT_COLUMNS_MAX);
    for (size_t i = 1; i < rows && !rc; i++) {
        rc = yaml_expect(yaml_at(node, i), YAML_SEQUENCE, err);
        if (!rc && yaml_count(yaml_at(node, i)) != columns)
            rc = yaml_error(yaml_at(node, i), err, "expected %zu numbers, as in the first row",
                            columns);
    }
    if (rc)
        return rc;
    *out_fact = (struct fact){.kind = FACT_NUMBERS,
                              .columns = columns & FACT_COLUMNS_MAX,
                              .count = (uint32_t)(rows * columns),
                              .numbers = mem_array(rows * columns, sizeof(double))};
    for (size_t i = 0; i < rows * columns && !rc; i++)
        rc = schema_read_number(yaml_at(yaml_at(node, i / columns), i % columns),
                                &out_fact->numbers[i], err);
    return rc;
}

static int read_list_fact(const struct yaml_node *node, struct fact *out_fact, struct err *err)
{
    size_t count = yaml_count(node), text_count = 0;
    int rc = 0;
    if (count && yaml_kind(yaml_at(node, 0)) == YAML_SEQUENCE)
        return read_rows_fact(node, out_fact, err);
    if (is_list_of_texts(node)) {
        out_fact->kind = FACT_TEXTS;
        rc = schema_read_texts(node, &out_fact->texts, &text_count, err);
        out_fact->count = (uint32_t)text_count;
        for (size_t i = 0; i < text_count && !rc; i++) {
            const struct yaml_node *item = yaml_at(node, i);
            bool flag;
            if (is_number(item) || yaml_as_bool(item, &flag, NULL) == 0)
                rc = yaml_error(item, err, "expected a text in quotes, as the list has texts");
        }
        return rc;
    }
    *out_fact = (struct fact){.kind = FACT_NUMBERS,
                              .count = (uint32_t)count,
                              .numbers = mem_array(count, sizeof(double))};
    for (size_t i = 0; i < count && !rc; i++)
        rc = schema_read_number(yaml_at(node, i), &out_fact->numbers[i], err);
    return rc;
}

static int read_scalar_fact(const struct yaml_node *node, struct fact *out_fact, struct err *err)
{
    int rc = yaml_expect(node, YAML_SCALAR, err);
    if (rc)
        return rc;
    const char *text = yaml_text(node);
    /* The typed readers take only unquoted scalars, so that "9.0" in quotes stays a text. */
    if (yaml_is_null(node)) {
        out_fact->kind = FACT_UNKNOWN;
    } else if (yaml_as_bool(node, &out_fact->flag, NULL) == 0) {
        out_fact->kind = FACT_BOOL;
    } else if (yaml_as_f64(node, -HUGE_VAL, HUGE_VAL, &out_fact->real, NULL)) {
        out_fact->kind = FACT_TEXT;
        out_fact->text = str_copy(text);
    } else {
        out_fact->kind = is_whole(text, &out_fact->integer) ? FACT_INT : FACT_REAL;
    }
    return 0;
}

/* The fact owns its memory; after a failure it is empty. */
static int read_fact(const char *key, const struct yaml_node *node, bool lists,
                     struct fact *out_fact, struct err *err)
{
    *out_fact = (struct fact){0};
    int rc = lists && yaml_kind(node) == YAML_SEQUENCE ? read_list_fact(node, out_fact, err)
                                                       : read_scalar_fact(node, out_fact, err);
    if (rc)
        fact_clear(out_fact);
    else
        out_fact->key = str_copy(key);
    return rc;
}

int schema_read_fact(const char *key, const struct yaml_node *node, bool lists, struct facts *facts,
                     struct err *err)
{
    struct fact fact;
    int rc = read_fact(key, node, lists, &fact, err);
    if (!rc)
        facts_move(facts, &fact);
    return rc;
}

static int read_facts(const struct schema_field *field, const struct yaml_node *node,
                      struct facts *facts, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    bool all_new = !facts->count; /* the keys of a mapping differ */
    if (!rc && !facts->items && yaml_count(node)) {
        facts->capacity = yaml_count(node); /* fleets are large: none to spare */
        facts->items = mem_array(facts->capacity, sizeof *facts->items);
    }
    for (size_t i = 0; !rc && i < yaml_count(node); i++) {
        struct fact fact;
        rc =
            read_fact(yaml_key(node, i), yaml_at(node, i), field->flags & SCHEMA_LISTS, &fact, err);
        if (!rc && all_new)
            facts_add(facts, &fact);
        else if (!rc)
            facts_move(facts, &fact);
    }
    return rc;
}

static int read_whole(const struct schema_field *field, const struct yaml_node *node, uint64_t most,
                      uint64_t *out_value, struct err *err)
{
    bool bounded = field->min != 0 || field->max != 0;
    return yaml_as_u64(node, (uint64_t)field->min, bounded ? (uint64_t)field->max : most, out_value,
                       err);
}

static int read_enum(const struct schema_field *field, const struct yaml_node *node, unsigned *out,
                     struct err *err)
{
    size_t first = (size_t)field->min, index;
    size_t last = field->max > 0 ? (size_t)field->max : field->name_count - 1;
    int rc = yaml_as_word(node, field->names + first, last - first + 1, &index, err);
    if (!rc)
        *out = (unsigned)(first + index);
    return rc;
}

static int read_f64(const struct schema_field *field, const struct yaml_node *node, double *out,
                    struct err *err)
{
    bool bounded = field->min != 0 || field->max != 0;
    if (field->flags & SCHEMA_NULL && yaml_is_null(node)) {
        *out = NAN;
        return 0;
    }
    return yaml_as_f64(node, bounded ? field->min : -HUGE_VAL, bounded ? field->max : HUGE_VAL, out,
                       err);
}

static int read_item(const struct schema_field *field, const struct yaml_node *node, char *item,
                     struct err *err)
{
    bool nullable = field->flags & SCHEMA_NULL;
    uint64_t number;
    int rc = 0;
    switch (field->type) {
    case SCHEMA_TEXT:
        return schema_read_text(node, nullable, (char **)item, err);
    case SCHEMA_BOOL:
        return yaml_as_bool(node, (bool *)item, err);
    case SCHEMA_U32:
        rc = read_whole(field, node, UINT32_MAX, &number, err);
        if (!rc)
            *(uint32_t *)item = (uint32_t)number;
        return rc;
    case SCHEMA_I32:
        if (nullable && yaml_is_null(node)) {
            *(int32_t *)item = -1;
            return 0;
        }
        rc = read_whole(field, node, INT32_MAX, &number, err);
        if (!rc)
            *(int32_t *)item = (int32_t)number;
        return rc;
    case SCHEMA_U64:
        return read_whole(field, node, UINT64_MAX, (uint64_t *)item, err);
    case SCHEMA_F64:
        return read_f64(field, node, (double *)item, err);
    case SCHEMA_ENUM:
        return read_enum(field, node, (unsigned *)item, err);
    case SCHEMA_STRUCT:
        return schema_read(field->of, node, item, err);
    case SCHEMA_FACTS:
        return read_facts(field, node, (struct facts *)item, err);
    case SCHEMA_FACT:
        return schema_read_fact(field->key, node, field->flags & SCHEMA_LISTS, (struct facts *)item,
                                err);
    case SCHEMA_CONSTANT:
        return yaml_as_u64(node, (uint64_t)field->max, (uint64_t)field->max, &number, err);
    }
    return yaml_error(node, err, "internal: schema type");
}

/* The count is raised before an item is read, so that a half-read item is released too. */
static int read_list(const struct schema_field *field, const struct yaml_node *node, void *object,
                     struct err *err)
{
    int rc = yaml_expect(node, YAML_SEQUENCE, err);
    if (rc)
        return rc;
    char *items = member_allocate(field, object, yaml_count(node));
    size_t bytes = member_of(field, object).bytes;
    for (size_t i = 0; i < yaml_count(node) && !rc; i++) {
        member_set(field, object, items, i + 1);
        rc = read_item(field, yaml_at(node, i), items + i * bytes, err);
    }
    return rc;
}

static int read_member(const struct schema_field *field, const struct yaml_node *node, void *object,
                       struct err *err)
{
    if (field->form)
        return field->form->read(node, object, err);
    if (field->list)
        return read_list(field, node, object, err);
    if (field->flags & SCHEMA_PRESENT) {
        bool *present = (bool *)object + field->count_offset;
        *present = !yaml_is_null(node);
        if (!*present)
            return 0;
    }
    return read_item(field, node, (char *)object + field->offset, err);
}

static int unknown_schema_key(const struct schema *schema, const struct yaml_node *key,
                              struct err *err)
{
    const char *known[SCHEMA_FIELDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < schema->count; i++)
        if (!(schema->fields[i].flags & SCHEMA_WIRE_ONLY))
            known[count++] = schema->fields[i].key;
    const char *word = yaml_text(key), *near = str_nearest(word, known, count);
    return near ? yaml_error(key, err, "unknown key \"%.60s\"; did you mean \"%s\"?", word, near)
                : yaml_error(key, err, "unknown key \"%.60s\"", word);
}

/* The row of a key; schema->count if there is none. Files have the keys in the order of the rows:
 * `first` is tried first. */
static size_t find_row(const struct schema *schema, const char *key, size_t first)
{
    for (size_t tried = 0; tried < schema->count; tried++) {
        size_t row = first + tried < schema->count ? first + tried : first + tried - schema->count;
        const struct schema_field *field = &schema->fields[row];
        if (!(field->flags & (SCHEMA_WIRE_ONLY | SCHEMA_INLINE)) && strcmp(field->key, key) == 0)
            return row;
    }
    return schema->count;
}

/* The values of the keys, by row. Keys without a row are facts, if the struct has such. */
static int find_members(const struct schema *schema, const struct yaml_node *node, void *object,
                        const struct yaml_node **out_nodes, struct err *err)
{
    int rc = yaml_expect(node, YAML_MAPPING, err);
    size_t next = 0;
    const struct schema_field *facts = NULL;
    for (size_t f = 0; f < schema->count; f++)
        if (schema->fields[f].flags & SCHEMA_INLINE)
            facts = &schema->fields[f];
    for (size_t i = 0; !rc && i < yaml_count(node); i++) {
        const char *key = yaml_key(node, i);
        size_t row = find_row(schema, key, next);
        if (row < schema->count) {
            out_nodes[row] = yaml_at(node, i);
            next = row + 1;
        } else if (!facts) {
            rc = unknown_schema_key(schema, yaml_key_node(node, i), err);
        } else {
            rc = schema_read_fact(key, yaml_at(node, i), facts->flags & SCHEMA_LISTS,
                                  (struct facts *)((char *)object + facts->offset), err);
            if (rc)
                err_prefix(err, "%s", key);
        }
    }
    for (size_t f = 0; !rc && f < schema->count; f++) {
        unsigned may_be_missing = SCHEMA_OPTIONAL | SCHEMA_WIRE_ONLY | SCHEMA_INLINE;
        if (!out_nodes[f] && !(schema->fields[f].flags & may_be_missing))
            rc = yaml_error(node, err, "key \"%s\" is missing", schema->fields[f].key);
    }
    return rc;
}

int schema_read(const struct schema *schema, const struct yaml_node *node, void *object,
                struct err *err)
{
    const struct yaml_node *nodes[SCHEMA_FIELDS_MAX] = {NULL};
    assert(schema->count <= SCHEMA_FIELDS_MAX);
    int rc = find_members(schema, node, object, nodes, err);
    for (size_t f = 0; f < schema->count && !rc; f++) {
        if (!nodes[f])
            continue;
        rc = read_member(&schema->fields[f], nodes[f], object, err);
        if (rc)
            err_prefix(err, "%s", schema->fields[f].key);
    }
    struct err wrong = {0};
    if (!rc && schema->check && schema->check(object, &wrong))
        rc = yaml_error(node, err, "%s", wrong.text);
    return rc;
}
