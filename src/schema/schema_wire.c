/* The binary form of structs that a schema describes: members in the order of the rows. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/member.h"
#include "schema/schema.h"
#include "schema/wire.h"

/* For the shallow copy of a struct that is repaired. */
enum { REPAIRED_BYTES_MAX = 256 };

static bool is_on_wire(const struct schema_field *field)
{
    return !(field->flags & SCHEMA_FILE_ONLY) && field->type != SCHEMA_FACT &&
           field->type != SCHEMA_CONSTANT;
}

static void encode_item(const struct schema_field *field, const char *item, struct strbuf *buffer)
{
    switch (field->type) {
    case SCHEMA_TEXT:
        wire_put_text(buffer, *(char *const *)item);
        break;
    case SCHEMA_BOOL:
        wire_put_u32(buffer, *(const bool *)item);
        break;
    case SCHEMA_U32:
    case SCHEMA_I32:
    case SCHEMA_ENUM:
        wire_put_u32(buffer, *(const uint32_t *)item);
        break;
    case SCHEMA_U64:
        wire_put_u64(buffer, *(const uint64_t *)item);
        break;
    case SCHEMA_F64:
        wire_put_f64(buffer, *(const double *)item);
        break;
    case SCHEMA_STRUCT:
        schema_encode(field->of, item, buffer);
        break;
    case SCHEMA_FACTS:
        wire_put_facts(buffer, (const struct facts *)item);
        break;
    case SCHEMA_FACT:
    case SCHEMA_CONSTANT:
        break;
    }
}

void schema_encode(const struct schema *schema, const void *object, struct strbuf *buffer)
{
    _Alignas(max_align_t) char repaired[REPAIRED_BYTES_MAX];
    if (schema->repair && schema->size <= sizeof repaired) {
        memcpy(repaired, object, schema->size);
        schema->repair(repaired);
        object = repaired;
    }
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        if (!is_on_wire(field))
            continue;
        const struct member m = member_of(field, object);
        if (field->list)
            wire_put_u32(buffer, (uint32_t)m.count);
        if (field->flags & SCHEMA_PRESENT)
            wire_put_u32(buffer, !member_null(field, object));
        for (size_t i = 0; i < m.count; i++)
            encode_item(field, m.at + i * m.bytes, buffer);
    }
}

uint32_t schema_wire_version(const struct schema *schema)
{
    uint32_t version = (uint32_t)schema->count;
    for (size_t f = 0; f < schema->count; f++) {
        const struct schema_field *field = &schema->fields[f];
        if (!is_on_wire(field))
            continue;
        uint32_t form = (uint32_t)field->type << 2 | (uint32_t)field->list << 1 |
                        ((field->flags & SCHEMA_PRESENT) != 0);
        version = version * 31 + (uint32_t)str_hash(field->key) + form;
        if (field->type == SCHEMA_STRUCT)
            version = version * 31 + schema_wire_version(field->of);
    }
    return version;
}

/* The fewest bytes of an item in the binary form. */
static size_t wire_bytes_min(const struct schema_field *field)
{
    size_t bytes = 0;
    switch (field->type) {
    case SCHEMA_U64:
    case SCHEMA_F64:
        return 8;
    case SCHEMA_STRUCT:
        for (size_t f = 0; f < field->of->count; f++) {
            const struct schema_field *inner = &field->of->fields[f];
            if (is_on_wire(inner))
                bytes += inner->list ? 4 : wire_bytes_min(inner);
        }
        return bytes;
    default:
        return 4;
    }
}

static bool f64_is_sound(const struct schema_field *field, double value)
{
    if (field->flags & SCHEMA_ANY)
        return true;
    if (isnan(value))
        return field->flags & SCHEMA_NULL;
    return field->min == 0 && field->max == 0 ? isfinite(value)
                                              : value >= field->min && value <= field->max;
}

