/* An inventory without names: hosts, UUIDs, serial numbers and addresses are replaced by
 * pseudonyms. */
#ifndef GPUMEMTOPO_INVENTORY_ANONYMOUS_H
#define GPUMEMTOPO_INVENTORY_ANONYMOUS_H

#include "inventory/inventory.h"
#include "inventory/pseudonyms.h"

/* Adds all names of an inventory. */
void anonymous_learn(struct pseudonyms *names, const struct inventory *inventory);

/* Replaces all names; the names are sealed. */
void anonymous_apply(struct pseudonyms *names, struct inventory *inventory);

/* Both for several inventories: what they share has the same pseudonym in all of them. baseline: an
 * inventory of which they may have names in their texts, such as where a GPU was before; not
 * changed, may be NULL. */
void anonymous_inventories(struct inventory *const *inventories, size_t count,
                           const struct inventory *baseline);

/* Replaces all names in a struct; the names are sealed. */
void anonymous_apply_to(struct pseudonyms *names, const struct schema *schema, void *object);

/* Facts of a GPU: its serial number and texts. */
void anonymous_facts(struct pseudonyms *names, struct facts *facts);

/* Keeps of a command line the program, its flags, and the values of those flags of a survey whose
 * value is a number or one of a few words. */
void anonymous_command(char **command, size_t *count);

#endif
