/* Facts and their parts in a payload (inventory/wire/wire.h): keys, small enumerations, counts. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_FACTS_WIRE_H
#define GPUMEMTOPO_INVENTORY_WIRE_FACTS_WIRE_H

#include "inventory/facts.h"
#include "inventory/wire/wire.h"

/* A number that is not finite and a text that is NULL are written as unknown. */
void wire_put_facts(struct strbuf *buffer, const struct facts *facts);

/* Fills `facts`, which must be empty. A number that is not finite, a missing text, a repeated key,
 * or more than WIRE_ITEMS_MAX facts set reader->bad. */
void wire_get_facts(struct wire_reader *reader, struct facts *facts);

/* A value below `count`. */
unsigned wire_get_enum(struct wire_reader *reader, unsigned count);

/* A text that is not NULL and short enough for a key. The caller frees it, also if the reader is
 * bad. */
char *wire_get_key(struct wire_reader *reader);

enum { WIRE_ITEMS_MAX = 4096 };

/* True if a key occurs twice; count is at most WIRE_ITEMS_MAX. */
bool wire_repeats(const char *const *keys, size_t count);

/* As wire_get_count, with WIRE_ITEMS_MAX as a further limit. */
uint32_t wire_get_items(struct wire_reader *reader, size_t item_bytes);

#endif
