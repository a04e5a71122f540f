/* What a schema says about files: a JSON Schema for programs, tables for people. */
#include <stdlib.h>

#include "schema/scalar.h"
#include "schema/schema.h"

static void put_string(struct strbuf *out, const char *text)
{
    struct writer writer = {.out = out, .format = WRITER_JSON};
    writer_text(&writer, NULL, text);
}

static void put_line(struct strbuf *out, int indent)
{
    strbuf_printf(out, "\n%*s", indent, "");
}

static bool is_in_files(const struct schema_field *field)
{
    return !(field->flags & SCHEMA_WIRE_ONLY);
}

static void put_bounds(struct strbuf *out, double min, double max)
{
    strbuf_puts(out, ", \"minimum\": ");
    scalar_put_number(out, min);
    strbuf_puts(out, ", \"maximum\": ");
    scalar_put_number(out, max);
}

static void describe_put_names(struct strbuf *out, const struct schema_field *field,
                               const char *separator, bool quoted)
{
    size_t first = (size_t)field->min;
    size_t last = field->max > 0 ? (size_t)field->max : field->name_count - 1;
    for (size_t i = first; i <= last; i++) {
        strbuf_puts(out, i > first ? separator : "");
        if (quoted)
            put_string(out, field->names[i]);
        else
            strbuf_puts(out, field->names[i]);
    }
}

static void put_object(struct strbuf *out, const struct schema *schema, int indent);

/* The members of the JSON Schema of one value. */
static void put_value(struct strbuf *out, const struct schema_field *field, int indent)
{
    bool bounded = field->min != 0 || field->max != 0;
    bool nullable = field->flags & (SCHEMA_NULL | SCHEMA_PRESENT);
    const char *null = nullable ? ", \"null\"]" : "";
    switch (field->type) {
    case SCHEMA_TEXT:
        strbuf_printf(out, "\"type\": %s\"string\"%s", nullable ? "[" : "", null);
        if (field->pattern) {
            strbuf_puts(out, ", \"pattern\": ");
            put_string(out, field->pattern);
        }
        break;
    case SCHEMA_BOOL:
        strbuf_puts(out, "\"type\": \"boolean\"");
        break;
    case SCHEMA_U32:
    case SCHEMA_I32:
        strbuf_printf(out, "\"type\": %s\"integer\"%s", nullable ? "[" : "", null);
        put_bounds(out, field->min,
                   bounded                     ? field->max
                   : field->type == SCHEMA_I32 ? INT32_MAX
                                               : UINT32_MAX);
        break;
    case SCHEMA_U64:
        strbuf_puts(out,
                    "\"type\": \"integer\", \"minimum\": 0, \"maximum\": 18446744073709551615");
        break;
    case SCHEMA_F64:
        strbuf_printf(out, "\"type\": %s\"number\"%s", nullable ? "[" : "", null);
        if (bounded)
            put_bounds(out, field->min, field->max);
        break;
    case SCHEMA_ENUM:
        strbuf_puts(out, "\"enum\": [");
        describe_put_names(out, field, ", ", true);
        strbuf_puts(out, nullable ? ", null]" : "]");
        break;
    case SCHEMA_STRUCT:
        put_object(out, field->of, indent);
        break;
    case SCHEMA_FACTS:
        if (field->of)
            put_object(out, field->of, indent);
        else
            strbuf_printf(out, "\"$ref\": \"#/$defs/facts%s\"",
                          field->flags & SCHEMA_LISTS ? "_or_lists" : "");
        break;
    case SCHEMA_FACT:
        strbuf_puts(out, "\"$ref\": \"#/$defs/fact\"");
        break;
    case SCHEMA_CONSTANT:
        strbuf_puts(out, "\"const\": ");
        scalar_put_number(out, field->max);
        break;
    }
}

static void put_property(struct strbuf *out, const struct schema_field *field, int indent)
{
    put_string(out, field->key);
    strbuf_puts(out, ": {");
    if (field->words) {
        strbuf_puts(out, "\"description\": ");
        char *words =
            field->unit ? str_format("%s; %s", field->unit, field->words) : str_copy(field->words);
        put_string(out, words);
        free(words);
        strbuf_puts(out, ", ");
    }
    if (field->json_schema) {
        strbuf_puts(out, field->json_schema);
    } else if (field->list) {
        strbuf_printf(out, "\"type\": \"array\", %s\"items\": {",
                      field->flags & SCHEMA_OPTIONAL ? "\"minItems\": 1, " : "");
        put_value(out, field, indent + 2);
        strbuf_puts(out, "}");
    } else {
        put_value(out, field, indent + 2);
    }
    strbuf_puts(out, "}");
}

