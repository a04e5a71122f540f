/* Many small allocations that die together. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t capacity;
    _Alignas(ALIGNMENT) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > SIZE_MAX - CHUNK_BYTES)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->capacity - chunk->used < size) {
        size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = calloc(1, sizeof *chunk + capacity);
        if (!chunk)
            return NULL;
        chunk->capacity = capacity;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += size;
    return memory;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void arena_fini(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunks; chunk;) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    arena->chunks = NULL;
}
