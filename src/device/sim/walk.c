/* A random cycle as a permutation of positions: an unbalanced Feistel network over the next power
 * of two, applied again while it leaves the range (cycle walking; Black, Rogaway 2002). */
#include "device/sim/walk.h"

#include "base/rng.h"

static inline uint64_t round_hash(uint64_t value, uint64_t key)
{
    uint64_t x = (value ^ key) * 0x9e3779b97f4a7c15u;
    return (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9u >> 32;
}

static inline uint64_t low_mask(uint32_t bits)
{
    return (UINT64_C(1) << bits) - 1;
}

static inline uint64_t permute(const struct walk *walk, uint64_t x)
{
    uint64_t low = x & low_mask(walk->low_bits), high = x >> walk->low_bits;
    for (int i = 0; i < WALK_ROUNDS; i += 2) {
        high ^= round_hash(low, walk->keys[i]) & low_mask(walk->high_bits);
        low ^= round_hash(high, walk->keys[i + 1]) & low_mask(walk->low_bits);
    }
    return high << walk->low_bits | low;
}

static uint64_t permute_back(const struct walk *walk, uint64_t x)
{
    uint64_t low = x & low_mask(walk->low_bits), high = x >> walk->low_bits;
    for (int i = WALK_ROUNDS - 2; i >= 0; i -= 2) {
        low ^= round_hash(high, walk->keys[i + 1]) & low_mask(walk->low_bits);
        high ^= round_hash(low, walk->keys[i]) & low_mask(walk->high_bits);
    }
    return high << walk->low_bits | low;
}

static inline uint64_t element_at(const struct walk *walk, uint64_t position)
{
    do
        position = permute(walk, position);
    while (position >= walk->count);
    return position;
}

static uint64_t position_of(const struct walk *walk, uint64_t element)
{
    do
        element = permute_back(walk, element);
    while (element >= walk->count);
    return element;
}

void walk_init(struct walk *walk, const struct device_array *array, uint64_t start)
{
    *walk = (struct walk){
        .first = array->offset_bytes,
        .stride = array->stride_bytes,
        .count = array->size_bytes / array->stride_bytes,
        .position = start,
    };
    if (array->order == DEVICE_DESCENDING) {
        walk->first += (walk->count - 1) * walk->stride;
        walk->stride = -walk->stride;
        walk->position = walk->count - 1 - start;
    }
    if (array->order != DEVICE_RANDOM || walk->count < 2)
        return;
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(walk->count - 1);
    walk->random = true;
    walk->low_bits = bits / 2;
    walk->high_bits = bits - bits / 2;
    for (int i = 0; i < WALK_ROUNDS; i++)
        walk->keys[i] = rng_derive(array->seed, "walk", (uint64_t)i);
    walk->position = position_of(walk, start);
}

void walk_next(struct walk *walk, uint64_t *out_addresses, uint32_t count)
{
    uint64_t position = walk->position;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t element = walk->random ? element_at(walk, position) : position;
        out_addresses[i] = walk->first + element * walk->stride;
        position = position + 1 == walk->count ? 0 : position + 1;
    }
    walk->position = position;
}
