/* Whether the two readers of YAML agree about a text. */
#include "same_yaml.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml_plain.h"

static const struct yaml_limits limits = {
    .bytes_max = 1024 * 1024, .nodes_max = 1000000, .depth_max = 32};

static bool same_nodes(const struct yaml_node *a, const struct yaml_node *b)
{
    if (yaml_kind(a) != yaml_kind(b) || yaml_count(a) != yaml_count(b) ||
        !str_equal(yaml_text(a), yaml_text(b)) || !str_equal(yaml_plain(a), yaml_plain(b)))
        return false;
    for (size_t i = 0; i < yaml_count(a); i++) {
        if (!same_nodes(yaml_at(a, i), yaml_at(b, i)))
            return false;
        if (yaml_kind(a) == YAML_MAPPING && !same_nodes(yaml_key_node(a, i), yaml_key_node(b, i)))
            return false;
    }
    return true;
}

/* The list of the whole document, and how many of its items have come. */
struct items {
    const struct yaml_node *list;
    size_t count;
};

static int take(void *user, const struct yaml_node *item, struct err *err)
{
    struct items *items = user;
    (void)err;
    if (!items->list || yaml_kind(items->list) != YAML_SEQUENCE ||
        items->count >= yaml_count(items->list) ||
        !same_nodes(item, yaml_at(items->list, items->count++)))
        abort();
    return 0;
}

static void check_list(const char *text, size_t length, const char *key,
                       const struct yaml_node *whole)
{
    struct items items = {.list = yaml_get(whole, key)};
    const struct yaml_plain_list list = {key, take, &items};
    struct yaml_doc *doc = NULL;
    if (yaml_plain_read(text, length, "list", &limits, &list, &doc))
        abort();
    const struct yaml_node *rest = yaml_root(doc);
    if (yaml_count(rest) != yaml_count(whole))
        abort();
    for (size_t i = 0; i < yaml_count(rest); i++) {
        const struct yaml_node *a = yaml_at(rest, i), *b = yaml_at(whole, i);
        bool given = b == items.list && items.count == yaml_count(b);
        if (strcmp(yaml_key(rest, i), yaml_key(whole, i)) != 0 ||
            (given ? yaml_count(a) != 0 : !same_nodes(a, b)))
            abort();
    }
    yaml_destroy(doc);
}

bool same_yaml(const char *text, size_t length, const char *key)
{
    struct yaml_doc *plain = NULL, *whole = NULL;
    if (yaml_plain_read(text, length, "plain", &limits, NULL, &plain))
        return false;
    if (yaml_read_text(text, length, "whole", &limits, &whole, NULL) ||
        !same_nodes(yaml_root(plain), yaml_root(whole)))
        abort();
    check_list(text, length, key, yaml_root(whole));
    yaml_destroy(plain);
    yaml_destroy(whole);
    return true;
}
