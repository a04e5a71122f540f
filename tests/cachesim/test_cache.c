/* Hits and misses of the simulated cache against cases computed by hand. */
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "cachesim/cache.h"

static struct rng rng;

static int setup(void **state)
{
    (void)state;
    rng_init(&rng, 1, "test");
    return 0;
}

static struct cache_geometry geometry(uint64_t size, uint64_t line, uint64_t ways)
{
    return (struct cache_geometry){
        .size = size, .line = line, .sector = line, .fetch = line, .ways = ways, .early_fill = 0.8};
}

static struct cache *create(struct cache_geometry g)
{
    struct cache *cache = cache_create(&g);
    assert_non_null(cache);
    return cache;
}

static uint64_t pass(struct cache *cache, uint64_t size, uint64_t stride)
{
    uint64_t misses = 0;
    for (uint64_t a = 0; a < size; a += stride)
        misses += !cache_access(cache, a, &rng);
    return misses;
}

/* A second, cyclic pass over `lines` lines with LRU: a set that has more lines than ways misses
 * all of them, any other none. */
struct lru_case {
    uint64_t cache_lines, ways, lines, misses;
};
static const struct lru_case lru_cases[] = {
    {16, 4, 16, 0}, {16, 4, 17, 5},  {16, 4, 19, 15},    {16, 4, 20, 20},    {16, 1, 17, 2},
    {16, 0, 16, 0}, {16, 0, 17, 17}, {64, 32, 64, 0},    {64, 32, 65, 33},   {64, 32, 66, 66},
    {18, 4, 18, 0}, {18, 4, 19, 5},  {18, 4, 17, 0},     {24, 4, 24, 0},     {24, 4, 26, 10},
    {7, 4, 7, 0},   {7, 4, 8, 8},    {100, 0, 101, 101}, {100, 20, 101, 21}, {96, 16, 97, 17},
};

static void lru_misses_in_overflowing_sets(void **state)
{
    (void)state;
    static const uint64_t line_sizes[] = {128, 96};
    for (size_t k = 0; k < COUNT_OF(line_sizes); k++) {
        for (size_t i = 0; i < COUNT_OF(lru_cases); i++) {
            const struct lru_case *c = &lru_cases[i];
            uint64_t line = line_sizes[k];
            struct cache *cache = create(geometry(c->cache_lines * line, line, c->ways));
            assert_int_equal(pass(cache, c->lines * line, line), c->lines);
            uint64_t misses = pass(cache, c->lines * line, line);
            if (misses != c->misses)
                fail_msg("case %zu: %llu misses", i, (unsigned long long)misses);
            cache_destroy(cache);
        }
    }
}

/* 18 lines of 4 ways: 4 sets, of which the first two have 5 ways. Line 18 falls into set 2. */
static void unequal_sets_hold_all_lines(void **state)
{
    (void)state;
    struct cache *cache = create(geometry(18 * 64, 64, 4));
    pass(cache, 18 * 64, 64);
    assert_int_equal(pass(cache, 18 * 64, 64), 0);
    assert_int_equal(cache_span(cache), 4 * 64);
    cache_destroy(cache);
}

/* The L2 TLB of Mei and Chu (figure 8): 65 lines in a set of 17 and six of 8. Each line too many
 * overflows another set. */
static void sets_may_have_any_sizes(void **state)
{
    (void)state;
    static const uint64_t misses[] = {0, 18, 27, 36, 45, 54, 63, 72, 73};
    for (uint64_t more = 0; more < COUNT_OF(misses); more++) {
        struct cache_geometry g = geometry(UINT64_C(65) << 21, 2 << 20, 0);
        memcpy(g.set_ways, (const uint16_t[]){17, 8, 8, 8, 8, 8, 8}, 7 * sizeof *g.set_ways);
        assert_int_equal(cache_slot_count(&g), 8);
        struct cache *cache = create(g);
        pass(cache, (65 + more) << 21, 2 << 20);
        assert_int_equal(pass(cache, (65 + more) << 21, 2 << 20), misses[more]);
        cache_reset(cache, g.size);
        assert_int_equal(pass(cache, UINT64_C(65) << 21, 2 << 20), 65);
        assert_int_equal(pass(cache, UINT64_C(65) << 21, 2 << 20), 0);
        cache_destroy(cache);
    }
}

static void sectors_are_fetched_one_by_one(void **state)
{
    (void)state;
    static const struct {
        uint64_t sector, fetch, misses; /* of 32 words of 4 bytes in one line of 128 */
    } cases[] = {{128, 128, 1}, {64, 64, 2}, {32, 32, 4}, {32, 64, 2}, {32, 128, 1}, {16, 16, 8}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cache_geometry g = geometry(4096, 128, 4);
        g.sector = cases[i].sector;
        g.fetch = cases[i].fetch;
        struct cache *cache = create(g);
        assert_int_equal(pass(cache, 128, 4), cases[i].misses);
        assert_int_equal(pass(cache, 128, 4), 0);
        /* A tag stands for the whole line: stride 256 uses one sector, yet a line, of each. */
        cache_reset(cache, 4096);
        pass(cache, 16 << 10, 256);
        assert_int_equal(pass(cache, 16 << 10, 256), 64);
        cache_destroy(cache);
    }
}

