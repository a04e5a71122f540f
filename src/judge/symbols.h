/* Symbols: numbers for texts and other short values. Equal values have the same number and are
 * stored once. */
#ifndef GPUMEMTOPO_JUDGE_SYMBOLS_H
#define GPUMEMTOPO_JUDGE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Empty if zero-initialised. */
struct symbols {
    struct arena arena;
    struct symbol_entry *entries; /* by number; 0 is not used */
    size_t count, capacity;
    uint32_t *buckets; /* numbers; 0 is free */
    size_t bucket_count;
};

void symbols_fini(struct symbols *symbols);

/* The number of these bytes, which are added if they are new. */
uint32_t symbols_add(struct symbols *symbols, const void *data, size_t length);

/* The same, with the number that these bytes probably have: looked at first. */
uint32_t symbols_add_guessed(struct symbols *symbols, const void *data, size_t length,
                             uint32_t guess);

/* The number of a text, which is added if it is new; 0 for NULL. */
uint32_t symbols_of(struct symbols *symbols, const char *text);
uint32_t symbols_of_guessed(struct symbols *symbols, const char *text, uint32_t guess);

/* The number of a text; 0 if it was not added. */
uint32_t symbols_find(const struct symbols *symbols, const char *text);

/* The bytes, followed by a NUL; NULL for 0. */
const char *symbols_data(const struct symbols *symbols, uint32_t symbol);

#endif
