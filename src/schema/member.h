/* Internal to the schema: the memory of one member of a struct. */
#ifndef GPUMEMTOPO_SCHEMA_MEMBER_H
#define GPUMEMTOPO_SCHEMA_MEMBER_H

#include "schema/schema.h"

/* The items of a list, or the member itself as the only one. */
struct member {
    char *at;
    size_t count, bytes; /* bytes: of an item */
};
struct member member_of(const struct schema_field *field, const void *object);

/* A new array of `count` zeroed items becomes the list (NULL if there are none), with a count of 0
 * that the caller raises with member_set. */
char *member_allocate(const struct schema_field *field, void *object, size_t count);
void member_set(const struct schema_field *field, void *object, char *items, size_t count);

/* Whether an optional member is left out. */
bool member_absent(const struct schema_field *field, const void *object);

/* Whether it is null because its bool (SCHEMA_PRESENT) is not set. */
bool member_null(const struct schema_field *field, const void *object);

#endif
