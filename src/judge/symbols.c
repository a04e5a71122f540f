/* Symbols: a hash table with open addressing. */
#include "judge/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct symbol_entry {
    const char *data;
    uint32_t length;
    uint32_t hash;
};

enum { BUCKETS_MIN = 256 };

/* Eight bytes at a time, multiplied and folded; the rest with its length. */
static uint32_t symbol_hash(const void *data, size_t length)
{
    static const uint64_t factor = 0x9e3779b97f4a7c15;
    const unsigned char *bytes = data;
    uint64_t hash = length, word;
    for (; length > sizeof word; bytes += sizeof word, length -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, bytes, length);
    hash = (hash ^ word) * factor;
    return (uint32_t)(hash >> 32);
}

/* The bucket of the value, or the free one for it. bucket_count is a power of two, and some buckets
 * are always free. */
static size_t symbol_bucket(const struct symbols *symbols, const void *data, size_t length,
                            uint32_t hash)
{
    size_t mask = symbols->bucket_count - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        uint32_t symbol = symbols->buckets[at];
        if (!symbol)
            return at;
        const struct symbol_entry *entry = &symbols->entries[symbol];
        if (entry->hash == hash && entry->length == length &&
            memcmp(entry->data, data, length) == 0)
            return at;
    }
}

static void symbols_grow(struct symbols *symbols)
{
    size_t wanted = symbols->bucket_count ? 2 * symbols->bucket_count : BUCKETS_MIN;
    uint32_t *buckets = mem_array(wanted, sizeof *buckets);
    for (uint32_t symbol = 1; symbol < symbols->count; symbol++) {
        size_t at = symbols->entries[symbol].hash & (wanted - 1);
        while (buckets[at])
            at = (at + 1) & (wanted - 1);
        buckets[at] = symbol;
    }
    free(symbols->buckets);
    symbols->buckets = buckets;
    symbols->bucket_count = wanted;
}

uint32_t symbols_add(struct symbols *symbols, const void *data, size_t length)
{
    if (2 * (symbols->count + 1) > symbols->bucket_count)
        symbols_grow(symbols);
    uint32_t hash = symbol_hash(data, length);
    size_t at = symbol_bucket(symbols, data, length, hash);
    if (symbols->buckets[at])
        return symbols->buckets[at];
    symbols->entries = mem_grow(symbols->entries, &symbols->capacity, symbols->count + 2,
                                sizeof *symbols->entries);
    symbols->count = symbols->count ? symbols->count : 1;
    uint32_t symbol = (uint32_t)symbols->count++;
    symbols->entries[symbol] =
        (struct symbol_entry){arena_copy(&symbols->arena, data, length), (uint32_t)length, hash};
    symbols->buckets[at] = symbol;
    return symbol;
}

uint32_t symbols_add_guessed(struct symbols *symbols, const void *data, size_t length,
                             uint32_t guess)
{
    const struct symbol_entry *entry = guess ? &symbols->entries[guess] : NULL;
    if (entry && entry->length == length && memcmp(entry->data, data, length) == 0)
        return guess;
    return symbols_add(symbols, data, length);
}

uint32_t symbols_of(struct symbols *symbols, const char *text)
{
    return symbols_of_guessed(symbols, text, 0);
}

uint32_t symbols_of_guessed(struct symbols *symbols, const char *text, uint32_t guess)
{
    return text ? symbols_add_guessed(symbols, text, strlen(text), guess) : 0;
}

uint32_t symbols_find(const struct symbols *symbols, const char *text)
{
    if (!symbols->bucket_count || !text)
        return 0;
    size_t length = strlen(text);
    return symbols->buckets[symbol_bucket(symbols, text, length, symbol_hash(text, length))];
}

const char *symbols_data(const struct symbols *symbols, uint32_t symbol)
{
    return symbol ? symbols->entries[symbol].data : NULL;
}

void symbols_fini(struct symbols *symbols)
{
    arena_fini(&symbols->arena);
    free(symbols->entries);
    free(symbols->buckets);
    memset(symbols, 0, sizeof *symbols);
}