static void decode_item(const struct schema_field *field, struct wire_reader *reader, char *item)
{
    switch (field->type) {
    case SCHEMA_TEXT: {
        char *text = field->flags & SCHEMA_KEY ? wire_get_key(reader) : wire_get_text(reader);
        *(char **)item = text;
        reader->bad |= !text && !(field->flags & SCHEMA_NULL);
        break;
    }
    case SCHEMA_BOOL:
        *(bool *)item = wire_get_enum(reader, 2);
        break;
    case SCHEMA_U32:
    case SCHEMA_I32:
        *(uint32_t *)item = wire_get_u32(reader);
        break;
    case SCHEMA_ENUM:
        *(uint32_t *)item = wire_get_enum(reader, (unsigned)field->name_count);
        break;
    case SCHEMA_U64:
        *(uint64_t *)item = wire_get_u64(reader);
        break;
    case SCHEMA_F64:
        *(double *)item = wire_get_f64(reader);
        reader->bad |= !f64_is_sound(field, *(double *)item);
        break;
    case SCHEMA_STRUCT:
        schema_decode(field->of, reader, item);
        break;
    case SCHEMA_FACTS:
        wire_get_facts(reader, (struct facts *)item);
        break;
    case SCHEMA_FACT:
    case SCHEMA_CONSTANT:
        break;
    }
}

/* Whether the key of a struct, its first member if it has one, occurs twice in the list. */
static bool keys_repeat(const struct schema_field *field, const struct member *m)
{
    const char *keys[WIRE_ITEMS_MAX];
    if (field->type != SCHEMA_STRUCT || !(field->of->fields[0].flags & SCHEMA_KEY))
        return false;
    for (size_t i = 0; i < m->count; i++)
        keys[i] = *(char *const *)(m->at + i * m->bytes + field->of->fields[0].offset);
    return wire_repeats(keys, m->count);
}

/* The count is raised before an item is read, so that a half-read item is released too. */
static void decode_list(const struct schema_field *field, struct wire_reader *reader, void *object)
{
    uint32_t count = wire_get_count(reader, wire_bytes_min(field));
    bool keyed = field->type == SCHEMA_STRUCT && field->of->fields[0].flags & SCHEMA_KEY;
    if ((field->max > 0 && count > field->max) || (keyed && count > WIRE_ITEMS_MAX))
        reader->bad = true;
    if (reader->bad)
        return;
    char *items = member_allocate(field, object, count);
    size_t bytes = member_of(field, object).bytes;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        member_set(field, object, items, i + 1);
        decode_item(field, reader, items + i * bytes);
    }
    const struct member m = member_of(field, object);
    reader->bad |= !reader->bad && keys_repeat(field, &m);
}

void schema_decode(const struct schema *schema, struct wire_reader *reader, void *object)
{
    for (size_t f = 0; f < schema->count && !reader->bad; f++) {
        const struct schema_field *field = &schema->fields[f];
        if (!is_on_wire(field))
            continue;
        if (field->flags & SCHEMA_LATER && reader->position == reader->length)
            break;
        if (field->flags & SCHEMA_PRESENT)
            *((bool *)object + field->count_offset) = wire_get_enum(reader, 2);
        if (field->list)
            decode_list(field, reader, object);
        else
            decode_item(field, reader, (char *)object + field->offset);
    }
    reader->bad |= !reader->bad && schema->sound && !schema->sound(object);
}

void schema_encode_versioned(const struct schema *schema, const void *object, struct strbuf *buffer)
{
    wire_put_u32(buffer, schema_wire_version(schema));
    schema_encode(schema, object, buffer);
}

int schema_decode_versioned(const struct schema *schema, struct wire_reader *reader, void *object,
                            struct err *err)
{
    memset(object, 0, schema->size);
    uint32_t version = wire_get_u32(reader);
    if (reader->bad)
        return wire_end(reader, schema->name, err);
    if (version != schema_wire_version(schema))
        return err_set(err, -EBADMSG, "the %s was written by another version of the program",
                       schema->name);
    schema_decode(schema, reader, object);
    return 0;
}
