/* Facts and their parts in a payload (inventory/wire.h): keys, small enumerations, counts. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_FACTS_WIRE_H
#define GPUMEMTOPO_INVENTORY_WIRE_FACTS_WIRE_H

#include "inventory/facts.h"
#include "inventory/wire/wire.h"

/* A real number that is not finite, or a text that is not there, goes out as unknown. */
void wire_put_facts(struct strbuf *buffer, const struct facts *facts);

/* Fills `facts`, which is empty. Such a number or text, one key twice, or more than WIRE_ITEMS_MAX
 * are bad. */
void wire_get_facts(struct wire_reader *reader, struct facts *facts);

/* A value below `count`. */
unsigned wire_get_enum(struct wire_reader *reader, unsigned count);

/* A text that is there and not too long to be a key. Fresh memory, also when bad. */
char *wire_get_key(struct wire_reader *reader);

enum { WIRE_ITEMS_MAX = 4096 };

/* Whether a key stands there twice; at most WIRE_ITEMS_MAX of them. */
bool wire_repeats(const char *const *keys, size_t count);

/* As wire_get_count, and not more than any list of this project has. */
uint32_t wire_get_items(struct wire_reader *reader, size_t item_bytes);

#endif
