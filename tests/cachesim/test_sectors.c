/* Loads and stores of several sectors, dropped lines, LFU and the ways to choose a set. */
#include "../check.h"
#include "cachesim/cache.h"

static struct rng rng;

static struct cache *create(struct cache_geometry g)
{
    rng_init(&rng, 1, "test");
    g.line = g.line ? g.line : 128;
    g.sector = g.sector ? g.sector : 32;
    g.fetch = g.fetch ? g.fetch : g.sector;
    struct cache *cache = cache_create(&g);
    assert_non_null(cache);
    return cache;
}

/* Few ways are scanned, many are linked: the same answers. */
static const uint64_t all_ways[] = {4, 0};

static void loads_bring_what_they_miss(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_ways); i++) {
        struct cache *cache = create((struct cache_geometry){.size = 4096, .ways = all_ways[i]});
        assert_int_equal(cache_load(cache, 256, 0x3, &rng), 0x3);
        assert_int_equal(cache_load(cache, 256, 0xf, &rng), 0xc);
        assert_int_equal(cache_load(cache, 256, 0xf, &rng), 0);
        assert_int_equal(cache->brought, 4);
        assert_true(cache_access(cache, 256 + 96, &rng));
        assert_true(cache_holds(cache, 256, 0xf));
        assert_false(cache_holds(cache, 0, 1));
        cache_drop(cache, 256);
        assert_false(cache_holds(cache, 256, 1));
        assert_int_equal(cache_load(cache, 256, 1, &rng), 1);
        cache_destroy(cache);
    }
}

static void fetches_pairs(void **state)
{
    (void)state;
    struct cache *cache = create((struct cache_geometry){.size = 4096, .ways = 4, .fetch = 64});
    assert_int_equal(cache_load(cache, 0, 0x1, &rng), 0x1);
    assert_int_equal(cache->brought, 2);
    assert_int_equal(cache_load(cache, 0, 0xf, &rng), 0xc);
    assert_int_equal(cache->brought, 4);
    cache_destroy(cache);
}

/* What was stored is there, was not brought, and is written back once its line goes. */
static void stores_are_written_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_ways); i++) {
        struct cache *cache = create((struct cache_geometry){.size = 512, .ways = all_ways[i]});
        assert_int_equal(cache_store(cache, 0, 0x3, &rng), 0x3);
        assert_int_equal(cache_store(cache, 0, 0x3, &rng), 0);
        assert_int_equal(cache_load(cache, 0, 0x7, &rng), 0x4);
        assert_int_equal(cache_dirty_sectors(cache), 2);
        assert_int_equal(cache->written_back, 0);
        for (uint64_t line = 1; line <= 4; line++)
            cache_load(cache, line * 128, 0xf, &rng);
        assert_int_equal(cache->written_back, 2);
        assert_int_equal(cache_dirty_sectors(cache), 0);
        assert_int_equal(cache->brought, 1 + 4 * 4);
        cache_destroy(cache);
    }
}

/* With two dirty lines at most, a third store writes back the line that was used longest ago. */
static void oldest_dirty_line_is_cleaned(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_ways); i++) {
        struct cache *cache =
            create((struct cache_geometry){.size = 512, .ways = all_ways[i], .dirty_ways = 2});
        for (uint64_t line = 0; line < 3; line++)
            cache_store(cache, line * 128, 0x3, &rng);
        assert_int_equal(cache->written_back, 2);
        assert_int_equal(cache_dirty_sectors(cache), 4);
        cache_store(cache, 1 * 128, 0x1, &rng); /* still dirty, as is the next one */
        cache_store(cache, 2 * 128, 0x1, &rng);
        assert_int_equal(cache->written_back, 2);
        cache_store(cache, 0 * 128, 0x1, &rng);
        assert_int_equal(cache->written_back, 4);
        assert_int_equal(cache_dirty_sectors(cache), 3);
        cache_destroy(cache);
    }
}

/* The dropped line is the first to go, although it was used last. */
static void dropped_lines_go_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_ways); i++) {
        struct cache *cache = create((struct cache_geometry){.size = 512, .ways = all_ways[i]});
        for (uint64_t line = 0; line < 4; line++)
            cache_load(cache, line * 128, 1, &rng);
        cache_drop(cache, 3 * 128);
        cache_load(cache, 4 * 128, 1, &rng);
        for (uint64_t line = 0; line <= 4; line++)
            assert_int_equal(cache_holds(cache, line * 128, 1), line != 3);
        cache_destroy(cache);
    }
}

/* Line 0 is used often: LRU forgets that, LFU does not. */
static void lfu_keeps_what_is_used_often(void **state)
{
    (void)state;
    for (int lfu = 0; lfu < 2; lfu++) {
        struct cache *cache = create(
            (struct cache_geometry){.size = 512, .ways = 4, .policy = lfu ? CACHE_LFU : CACHE_LRU});
        for (int i = 0; i < 10; i++)
            cache_load(cache, 0, 1, &rng);
        for (uint64_t line = 1; line < 20; line++)
            cache_load(cache, line * 128, 1, &rng);
        assert_int_equal(cache_holds(cache, 0, 1), lfu);
        cache_destroy(cache);
    }
}

/* How many of 16 lines, `stride` lines apart, a direct-mapped cache of 64 sets holds at once. */
static int held(enum cache_index index, uint32_t shift, uint64_t stride)
{
    struct cache *cache = create(
        (struct cache_geometry){.size = 64 * 128, .ways = 1, .index = index, .index_shift = shift});
    int count = 0;
    for (uint64_t i = 0; i < 16; i++)
        cache_load(cache, i * stride * 128, 1, &rng);
    for (uint64_t i = 0; i < 16; i++)
        count += cache_holds(cache, i * stride * 128, 1);
    cache_destroy(cache);
    return count;
}

static void indices_spread_strides(void **state)
{
    (void)state;
    static const struct {
        enum cache_index index;
        uint32_t shift;
        int by_1, by_64, by_61;
    } cases[] = {
        {CACHE_MODULO, 0, 16, 1, 16},
        {CACHE_PRIME, 0, 16, 16, 1},
        {CACHE_XOR, 0, 16, 16, 12},
        {CACHE_SHIFTED, 6, 1, 16, 15},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(held(cases[i].index, cases[i].shift, 1), cases[i].by_1);
        assert_int_equal(held(cases[i].index, cases[i].shift, 64), cases[i].by_64);
        assert_int_equal(held(cases[i].index, cases[i].shift, 61), cases[i].by_61);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_bring_what_they_miss),
        cmocka_unit_test(fetches_pairs),
        cmocka_unit_test(stores_are_written_back),
        cmocka_unit_test(oldest_dirty_line_is_cleaned),
        cmocka_unit_test(dropped_lines_go_first),
        cmocka_unit_test(lfu_keeps_what_is_used_often),
        cmocka_unit_test(indices_spread_strides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
