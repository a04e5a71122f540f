/* Many small allocations that are freed together. */
#ifndef GPUMEMTOPO_BASE_ARENA_H
#define GPUMEMTOPO_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

/* Zero-initialised is empty. */
struct arena {
    struct arena_chunk *chunks;
};

/* size zeroed bytes, aligned for any type. Valid until arena_fini. */
void *arena_alloc(struct arena *arena, size_t size);

/* Copies length bytes and a NUL. */
char *arena_copy(struct arena *arena, const char *text, size_t length);

/* Makes it empty, but keeps some of its memory for what comes next. */
void arena_reset(struct arena *arena);

void arena_fini(struct arena *arena);

#endif
