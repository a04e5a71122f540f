/* Whether the two readers of YAML agree about a text. */
#ifndef GPUMEMTOPO_TESTS_BASE_SAME_YAML_H
#define GPUMEMTOPO_TESTS_BASE_SAME_YAML_H

#include <stdbool.h>
#include <stddef.h>

/* Aborts if yaml_plain_read reads the text, whole or with the list of `key` given away, to other
 * nodes than yaml_read_text, or reads what that refuses. Returns whether it reads the text. */
bool same_yaml(const char *text, size_t length, const char *key);

#endif
