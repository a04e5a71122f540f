/* Many accesses at once are the same as one by one, whatever the cache; marks and orders of sets
 * are only another way to find the same lines. */
#include <string.h>

#include "../check.h"
#include "cachesim/cache.h"

enum { ACCESSES = 6000, CACHES = 3, LINE = 128 };

static const struct cache_geometry geometries[] = {
    {.size = 64 * LINE, .ways = 0},
    {.size = 64 * LINE, .ways = 0, .policy = CACHE_FIFO},
    {.size = 64 * LINE, .ways = 4},
    {.size = 64 * LINE, .ways = 4, .policy = CACHE_RANDOM},
    {.size = 48 * LINE, .ways = 4, .tags = 64 * LINE},
    {.size = 64 * LINE, .ways = 4, .policy = CACHE_TREE},
    {.size = 64 * LINE, .ways = 8, .policy = CACHE_LFU},
    {.size = 96 * LINE, .ways = 16, .index = CACHE_HASHED},
    {.size = 101 * LINE, .ways = 16, .index = CACHE_HASHED}, /* some sets have 17 ways */
    {.size = 96 * LINE, .ways = 16, .index = CACHE_PRIME, .policy = CACHE_FIFO},
    {.size = 96 * LINE, .ways = 16, .policy = CACHE_TREE},
    {.size = 96 * LINE, .ways = 12, .policy = CACHE_EARLY, .early_fill = 0.5},
    {.size = 96 * LINE, .ways = 5, .slack = 0.2},
    {.size = 96 * LINE, .ways = 32},
    {.size = 8192 * LINE, .ways = 16, .index = CACHE_HASHED},
};

static struct cache_request asked[ACCESSES];

static struct cache *create(struct cache_geometry g, bool in_bulk)
{
    g.line = LINE;
    g.sector = 32;
    g.fetch = 64;
    g.mostly_hits = true;
    g.in_bulk = in_bulk;
    struct cache *cache = cache_create(&g);
    assert_non_null(cache);
    return cache;
}

/* Lines of twice the cache; every third access goes to a few of them. */
static void draw_requests(const struct cache_geometry *g, uint32_t operations)
{
    struct rng rng;
    rng_init(&rng, 7, "requests");
    uint64_t lines = 2 * g->size / LINE;
    for (size_t i = 0; i < ACCESSES; i++)
        asked[i] = (struct cache_request){.number = (UINT64_C(1) << 40) +
                                                    rng_below(&rng, i % 3 ? lines : 16),
                                          .sectors = (uint16_t)(1 + rng_below(&rng, 15)),
                                          .cache = (uint16_t)rng_below(&rng, CACHES),
                                          .operation = (uint8_t)rng_below(&rng, operations)};
}

static uint32_t serve_single(struct cache *cache, const struct cache_request *r, struct rng *rng)
{
    if (r->operation == CACHE_LOAD)
        return cache_load(cache, r->number * LINE, r->sectors, rng);
    if (r->operation == CACHE_STORE)
        return cache_store(cache, r->number * LINE, r->sectors, rng);
    if (r->operation == CACHE_PLACE)
        cache_place(cache, r->number * LINE, r->sectors, rng);
    if (r->operation == CACHE_DROP)
        cache_drop(cache, r->number * LINE);
    return r->sectors;
}

static void compare(struct cache *const *many, struct cache *const *single, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(many[i]->brought, single[i]->brought);
        assert_int_equal(many[i]->written_back, single[i]->written_back);
        assert_int_equal(many[i]->fills, single[i]->fills);
        assert_int_equal(cache_dirty_sectors(many[i]), cache_dirty_sectors(single[i]));
    }
}

/* In runs of all lengths. */
static void serve_and_compare(const struct cache_geometry *g, bool one, bool in_bulk)
{
    struct cache *many[CACHES], *single[CACHES];
    struct rng rng_many, rng_single;
    size_t caches = one ? 1 : CACHES;
    for (size_t i = 0; i < caches; i++) {
        many[i] = create(*g, in_bulk);
        single[i] = create(*g, false);
        cache_reset(many[i], g->size);
        cache_reset(single[i], g->size);
    }
    rng_init(&rng_many, 1, "test");
    rng_init(&rng_single, 1, "test");
    draw_requests(g, one ? CACHE_PLACE + 1 : CACHE_PASS + 1);
    for (size_t at = 0, length = 1; at < ACCESSES; at += length++) {
        length = length < ACCESSES - at ? length : ACCESSES - at;
        if (one)
            cache_serve_one(many[0], &asked[at], length, &rng_many);
        else
            cache_serve(many, &asked[at], length, &rng_many);
        for (size_t i = at; i < at + length; i++)
            assert_int_equal(asked[i].missing, serve_single(single[one ? 0 : asked[i].cache],
                                                            &asked[i], &rng_single));
    }
    compare(many, single, caches);
    for (size_t i = 0; i < caches; i++) {
        cache_destroy(many[i]);
        cache_destroy(single[i]);
    }
}

static void many_are_the_same_as_single(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(geometries); i++) {
        for (int variant = 0; variant < 4; variant++)
            serve_and_compare(&geometries[i], variant & 1, variant & 2);
    }
}

/* The same cache, served in bulk and by cache_access in turn. */
static void ways_to_access_mix(void **state)
{
    (void)state;
    struct rng rng;
    struct cache_geometry g = {.size = 96 * LINE, .ways = 16, .index = CACHE_HASHED};
    struct cache *bulk = create(g, true), *plain = create(g, false);
    rng_init(&rng, 1, "test");
    draw_requests(&g, CACHE_STORE + 1);
    for (size_t at = 0; at + 10 <= ACCESSES; at += 10) {
        cache_serve_one(bulk, &asked[at], 9, &rng);
        for (size_t i = at; i < at + 9; i++)
            assert_int_equal(asked[i].missing, serve_single(plain, &asked[i], &rng));
        uint64_t address = asked[at + 9].number * LINE;
        assert_int_equal(cache_access(bulk, address, &rng), cache_access(plain, address, &rng));
    }
    cache_destroy(bulk);
    cache_destroy(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_are_the_same_as_single),
        cmocka_unit_test(ways_to_access_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
