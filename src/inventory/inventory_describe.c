/* What the format of an inventory is: a JSON Schema for programs, a page for people. */
#include <stdlib.h>

#include "inventory/inventory.h"

/* Of the JSON Schema: what several members have, and the nested mapping of measures. */
static const char definitions[] =
    "\n    \"figure_or_null\": {\"description\": \"A size, a time, a rate or a number of "
    "things.\", "
    "\"type\": [\"number\", \"null\"], \"minimum\": 0, \"maximum\": 1e18},"
    "\n    \"fact\": {\"type\": [\"string\", \"number\", \"boolean\", \"null\"]},"
    "\n    \"facts\": {\"type\": \"object\", \"additionalProperties\": {\"$ref\": "
    "\"#/$defs/fact\"}},"
    "\n    \"numbers\": {\"type\": \"array\", \"items\": {\"type\": [\"number\", \"null\"]}},"
    "\n    \"fact_or_list\": {\"anyOf\": [{\"$ref\": \"#/$defs/fact\"}, {\"$ref\": "
    "\"#/$defs/numbers\"}, {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/numbers\"}}, "
    "{\"$ref\": \"#/$defs/words\"}]},"
    "\n    \"facts_or_lists\": {\"type\": \"object\", \"additionalProperties\": {\"$ref\": "
    "\"#/$defs/fact_or_list\"}},"
    "\n    \"words\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}},"
    "\n    \"group\": {\"description\": \"Memories, their attributes, and attributes of "
    "attributes: "
    "l1_data.size, main.bandwidth.read.\", \"type\": \"object\", \"additionalProperties\": "
    "{\"$ref\": \"#/$defs/member\"}},"
    "\n    \"member\": {"
    "\n      \"description\": \"A mapping with a single value in it is a measure, any other one a "
    "group.\","
    "\n      \"if\": {\"$ref\": \"#/$defs/has_no_scalar\"},"
    "\n      \"then\": {\"anyOf\": [{\"$ref\": \"#/$defs/words\"}, {\"allOf\": [{\"$ref\": "
    "\"#/$defs/group\"}, {\"minProperties\": 1}]}]},"
    "\n      \"else\": {\"$ref\": \"#/$defs/measure\"}"
    "\n    },"
    "\n    \"has_no_scalar\": {\"type\": [\"object\", \"array\"], \"additionalProperties\": "
    "{\"type\": [\"object\", \"array\"]}}";

void inventory_print_json_schema(struct strbuf *out_text)
{
    static const struct schema *const named[] = {&measure_schema, NULL};
    char *title = str_format("gpumemtopo inventory, schema %d", INVENTORY_SCHEMA);
    schema_print_json_schema(&inventory_schema, title, named, definitions, out_text);
    free(title);
}

void inventory_print_markdown(struct strbuf *out_text)
{
    strbuf_puts(
        out_text,
        "# The members of an inventory\n\n"
        "Made from the tables of `src/inventory` by `meson compile describe`; a test compares "
        "this page with them.\n"
        "[report.md](report.md) explains the file, "
        "[inventory.schema.json](../reports/inventory.schema.json) is its schema.\n"
        "Facts are a map of names and single values: true or false, a number, a text, or null for "
        "what is not known.\nNotes of a measure may be lists, too: of texts, or of numbers and "
        "null.\n");
    schema_print_markdown(&inventory_schema, out_text);
}
