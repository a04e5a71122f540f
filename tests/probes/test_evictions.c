/* What a group of lines, and the order of their misses, say about sets and policy: by hand. */
#include "../check.h"

#include <math.h>

#include "probes/caches/cache_sets.h"
#include "probes/caches/replacement_order.h"
#include "probes/caches/reuse.h"

static void patterns(void **state)
{
    (void)state;
    static const struct {
        uint64_t group[8], count, lines;
        uint64_t sets, run; /* 0: no pattern */
    } cases[] = {
        {{3, 35, 67, 99, 131}, 5, 132, 32, 1}, {{0, 1, 2, 3}, 4, 4, 1, 1},
        {{0, 1, 8, 9, 16}, 5, 17, 4, 2},       {{3, 35, 68, 100, 129}, 5, 130, 0, 0},
        {{3, 35, 67, 131}, 4, 132, 0, 0},      {{0, 5}, 2, 6, 5, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct set_pattern found = {0};
        bool there = set_pattern_find(cases[i].group, cases[i].count, cases[i].lines, &found);
        assert_int_equal(there, cases[i].sets > 0);
        assert_int_equal(found.sets, cases[i].sets);
        assert_int_equal(found.run, cases[i].run);
    }
    /* 18 lines in 4 sets of 4 ways, two of which have 5. */
    const struct set_pattern four = {.run = 1, .sets = 4};
    assert_int_equal(set_pattern_missing(&four, 4, 2, 18), 0);
    assert_int_equal(set_pattern_missing(&four, 4, 2, 19), 5);
    assert_int_equal(set_pattern_missing(&four, 4, 2, 20), 10);
    assert_int_equal(set_pattern_missing(&four, 4, 2, 21), 16);
    assert_int_equal(set_pattern_run((const uint64_t[]){4, 5, 12, 13, 18}, 5), 2);
    assert_int_equal(set_pattern_run((const uint64_t[]){4, 5, 11, 13, 18}, 5), 1);
}

/* Lines 0 to 3, line 0 again, a new one: LRU took line 1, FIFO line 0. */
static void reuse(void **state)
{
    (void)state;
    const struct reuse_pattern pattern = {.ways = 4, .first = 0, .again = 1, .more = 1, .timed = 4};
    static const bool lru[] = {false, true, true, true}, fifo[] = {true, true, true, true};
    bool missed[4];
    reuse_pattern_predict(&pattern, false, missed);
    assert_memory_equal(missed, lru, sizeof lru);
    reuse_pattern_predict(&pattern, true, missed);
    assert_memory_equal(missed, fifo, sizeof fifo);
}

/* Of two lines in one set of two ways the first is used again, then another one comes: LRU lost the
 * second, FIFO the first, and when that one is loaded again the second as well. A tree of two ways
 * is LRU. The line that comes is one of the two in 0.2 % of the draws. */
static void scattered_reuse(void **state)
{
    (void)state;
    const struct reuse_scattered loads = {.first = 2, .again = 1, .more = 1};
    const struct reuse_sets sets = {.region = 1000, .sets = 1, .ways = 2};
    static const double wanted[REUSE_POLICIES][REUSE_HALVES] = {
        [REUSE_LRU] = {0, 1}, [REUSE_FIFO] = {1, 1}, [REUSE_TREE] = {0, 1}};
    for (size_t policy = 0; policy < REUSE_POLICIES; policy++) {
        struct reuse_shares seen;
        reuse_scattered_imitate(&loads, &sets, (enum reuse_policy)policy, 1000, 5, &seen);
        for (size_t half = 0; half < REUSE_HALVES; half++)
            assert_true(fabs(seen.mean[half] - wanted[policy][half]) < 0.01);
    }
}

/* Four lines in four ways, the first three used again, then another one comes. LRU lost the fourth.
 * A tree points away from the third and, in the other half, from the second: it lost the first, and
 * when that one is loaded again the fourth. */
static void scattered_tree(void **state)
{
    (void)state;
    const struct reuse_scattered loads = {.first = 4, .again = 3, .more = 1};
    const struct reuse_sets sets = {.region = 100000, .sets = 1, .ways = 4};
    struct reuse_shares lru, tree;
    reuse_scattered_imitate(&loads, &sets, REUSE_LRU, 200, 5, &lru);
    reuse_scattered_imitate(&loads, &sets, REUSE_TREE, 200, 5, &tree);
    assert_true(fabs(lru.mean[0] - 0) < 0.01 && fabs(lru.mean[1] - 0.5) < 0.01);
    assert_true(fabs(tree.mean[0] - 0.5) < 0.01 && fabs(tree.mean[1] - 0.5) < 0.01);
}

/* An imitated policy is found again; one with other shares, or one that always takes the next way,
 * differs from it. */
static void order(void **state)
{
    (void)state;
    static const double shares[] = {1.0 / 6, 1.0 / 2, 1.0 / 6, 1.0 / 6};
    struct eviction_order equal, same, biased, next;
    struct eviction_null null = {.stray = 0.001, .loads = 60, .jobs = 400, .seed = 3};
    eviction_order_init(&equal, 4);
    eviction_order_init(&same, 4);
    eviction_order_init(&biased, 4);
    eviction_order_init(&next, 4);
    eviction_order_imitate(&equal, &null);
    null.seed = 4;
    eviction_order_imitate(&same, &null);
    null.shares = shares;
    eviction_order_imitate(&biased, &null);
    eviction_order_begin(&next);
    for (uint32_t k = 0; k < 4000; k++) /* every line misses: the ways go in turn */
        eviction_order_add(&next, (4 + k) % 5, true);
    assert_true(eviction_order_unequal(&same, &equal) < 4);
    assert_true(eviction_order_dependent(&same, &equal) < 4);
    assert_true(eviction_order_unequal(&biased, &equal) > 10);
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)biased.counts[i] / (double)biased.total - shares[i]) < 0.02);
    assert_true(eviction_order_dependent(&next, &equal) > 10);
    eviction_order_fini(&equal);
    eviction_order_fini(&same);
    eviction_order_fini(&biased);
    eviction_order_fini(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns), cmocka_unit_test(reuse),
                                       cmocka_unit_test(scattered_reuse),
                                       cmocka_unit_test(scattered_tree), cmocka_unit_test(order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
