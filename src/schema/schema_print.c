/* Structs that a schema describes, as YAML or JSON. */
#include "schema/member.h"
#include "schema/schema.h"

void schema_print_fact(struct writer *writer, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_BOOL:
        writer_bool(writer, fact->key, fact->flag);
        break;
    case FACT_INT:
        writer_i64(writer, fact->key, fact->integer);
        break;
    case FACT_REAL:
        writer_number(writer, fact->key, fact->real);
        break;
    case FACT_TEXT:
        writer_text(writer, fact->key, fact->text);
        break;
    case FACT_NUMBERS:
        writer_rows(writer, fact->key, fact->numbers, fact->count, fact->columns);
        break;
    case FACT_TEXTS:
        writer_texts(writer, fact->key, fact->texts, fact->count);
        break;
    case FACT_UNKNOWN:
        writer_raw(writer, fact->key, "null");
    }
}

void schema_print_facts(struct writer *writer, const char *key, const struct facts *facts)
{
    writer_map(writer, key, WRITER_FLOW);
    for (size_t i = 0; i < facts->count; i++)
        schema_print_fact(writer, &facts->items[i]);
    writer_end(writer);
}

/* Whether a row of its own names this fact of the facts at `offset`. */
static bool is_named_fact(const struct schema *schema, size_t offset, const char *fact)
{
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].type == SCHEMA_FACT && schema->fields[i].offset == offset &&
            str_equal(schema->fields[i].key, fact))
            return true;
    return false;
}

static void print_rest_of_facts(const struct schema *schema, const struct schema_field *field,
                                struct writer *writer, const struct facts *facts)
{
    bool begun = !(field->flags & SCHEMA_OPTIONAL);
    if (begun)
        writer_map(writer, field->key, WRITER_FLOW);
    for (size_t i = 0; i < facts->count; i++) {
        if (is_named_fact(schema, field->offset, facts->items[i].key))
            continue;
        if (!begun)
            writer_map(writer, field->key, WRITER_FLOW);
        begun = true;
        schema_print_fact(writer, &facts->items[i]);
    }
    if (begun)
        writer_end(writer);
}

static void print_item(const struct schema_field *field, struct writer *writer, const char *key,
                       const char *item)
{
    switch (field->type) {
    case SCHEMA_TEXT:
        writer_text(writer, key, *(char *const *)item);
        break;
    case SCHEMA_BOOL:
        writer_bool(writer, key, *(const bool *)item);
        break;
    case SCHEMA_U32:
        writer_u64(writer, key, *(const uint32_t *)item);
        break;
    case SCHEMA_I32:
        if (field->flags & SCHEMA_NULL && *(const int32_t *)item < 0)
            writer_raw(writer, key, "null");
        else
            writer_i64(writer, key, *(const int32_t *)item);
        break;
    case SCHEMA_U64:
        writer_u64(writer, key, *(const uint64_t *)item);
        break;
    case SCHEMA_F64:
        writer_number(writer, key, *(const double *)item);
        break;
    case SCHEMA_ENUM:
        writer_text(writer, key, field->names[*(const unsigned *)item]);
        break;
    case SCHEMA_STRUCT:
        schema_print(field->of, writer, key, item);
        break;
    case SCHEMA_FACTS:
        schema_print_facts(writer, key, (const struct facts *)item);
        break;
    case SCHEMA_FACT:
        schema_print_fact(writer, facts_get((const struct facts *)item, field->key));
        break;
    case SCHEMA_CONSTANT:
        writer_number(writer, key, field->max);
        break;
    }
}

static void print_member(const struct schema *schema, const struct schema_field *field,
                         struct writer *writer, const void *object)
{
    const struct member m = member_of(field, object);
    bool shown = schema->shows ? schema->shows(object, field)
                               : !(field->flags & SCHEMA_OPTIONAL && member_absent(field, object));
    if (field->flags & SCHEMA_WIRE_ONLY || !shown)
        return;
    writer->known_key = !(field->flags & SCHEMA_INLINE);
    if (field->flags & SCHEMA_INLINE) {
        const struct facts *facts = (const struct facts *)m.at;
        for (size_t i = 0; i < facts->count; i++)
            schema_print_fact(writer, &facts->items[i]);
    } else if (field->form)
        field->form->print(writer, field->key, object);
    else if (member_null(field, object))
        writer_raw(writer, field->key, "null");
    else if (field->flags & SCHEMA_REST)
        print_rest_of_facts(schema, field, writer, (const struct facts *)m.at);
    else if (!field->list)
        print_item(field, writer, field->key, m.at);
    else if (field->type == SCHEMA_F64)
        writer_numbers(writer, field->key, (const double *)m.at, m.count);
    else {
        bool block = m.count && field->type == SCHEMA_STRUCT;
        writer_list(writer, field->key, block ? WRITER_BLOCK : WRITER_FLOW);
        for (size_t i = 0; i < m.count; i++)
            print_item(field, writer, NULL, m.at + i * m.bytes);
        writer_end(writer);
    }
}

void schema_print(const struct schema *schema, struct writer *writer, const char *key,
                  const void *object)
{
    writer_map(writer, key, schema->style);
    for (size_t i = 0; i < schema->count; i++)
        print_member(schema, &schema->fields[i], writer, object);
    writer_end(writer);
}