/* The members of the JSON Schema of a struct, each on a line at `indent`. */
static void put_object(struct strbuf *out, const struct schema *schema, int indent)
{
    const char *others = "false";
    put_line(out, indent);
    if (schema->words) {
        strbuf_puts(out, "\"description\": ");
        put_string(out, schema->words);
        strbuf_puts(out, ",");
        put_line(out, indent);
    }
    strbuf_puts(out, "\"type\": \"object\",");
    put_line(out, indent);
    strbuf_puts(out, "\"required\": [");
    bool begun = false;
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];
        if (field->flags & SCHEMA_INLINE)
            others = field->flags & SCHEMA_LISTS ? "{\"$ref\": \"#/$defs/fact_or_list\"}"
                                                 : "{\"$ref\": \"#/$defs/fact\"}";
        if (field->flags & (SCHEMA_OPTIONAL | SCHEMA_INLINE) || !is_in_files(field))
            continue;
        strbuf_puts(out, begun ? ", " : "");
        put_string(out, field->key);
        begun = true;
    }
    strbuf_puts(out, "],");
    put_line(out, indent);
    strbuf_puts(out, "\"properties\": {");
    begun = false;
    for (size_t i = 0; i < schema->count; i++) {
        if (schema->fields[i].flags & SCHEMA_INLINE || !is_in_files(&schema->fields[i]))
            continue;
        strbuf_puts(out, begun ? "," : "");
        put_line(out, indent + 2);
        put_property(out, &schema->fields[i], indent + 2);
        begun = true;
    }
    put_line(out, indent);
    strbuf_printf(out, "},");
    put_line(out, indent);
    strbuf_printf(out, "\"additionalProperties\": %s", others);
    if (schema->rules) {
        strbuf_puts(out, ",");
        put_line(out, indent);
        strbuf_puts(out, schema->rules);
    }
}

void schema_print_json_schema(const struct schema *schema, const char *title,
                              const struct schema *const *named, const char *definitions,
                              struct strbuf *out_text)
{
    strbuf_puts(
        out_text,
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": ");
    put_string(out_text, title);
    strbuf_puts(out_text, ",");
    put_object(out_text, schema, 2);
    strbuf_puts(out_text, ",\n  \"$defs\": {");
    for (; *named; named++) {
        strbuf_printf(out_text, "\n    \"%s\": {", (*named)->name);
        put_object(out_text, *named, 6);
        strbuf_puts(out_text, "},");
    }
    strbuf_printf(out_text, "%s\n  }\n}\n", definitions);
}

/* "text or null", "list of models", "one of ok, noisy". */
static void put_type(struct strbuf *out, const struct schema_field *field)
{
    static const char *const names[] = {
        [SCHEMA_TEXT] = "text",        [SCHEMA_BOOL] = "true or false",
        [SCHEMA_U32] = "whole number", [SCHEMA_I32] = "whole number",
        [SCHEMA_U64] = "whole number", [SCHEMA_F64] = "number",
        [SCHEMA_FACTS] = "facts",      [SCHEMA_FACT] = "fact",
    };
    strbuf_puts(out, field->list && !field->form ? "list: " : "");
    if (field->type == SCHEMA_ENUM)
        describe_put_names(out, field, ", ", false);
    else if (field->type == SCHEMA_CONSTANT)
        strbuf_printf(out, "%.0f", field->max);
    else if (field->of && !field->of->words)
        strbuf_puts(out, "map");
    else if (field->of && field->form)
        strbuf_printf(out, "map of [%s](#%s)", field->of->name, field->of->name);
    else if (field->of)
        strbuf_printf(out, "[%s](#%s)", field->of->name, field->of->name);
    else
        strbuf_puts(out, names[field->type]);
    strbuf_puts(out, field->flags & (SCHEMA_NULL | SCHEMA_PRESENT) ? " or null" : "");
    strbuf_puts(out, field->flags & SCHEMA_OPTIONAL ? "; may be absent" : "");
}

/* Structs that have their section already. */
struct described {
    const struct schema *schemas[64];
    size_t count;
};

static void put_section(const struct schema *schema, struct described *done, struct strbuf *out)
{
    for (size_t i = 0; i < done->count; i++)
        if (done->schemas[i] == schema)
            return;
    if (done->count < sizeof done->schemas / sizeof *done->schemas)
        done->schemas[done->count++] = schema;
    strbuf_printf(out, "\n## %s\n\n%s\n\n| key | value | unit | meaning |\n", schema->name,
                  schema->words);
    strbuf_puts(out, "| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];
        if (!is_in_files(field))
            continue;
        if (field->flags & SCHEMA_INLINE)
            strbuf_puts(out, "| any other | ");
        else
            strbuf_printf(out, "| `%s` | ", field->key);
        put_type(out, field);
        strbuf_printf(out, " | %s | %s |\n", field->unit ? field->unit : "",
                      field->words ? field->words : "");
    }
    for (size_t i = 0; i < schema->count; i++) {
        const struct schema_field *field = &schema->fields[i];
        if (field->of && field->of->words && is_in_files(field))
            put_section(field->of, done, out);
    }
}

void schema_print_markdown(const struct schema *schema, struct strbuf *out_text)
{
    struct described done = {0};
    put_section(schema, &done, out_text);
}
