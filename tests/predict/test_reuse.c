/* Reuse distances against the seed's table 1 and against a naive stack. */
#include <string.h>

#include "../check.h"
#include "base/rng.h"
#include "predict/reuse.h"

static void seed_table_1(void **state)
{
    (void)state;
    static const char sequence[] = "ABCDAADC";
    static const int64_t wanted[] = {-1, -1, -1, -1, 3, 0, 1, 2};
    struct reuse *reuse = reuse_create();
    assert_non_null(reuse);
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        int64_t distance = -2;
        assert_int_equal(reuse_access(reuse, (uint64_t)sequence[i], &distance), 0);
        assert_int_equal(distance, wanted[i]);
    }
    assert_int_equal(reuse_accesses(reuse), 8);
    assert_int_equal(reuse_lines(reuse), 4);
    assert_int_equal(reuse_hits(reuse, 4), 4); /* 50 % */
    assert_int_equal(reuse_hits(reuse, 2), 2); /* 25 % */
    assert_int_equal(reuse_hits(reuse, 1000), 4);
    reuse_destroy(reuse);
}

enum { LINES_MAX = 700 };

/* A stack, most recent line first. Returns the depth at which the line was found. */
static int64_t naive(uint64_t *stack, size_t *count, uint64_t line)
{
    size_t at = 0;
    while (at < *count && stack[at] != line)
        at++;
    int64_t distance = at < *count ? (int64_t)at : REUSE_NEVER;
    *count += at == *count;
    memmove(stack + 1, stack, at * sizeof *stack);
    stack[0] = line;
    return distance;
}

/* Sequences of few and of many lines, spread and crowded, longer than many renumberings. */
static void random_sequences_are_a_stack(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 7, "reuse");
    for (int round = 0; round < 12; round++) {
        struct reuse *reuse = reuse_create();
        uint64_t stack[LINES_MAX], lines = 1 + rng_below(&rng, LINES_MAX), hits = 0;
        uint64_t step = 1 + rng_below(&rng, 1 << 20), size = 1 + rng_below(&rng, LINES_MAX);
        size_t count = 0;
        assert_non_null(reuse);
        for (int i = 0; i < 8000; i++) {
            uint64_t near = rng_below(&rng, 2) ? rng_below(&rng, 1 + lines / 8) : 0;
            uint64_t line = (near ? near : rng_below(&rng, lines)) * step;
            int64_t distance, wanted = naive(stack, &count, line);
            assert_int_equal(reuse_access(reuse, line, &distance), 0);
            assert_int_equal(distance, wanted);
            hits += wanted >= 0 && (uint64_t)wanted < size;
        }
        assert_int_equal(reuse_hits(reuse, size), hits);
        assert_int_equal(reuse_lines(reuse), count);
        reuse_destroy(reuse);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_table_1),
        cmocka_unit_test(random_sequences_are_a_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
