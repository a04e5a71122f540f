/* Many small allocations that are freed together. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t capacity;
    _Alignas(ALIGNMENT) char data[];
};

static void *arena_take(struct arena *arena, size_t size, size_t alignment)
{
    if (size > SIZE_MAX - CHUNK_BYTES)
        mem_exhausted(size);
    struct arena_chunk *chunk = arena->chunks;
    size_t start = chunk ? (chunk->used + alignment - 1) / alignment * alignment : 0;
    if (!chunk || start > chunk->capacity || chunk->capacity - start < size) {
        size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = mem_array(1, sizeof *chunk + capacity);
        chunk->capacity = capacity;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        start = 0;
    }
    chunk->used = start + size;
    return chunk->data + start;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return arena_take(arena, size, ALIGNMENT);
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_take(arena, length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *kept = arena->chunks;
    if (!kept)
        return;
    struct arena rest = {.chunks = kept->next};
    arena_fini(&rest);
    kept->next = NULL;
    memset(kept->data, 0, kept->used);
    kept->used = 0;
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