static void hashed_sets_are_used_evenly(void **state)
{
    (void)state;
    static const struct {
        uint64_t lines, ways;
    } cases[] = {{512, 4}, {480, 4}, {513, 4}, {96, 1}, {2048, 32}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cache_geometry g = geometry(cases[i].lines * 128, 128, cases[i].ways);
        g.index = CACHE_HASHED;
        struct cache *cache = create(g);
        uint64_t sets = cache_span(cache) / 128;
        pass(cache, sets * cases[i].ways * 128, 128);
        assert_int_equal(pass(cache, sets * cases[i].ways * 128, 128), 0);
        cache_destroy(cache);
    }
}

/* Hashed and modulo must differ: lines one set apart collide in the modulo cache only. */
static void hashing_breaks_up_strides(void **state)
{
    (void)state;
    struct cache_geometry g = geometry(64 << 10, 128, 4);
    struct cache *modulo = create(g);
    g.index = CACHE_HASHED;
    struct cache *hashed = create(g);
    uint64_t span = cache_span(modulo);
    pass(modulo, 16 * span, span);
    pass(hashed, 16 * span, span);
    assert_int_equal(pass(modulo, 16 * span, span), 16);
    assert_true(pass(hashed, 16 * span, span) < 8);
    cache_destroy(modulo);
    cache_destroy(hashed);
}

/* Which way goes, over many fills of one full set. */
static void count_victims(enum cache_policy policy, uint64_t ways, double *share)
{
    enum { ROUNDS = 60000 };
    struct cache_geometry g = geometry(ways * 64, 64, ways);
    g.policy = policy;
    struct cache *cache = create(g);
    pass(cache, ways * 64, 64);
    memset(share, 0, ways * sizeof *share);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_false(cache_access(cache, (ways + i) * 64, &rng));
        share[cache->last] += 1.0 / ROUNDS;
    }
    cache_destroy(cache);
}

static void random_and_fermi_choose_ways(void **state)
{
    (void)state;
    double share[32];
    count_victims(CACHE_RANDOM, 4, share);
    for (int i = 0; i < 4; i++)
        assert_true(share[i] > 0.24 && share[i] < 0.26);
    count_victims(CACHE_FERMI, 4, share);
    for (int i = 0; i < 4; i++) {
        double wanted = i == 1 ? 1.0 / 2 : 1.0 / 6;
        assert_true(share[i] > wanted - 0.01 && share[i] < wanted + 0.01);
    }
    count_victims(CACHE_FERMI, 8, share);
    assert_true(share[1] > 0.29 && share[1] < 0.31 && share[0] > 0.09 && share[0] < 0.11);
    count_victims(CACHE_RANDOM, 32, share);
    for (int i = 0; i < 32; i++)
        assert_true(share[i] > 0.027 && share[i] < 0.036);
}

static void early_misses_before_it_is_full(void **state)
{
    (void)state;
    struct cache_geometry g = geometry(64 << 10, 128, 16);
    g.policy = CACHE_EARLY;
    struct cache *cache = create(g);
    pass(cache, 48 << 10, 128);
    assert_int_equal(pass(cache, 48 << 10, 128), 0); /* 75 %: below early_fill */
    cache_reset(cache, 64 << 10);
    pass(cache, 60 << 10, 128);
    assert_true(pass(cache, 60 << 10, 128) > 10);
    uint64_t misses = 1;
    for (int i = 0; i < 100 && misses; i++) /* under pressure it becomes full */
        misses = pass(cache, 60 << 10, 128);
    assert_int_equal(misses, 0);
    cache_destroy(cache);
}

/* Line 0 is used again before a new line comes: LRU spares it, FIFO does not. A tree of four spares
 * line 1 too, which LRU would take. */
