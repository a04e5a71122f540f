/* Reads YAML in the form that the inventory's writer gives it, many times faster than a reader of
 * all YAML, and a long list without keeping it. */
#ifndef GPUMEMTOPO_BASE_YAML_PLAIN_H
#define GPUMEMTOPO_BASE_YAML_PLAIN_H

#include "base/yaml.h"

/* A list of the outermost mapping whose items are not kept: each is given to `take` and then
 * released. */
struct yaml_plain_list {
    const char *key;
    int (*take)(void *user, const struct yaml_node *item, struct err *err);
    void *user;
};

/* Reads a document of block mappings and lists that are indented by two spaces, with everything in
 * flow style on one line or broken behind commas, no comments, and ASCII only. In the document the
 * list of `list` (which may be NULL) is empty; positions are not known. -ENOTSUP if the text has
 * another form, is not valid, exceeds a limit, or if `take` failed: then yaml_read_text finds out
 * what is wrong. What is read here, yaml_read_text would read to the same nodes. */
int yaml_plain_read(const char *text, size_t length, const char *name,
                    const struct yaml_limits *limits, const struct yaml_plain_list *list,
                    struct yaml_doc **out_doc);

#endif
