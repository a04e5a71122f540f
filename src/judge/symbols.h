/* Texts and other short values by number: equal ones have the same number, kept once. */
#ifndef GPUMEMTOPO_JUDGE_SYMBOLS_H
#define GPUMEMTOPO_JUDGE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Zero-initialised is empty. */
struct symbols {
    struct arena arena;
    struct symbol_entry *entries; /* by number; 0 is none */
    size_t count, capacity;
    uint32_t *buckets; /* numbers; 0 is free */
    size_t bucket_count;
};

void symbols_fini(struct symbols *symbols);

/* The number of these bytes, given out now if they are new; 0 when out of memory. */
uint32_t symbols_add(struct symbols *symbols, const void *data, size_t length);

/* The number of a text. NULL is 0 as well: 0 or -ENOMEM tells. */
int symbols_text(struct symbols *symbols, const char *text, uint32_t *out_symbol);

/* The number of a text that is there already; 0 when it is not. */
uint32_t symbols_find(const struct symbols *symbols, const char *text);

/* The bytes, followed by a NUL; NULL for 0. */
const char *symbols_data(const struct symbols *symbols, uint32_t symbol);

#endif