static void used_again(void **state)
{
    (void)state;
    static const struct {
        enum cache_policy policy;
        uint64_t ways;
        bool first, second; /* still there */
    } cases[] = {{CACHE_LRU, 4, true, false},  {CACHE_LRU, 24, true, false},
                 {CACHE_FIFO, 4, false, true}, {CACHE_FIFO, 24, false, true},
                 {CACHE_TREE, 4, true, true},  {CACHE_TREE, 24, true, true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cache_geometry g = geometry(cases[i].ways * 64, 64, cases[i].ways);
        g.policy = cases[i].policy;
        struct cache *second = create(g), *first = create(g);
        pass(first, cases[i].ways * 64, 64);
        pass(second, cases[i].ways * 64, 64);
        cache_access(first, 0, &rng);
        cache_access(second, 0, &rng);
        cache_access(first, cases[i].ways * 64, &rng);
        cache_access(second, cases[i].ways * 64, &rng);
        assert_int_equal(cache_access(first, 0, &rng), cases[i].first);
        assert_int_equal(cache_access(second, 64, &rng), cases[i].second);
        cache_destroy(first);
        cache_destroy(second);
    }
}

/* Four sets by bits 7 and 8: 512 bytes apart collide, lines of the same 128 bytes too. */
static void runs_go_to_one_set(void **state)
{
    (void)state;
    struct cache_geometry g = geometry(12 << 10, 32, 96);
    g.set_bytes = 128;
    struct cache *cache = create(g);
    assert_int_equal(cache_span(cache), 512);
    pass(cache, 97 * 512, 512);
    assert_int_equal(pass(cache, 97 * 512, 512), 97);
    cache_reset(cache, 12 << 10);
    pass(cache, (12 << 10) + 32, 32);
    assert_int_equal(pass(cache, (12 << 10) + 32, 32), 97);
    cache_destroy(cache);
}

/* The linked cache against a plain model: an array of keys in the order of their use. */
static void many_ways_are_lru(void **state)
{
    (void)state;
    enum { WAYS = 48, STEPS = 40000 };
    struct cache *cache = create(geometry(WAYS * 64, 64, 0));
    uint64_t order[WAYS];
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t line = rng_below(&rng, 70), at = 0;
        while (at < count && order[at] != line)
            at++;
        bool expected = at < count;
        if (!expected && count < WAYS)
            count++;
        at = at < count ? at : count - 1;
        memmove(&order[1], &order[0], at * sizeof order[0]);
        order[0] = line;
        assert_int_equal(cache_access(cache, line * 64, &rng), expected);
    }
    cache_destroy(cache);
}

static void ticks_may_run_out(void **state)
{
    (void)state;
    struct cache *cache = create(geometry(4 * 64, 64, 4));
    cache->tick = UINT32_MAX - 2;
    pass(cache, 4 * 64, 64);
    assert_false(cache_access(cache, 4 * 64, &rng)); /* takes the oldest: line 0 */
    assert_true(cache_access(cache, 1 * 64, &rng));
    assert_false(cache_access(cache, 0, &rng));
    cache_destroy(cache);
}

static void reset_makes_cold_and_smaller(void **state)
{
    (void)state;
    static const uint64_t ways[] = {4, 0};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct cache *cache = create(geometry(4096, 64, ways[i]));
        pass(cache, 4096, 64);
        cache_reset(cache, 2048);
        assert_int_equal(pass(cache, 2048, 64), 32);
        assert_int_equal(pass(cache, 2048, 64), 0);
        pass(cache, 4096, 64);
        assert_int_equal(pass(cache, 4096, 64), 64);
        cache_reset(cache, 4096);
        pass(cache, 4096, 64);
        assert_int_equal(pass(cache, 4096, 64), 0);
        cache_destroy(cache);
    }
}

/* 16 sets of four tags, data for 48 lines. */
static void more_tags_than_data(void **state)
{
    (void)state;
    struct cache_geometry g = geometry(48 * 64, 64, 4);
    g.tags = 64 * 64;
    struct cache *cache = create(g);
    pass(cache, 48 * 64, 64);
    assert_int_equal(pass(cache, 48 * 64, 64), 0);
    pass(cache, 49 * 64, 64);
    uint64_t misses = pass(cache, 49 * 64, 64);
    assert_in_range(misses, 1, 48); /* under LRU in sets of four all or none of a set would miss */
    cache_reset(cache, g.size);
    pass(cache, 4 * 16 * 64, 16 * 64);
    assert_int_equal(pass(cache, 4 * 16 * 64, 16 * 64), 0);
    pass(cache, 5 * 16 * 64, 16 * 64);
    assert_int_equal(pass(cache, 5 * 16 * 64, 16 * 64), 5);
    cache_reset(cache, 32 * 64); /* less data, as many tags */
    pass(cache, 32 * 64, 64);
    assert_int_equal(pass(cache, 32 * 64, 64), 0);
    pass(cache, 48 * 64, 64);
    assert_true(pass(cache, 48 * 64, 64) > 0);
    cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lru_misses_in_overflowing_sets),
        cmocka_unit_test(unequal_sets_hold_all_lines),
        cmocka_unit_test(sets_may_have_any_sizes),
        cmocka_unit_test(sectors_are_fetched_one_by_one),
        cmocka_unit_test(hashed_sets_are_used_evenly),
        cmocka_unit_test(hashing_breaks_up_strides),
        cmocka_unit_test(random_and_fermi_choose_ways),
        cmocka_unit_test(early_misses_before_it_is_full),
        cmocka_unit_test(used_again),
        cmocka_unit_test(runs_go_to_one_set),
        cmocka_unit_test(many_ways_are_lru),
        cmocka_unit_test(ticks_may_run_out),
        cmocka_unit_test(reset_makes_cold_and_smaller),
        cmocka_unit_test(more_tags_than_data),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
