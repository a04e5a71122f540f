/* Reads typed values from the YAML of an inventory, into memory that the caller owns. Each returns
 * 0, -ENOMEM or -EINVAL with the position; outputs are untouched on failure unless stated
 * otherwise. */
#ifndef GPUMEMTOPO_INVENTORY_YAML_FIELD_H
#define GPUMEMTOPO_INVENTORY_YAML_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/yaml.h"
#include "inventory/measure.h"
#include "schema/facts.h"

/* A text. The second also accepts null and gives NULL. */
int field_text(const struct yaml_node *node, char **out_text, struct err *err);
int field_text_or_null(const struct yaml_node *node, char **out_text, struct err *err);

/* A finite number; null gives NaN. */
int field_number(const struct yaml_node *node, double *out_value, struct err *err);

/* A whole number from 0 to INT32_MAX; null gives -1. */
int field_index(const struct yaml_node *node, int32_t *out_value, struct err *err);

/* A list of texts. On failure the outputs have what was read so far, and the caller frees it. */
int field_texts(const struct yaml_node *node, char ***out_texts, size_t *out_count,
                struct err *err);

/* Adds one fact; how the scalar is written determines its kind. */
int field_fact(const char *key, const struct yaml_node *node, struct facts *facts, struct err *err);

/* Adds the facts of a mapping of scalars. */
int field_facts(const struct yaml_node *node, struct facts *facts, struct err *err);

/* Adds the measures of a nested mapping, joining keys with dots. */
int field_measures(const struct yaml_node *node, struct measures *measures, struct err *err);

#endif
