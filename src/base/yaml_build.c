/* The nodes of a YAML document, and how a reader of YAML builds them. */
#include "base/yaml_build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

struct yaml_doc *yaml_doc_create(const char *name)
{
    struct yaml_doc *doc = mem_array(1, sizeof *doc);
    doc->name = str_copy(name);
    return doc;
}

struct yaml_node *yaml_build_node(struct yaml_build *build, enum yaml_kind kind)
{
    struct yaml_node *node = arena_alloc(&build->doc->arena, sizeof *node);
    node->doc = build->doc;
    node->kind = (unsigned char)kind;
    return node;
}

void yaml_build_push(struct yaml_build *build, struct yaml_node *node)
{
    build->stack = mem_grow(build->stack, &build->stack_capacity, build->stack_count + 1,
                            sizeof *build->stack);
    build->stack[build->stack_count++] = node;
}

static int key_order(const void *a, const void *b)
{
    const struct yaml_node *const *left = a, *const *right = b;
    int order = strcmp((*left)->text, (*right)->text);
    if (order)
        return order;
    if ((*left)->line != (*right)->line)
        return (*left)->line - (*right)->line;
    return (*left)->column - (*right)->column;
}

/* True if a quick look shows that no key occurs twice. */
static bool keys_differ(const struct yaml_node *map)
{
    enum { KEYS_MAX = 64 };
    uint64_t hashes[KEYS_MAX];
    if (map->count > KEYS_MAX)
        return false;
    for (size_t i = 0; i < map->count; i++) {
        uint64_t hash = str_hash(map->items[map->count + i]->text), same = 0;
        for (size_t k = 0; k < i; k++)
            same |= hashes[k] == hash;
        if (same)
            return false;
        hashes[i] = hash;
    }
    return true;
}

static int check_keys(const struct yaml_node *map, struct err *err)
{
    if (keys_differ(map))
        return 0;
    struct yaml_node **sorted = mem_array(map->count, sizeof *sorted);
    memcpy(sorted, map->items + map->count, map->count * sizeof *sorted);
    sort_stable(sorted, map->count, sizeof *sorted, key_order);
    int rc = 0;
    for (size_t i = 1; i < map->count && !rc; i++)
        if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0)
            rc = yaml_error(sorted[i], err, "key \"%.60s\" occurs twice (first in line %d)",
                            sorted[i]->text, sorted[i - 1]->line);
    free(sorted);
    return rc;
}

int yaml_build_adopt(struct yaml_build *build, struct yaml_node *node, size_t base, struct err *err)
{
    size_t children = build->stack_count - base;
    bool mapping = node->kind == YAML_MAPPING;
    node->count = (uint32_t)(mapping ? children / 2 : children);
    if (children)
        node->items = arena_alloc(&build->doc->arena, children * sizeof *node->items);
    for (size_t i = 0; i < children; i++) {
        struct yaml_node *child = build->stack[base + i];
        if (!mapping)
            node->items[i] = child;
        else if (i % 2)
            node->items[i / 2] = child;
        else if (child->kind != YAML_SCALAR)
            return yaml_error(child, err, "a key must be a plain word");
        else
            node->items[node->count + i / 2] = child;
    }
    build->stack_count = base;
    return mapping ? check_keys(node, err) : 0;
}

void yaml_destroy(struct yaml_doc *doc)
{
    if (!doc)
        return;
    arena_fini(&doc->arena);
    arena_fini(&doc->texts);
    free(doc->name);
    free(doc);
}

const struct yaml_node *yaml_root(const struct yaml_doc *doc)
{
    return doc->root;
}

enum yaml_kind yaml_kind(const struct yaml_node *node)
{
    return node->kind;
}

size_t yaml_count(const struct yaml_node *node)
{
    return node->count;
}

const struct yaml_node *yaml_at(const struct yaml_node *node, size_t i)
{
    return node->items[i];
}

const struct yaml_node *yaml_key_node(const struct yaml_node *node, size_t i)
{
    return node->items[node->count + i];
}

const char *yaml_key(const struct yaml_node *node, size_t i)
{
    return yaml_key_node(node, i)->text;
}

const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key)
{
    if (node->kind != YAML_MAPPING)
        return NULL;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(yaml_key(node, i), key) == 0)
            return node->items[i];
    return NULL;
}

const char *yaml_text(const struct yaml_node *node)
{
    return node->kind == YAML_SCALAR ? node->text : NULL;
}

const char *yaml_plain(const struct yaml_node *node)
{
    return node->kind == YAML_SCALAR && node->plain ? node->text : NULL;
}

int yaml_error(const struct yaml_node *node, struct err *err, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;
    if (!err)
        return -EINVAL;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set_at(err, -EINVAL, node->doc->name, node->line, node->column, "%s", text);
}
