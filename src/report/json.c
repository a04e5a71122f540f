/* An inventory as JSON: translates the YAML text value by value, so that the two cannot differ. */
#include "report/json.h"

#include <errno.h>
#include <string.h>

#include "base/yaml_plain.h"
#include "schema/writer.h"

/* The YAML printer writes numbers like JSON, and quotes every text that looks like one. */
static bool is_number(const char *text)
{
    return *text == '-' || (*text >= '0' && *text <= '9');
}

static bool is_native(const struct yaml_node *node)
{
    double number;
    bool flag;
    const char *text = yaml_plain(node);
    return text && (yaml_is_null(node) || yaml_as_bool(node, &flag, NULL) == 0 ||
                    (is_number(text) && str_parse_f64(text, &number) == 0));
}

static void put_node(struct writer *json, const char *key, const struct yaml_node *node)
{
    bool mapping = yaml_kind(node) == YAML_MAPPING;
    if (yaml_kind(node) == YAML_SCALAR) {
        if (is_native(node))
            writer_raw(json, key, yaml_is_null(node) ? "null" : yaml_text(node));
        else
            writer_text(json, key, yaml_text(node));
        return;
    }
    if (mapping)
        writer_map(json, key, WRITER_BLOCK);
    else
        writer_list(json, key, WRITER_BLOCK);
    for (size_t i = 0; i < yaml_count(node) && !json->out->failed; i++)
        put_node(json, mapping ? yaml_key(node, i) : NULL, yaml_at(node, i));
    writer_end(json);
}

int report_json(const struct inventory *inventory, struct strbuf *out_text, struct err *err)
{
    struct strbuf text = {0};
    struct yaml_doc *doc = NULL;
    struct writer json = {.out = out_text};
    inventory_print(inventory, &text);
    int rc = yaml_plain_read(text.data, text.length, "inventory", &yaml_limits_plain, NULL, &doc);
    if (rc == -ENOTSUP)
        rc = yaml_read_text(text.data, text.length, "inventory", &yaml_limits_inventory, &doc, err);
    strbuf_fini(&text);
    if (rc)
        return rc;
    put_node(&json, NULL, yaml_root(doc));
    yaml_destroy(doc);
    return 0;
}
