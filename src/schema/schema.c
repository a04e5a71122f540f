/* Release, copy, comparison and visits of structs that a schema describes. */
#include "schema/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/member.h"

static size_t item_bytes(const struct schema_field *field)
{
    switch (field->type) {
    case SCHEMA_TEXT:
        return sizeof(char *);
    case SCHEMA_BOOL:
        return sizeof(bool);
    case SCHEMA_U32:
    case SCHEMA_I32:
    case SCHEMA_ENUM:
        return sizeof(uint32_t);
    case SCHEMA_U64:
    case SCHEMA_F64:
        return sizeof(uint64_t);
    case SCHEMA_STRUCT:
        return field->of->size;
    case SCHEMA_FACTS:
        return sizeof(struct facts);
    case SCHEMA_FACT:
    case SCHEMA_CONSTANT:
        break;
    }
    return 0;
}

struct member member_of(const struct schema_field *field, const void *object)
{
    char *at = (char *)object + field->offset;
    size_t bytes = item_bytes(field);
    if (!(field->flags & SCHEMA_LIST))
        return (struct member){at, 1, bytes};
    size_t count;
    memcpy(&count, (const char *)object + field->count_offset, sizeof count);
    memcpy(&at, at, sizeof at);
    return (struct member){at, count, bytes};
}

char *member_allocate(const struct schema_field *field, void *object, size_t count)
{
    char *items = count ? mem_array(count, item_bytes(field)) : NULL;
    member_set(field, object, items, 0);
    if (field->flags & SCHEMA_GROWS)
        memcpy((char *)object + field->count_offset + sizeof count, &count, sizeof count);
    return items;
}

void member_set(const struct schema_field *field, void *object, char *items, size_t count)
{
    memcpy((char *)object + field->offset, &items, sizeof items);
    memcpy((char *)object + field->count_offset, &count, sizeof count);
}

bool member_absent(const struct schema_field *field, const void *object)
{
    struct member m = member_of(field, object);
    static const struct facts none;
    if (field->flags & SCHEMA_LIST)
        return !m.count;
    switch (field->type) {
    case SCHEMA_F64:
        return isnan(*(const double *)m.at);
    case SCHEMA_FACTS:
        return !((const struct facts *)m.at)->count;
    case SCHEMA_FACT:
        return !facts_get((const struct facts *)m.at, field->key);
    case SCHEMA_STRUCT:
        for (size_t i = 0; i < field->of->count; i++)
            if (!member_absent(&field->of->fields[i], m.at))
                return false;
        return true;
    default:
        return memcmp(m.at, &none, m.bytes) == 0;
    }
}

bool member_null(const struct schema_field *field, const void *object)
{
    return field->flags & SCHEMA_PRESENT && !*((const bool *)object + field->count_offset);
}

/* fields_*: of all members, where *object may be a part of a larger struct. */
static void fields_fini(const struct schema *schema, void *object, bool texts)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        const struct member m = member_of(field, object);
        for (size_t i = 0; i < m.count; i++) {
            char *item = m.at + i * m.bytes;
            if (field->type == SCHEMA_TEXT && texts)
                free(*(char **)item);
            else if (field->type == SCHEMA_STRUCT)
                fields_fini(field->of, item, texts);
            else if (field->type == SCHEMA_FACTS && texts)
                facts_fini((struct facts *)item);
            else if (field->type == SCHEMA_FACTS)
                facts_fini_list((struct facts *)item);
        }
        if (field->flags & SCHEMA_LIST)
            free(m.at);
    }
}

void schema_fini(const struct schema *schema, void *object)
{
    fields_fini(schema, object, true);
    memset(object, 0, schema->size);
}

void schema_fini_lists(const struct schema *schema, void *object)
{
    fields_fini(schema, object, false);
    memset(object, 0, schema->size);
}

/* *object is a shallow copy: what its members point to is replaced by copies. */
static void fields_own(const struct schema *schema, void *object)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        const struct member from = member_of(field, object);
        char *at = from.at;
        if (field->flags & SCHEMA_LIST) {
            at = member_allocate(field, object, from.count);
            if (from.count)
                memcpy(at, from.at, from.count * from.bytes);
            member_set(field, object, at, from.count);
        }
        for (size_t i = 0; i < from.count; i++) {
            char *item = at + i * from.bytes;
            if (field->type == SCHEMA_TEXT)
                *(char **)item = str_copy(*(char **)item);
            else if (field->type == SCHEMA_STRUCT)
                fields_own(field->of, item);
            else if (field->type == SCHEMA_FACTS) {
                const struct facts facts = *(struct facts *)item;
                memset(item, 0, sizeof facts);
                facts_copy((struct facts *)item, &facts);
            }
        }
    }
}

void schema_copy(const struct schema *schema, void *to, const void *from)
{
    memcpy(to, from, schema->size);
    fields_own(schema, to);
}

static bool facts_equal(const struct facts *a, const struct facts *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!fact_equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

static bool item_equal(const struct schema_field *field, const char *a, const char *b, size_t bytes)
{
    const double *x = (const double *)a, *y = (const double *)b;
    switch (field->type) {
    case SCHEMA_TEXT:
        return str_equal(*(char *const *)a, *(char *const *)b);
    case SCHEMA_F64:
        return *x == *y || (isnan(*x) && isnan(*y));
    case SCHEMA_STRUCT:
        return schema_equal(field->of, a, b);
    case SCHEMA_FACTS:
        return facts_equal((const struct facts *)a, (const struct facts *)b);
    default:
        return memcmp(a, b, bytes) == 0;
    }
}

bool schema_equal(const struct schema *schema, const void *a, const void *b)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        const struct member left = member_of(field, a), right = member_of(field, b);
        if (left.count != right.count || member_null(field, a) != member_null(field, b))
            return false;
        if (member_null(field, a))
            continue;
        for (size_t i = 0; i < left.count; i++)
            if (!item_equal(field, left.at + i * left.bytes, right.at + i * left.bytes, left.bytes))
                return false;
    }
    return true;
}

void schema_visit(const struct schema *schema, void *object, const struct schema_visitor *visitor)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        const struct member m = member_of(field, object);
        if (field->type != SCHEMA_STRUCT && field->privacy == SCHEMA_PUBLIC)
            continue;
        for (size_t i = 0; i < m.count; i++) {
            char *item = m.at + i * m.bytes;
            if (field->type == SCHEMA_TEXT)
                visitor->text(visitor->user, field->privacy, (char **)item);
            else if (field->type == SCHEMA_STRUCT)
                schema_visit(field->of, item, visitor);
            else if (field->type == SCHEMA_FACTS)
                visitor->facts(visitor->user, (struct facts *)item);
        }
    }
}
