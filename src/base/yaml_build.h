/* The nodes of a YAML document, and how a reader of YAML builds them. */
#ifndef GPUMEMTOPO_BASE_YAML_BUILD_H
#define GPUMEMTOPO_BASE_YAML_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/yaml.h"

/* Kept at 32 bytes: the inventory of a large fleet has tens of millions of nodes. */
struct yaml_node {
    const struct yaml_doc *doc;
    union {
        const char *text;         /* scalar */
        struct yaml_node **items; /* sequence items; mapping values, then as many keys */
    };
    int line, column;
    uint32_t count;
    unsigned char kind; /* enum yaml_kind */
    bool plain;         /* an unquoted scalar, which may be a number, a bool or null */
};

struct yaml_doc {
    struct arena arena;
    struct arena texts; /* separate from the nodes, since texts need no alignment */
    char *name;
    struct yaml_node *root;
};

/* Nodes under construction. Finished siblings stay on one stack until their parent ends. Released
 * with free(stack). */
struct yaml_build {
    struct yaml_doc *doc;
    struct yaml_node **stack;
    size_t stack_count, stack_capacity;
};

/* An empty document. Freed with yaml_destroy. */
struct yaml_doc *yaml_doc_create(const char *name);

/* A node of the document without children or text. */
struct yaml_node *yaml_build_node(struct yaml_build *build, enum yaml_kind kind);

/* Adds a finished node to the siblings. */
void yaml_build_push(struct yaml_build *build, struct yaml_node *node);

/* Moves the siblings above `base` from the stack into their parent. -EINVAL if a key is not a
 * scalar or occurs twice. */
int yaml_build_adopt(struct yaml_build *build, struct yaml_node *node, size_t base,
                     struct err *err);

#endif
