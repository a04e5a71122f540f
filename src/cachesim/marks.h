/* Sets of some ways: a byte per line tells which lines need not be read when a set is searched. */
#ifndef GPUMEMTOPO_CACHESIM_MARKS_H
#define GPUMEMTOPO_CACHESIM_MARKS_H

#include <string.h>

#include "cachesim/cache.h"

enum { MARKS_TOGETHER = 8 };

static inline uint8_t marks_of(uint64_t key)
{
    return (uint8_t)((key * 0x9e3779b97f4a7c15u) >> 56);
}

/* The first byte of memory is the lowest one. */
static inline uint64_t marks_load(const uint8_t *marks)
{
    uint64_t bytes;
    memcpy(&bytes, marks, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return bytes;
}

/* Of eight marks: the highest bit of each byte that is this mark. */
static inline uint64_t marks_equal(const uint8_t *marks, uint8_t mark)
{
    static const uint64_t low = 0x7f7f7f7f7f7f7f7f, each = 0x0101010101010101;
    uint64_t bytes = marks_load(marks) ^ mark * each;
    return ~(((bytes & low) + low) | bytes | low);
}

/* The way of a set that has this key; `ways`: none. */
static inline uint32_t marks_find(const struct cache *cache, uint32_t first, uint32_t ways,
                                  uint64_t key)
{
    uint8_t mark = marks_of(key);
    for (uint32_t i = 0; i < ways; i += MARKS_TOGETHER) {
        uint64_t equal = marks_equal(&cache->marks[first + i], mark);
        for (; equal; equal &= equal - 1) {
            uint32_t way = i + (uint32_t)__builtin_ctzll(equal) / 8;
            if (way < ways && cache->lines[first + way].key == key)
                return way;
        }
    }
    return ways;
}

#endif
