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
    char *at = (char *)object + field->offset, *items;
    size_t bytes = item_bytes(field);
    if (!field->list)
        return (struct member){at, 1, bytes};
    size_t count;
    memcpy(&count, (const char *)object + field->count_offset, sizeof count);
    memcpy((void *)&items, at, sizeof items);
    return (struct member){items, count, bytes};
}

char *member_allocate(const struct schema_field *field, void *object, size_t count)
{
    char *items = count ? mem_array(count, item_bytes(field)) : NULL;
    member_set(field, object, items, 0);
    if (field->grows)
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
    if (field->list)
        return !m.count;
    switch (field->type) {
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

/* Whether an item points to memory that belongs to it. */
static bool owns_memory(const struct schema_field *field)
{
    return field->type == SCHEMA_TEXT || field->type == SCHEMA_STRUCT ||
           field->type == SCHEMA_FACTS;
}

static void release(const struct schema *schema, void *object, bool texts);

/* texts: false if they lie elsewhere and stay. */
static void release_item(const struct schema_field *field, char *item, bool texts)
{
    if (field->type == SCHEMA_TEXT && texts)
        free(*(char **)item);
    else if (field->type == SCHEMA_STRUCT)
        release(field->of, item, texts);
    else if (field->type == SCHEMA_FACTS && texts)
        facts_fini((struct facts *)item);
    else if (field->type == SCHEMA_FACTS)
        facts_fini_list((struct facts *)item);
}

static void release(const struct schema *schema, void *object, bool texts)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        if (!field->list) {
            release_item(field, (char *)object + field->offset, texts);
            continue;
        }
        const struct member m = member_of(field, object);
        for (size_t i = 0; i < m.count && owns_memory(field); i++)
            release_item(field, m.at + i * m.bytes, texts);
        free(m.at);
    }
}

static void set_to_zero(const struct schema *schema, void *object)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        char *at = (char *)object + field->offset;
        if (field->list)
            member_allocate(field, object, 0);
        else if (field->type == SCHEMA_STRUCT)
            set_to_zero(field->of, at);
        else
            memset(at, 0, item_bytes(field));
        if (field->flags & SCHEMA_PRESENT)
            *((bool *)object + field->count_offset) = false;
    }
}

void schema_fini(const struct schema *schema, void *object)
{
    release(schema, object, true);
    set_to_zero(schema, object);
}

void schema_fini_lists(const struct schema *schema, void *object)
{
    release(schema, object, false);
    set_to_zero(schema, object);
}

static void own_members(const struct schema *schema, void *object);

static void own_item(const struct schema_field *field, char *item)
{
    if (field->type == SCHEMA_TEXT) {
        *(char **)item = str_copy(*(char **)item);
    } else if (field->type == SCHEMA_STRUCT) {
        own_members(field->of, item);
    } else if (field->type == SCHEMA_FACTS) {
        const struct facts facts = *(struct facts *)item;
        memset(item, 0, sizeof facts);
        facts_copy((struct facts *)item, &facts);
    }
}

/* *object is a shallow copy: what its members point to is replaced by copies. */
static void own_members(const struct schema *schema, void *object)
{
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        if (!field->list) {
            own_item(field, (char *)object + field->offset);
            continue;
        }
        const struct member from = member_of(field, object);
        char *items = member_allocate(field, object, from.count);
        if (from.count)
            memcpy(items, from.at, from.count * from.bytes);
        for (size_t i = 0; i < from.count && owns_memory(field); i++)
            own_item(field, items + i * from.bytes);
        member_set(field, object, items, from.count);
    }
}

void schema_copy(const struct schema *schema, void *to, const void *from)
{
    memcpy(to, from, schema->size);
    own_members(schema, to);
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
