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
    struct reuse *reuse = reuse_create(0, 1);
    assert_non_null(reuse);
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        int64_t distance = -2;
        distance = reuse_access(reuse, (uint64_t)sequence[i]);
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
        struct reuse *reuse = reuse_create(0, 1);
        uint64_t stack[LINES_MAX], lines = 1 + rng_below(&rng, LINES_MAX), hits = 0;
        uint64_t step = 1 + rng_below(&rng, 1 << 20), size = 1 + rng_below(&rng, LINES_MAX);
        size_t count = 0;
        assert_non_null(reuse);
        for (int i = 0; i < 8000; i++) {
            uint64_t near = rng_below(&rng, 2) ? rng_below(&rng, 1 + lines / 8) : 0;
            uint64_t line = (near ? near : rng_below(&rng, lines)) * step;
            int64_t distance, wanted = naive(stack, &count, line);
            distance = reuse_access(reuse, line);
            assert_int_equal(distance, wanted);
            hits += wanted >= 0 && (uint64_t)wanted < size;
        }
        assert_int_equal(reuse_hits(reuse, size), hits);
        assert_int_equal(reuse_lines(reuse), count);
        reuse_destroy(reuse);
    }
}

/* A stack of lines with their sectors, of a certain size: what falls off loses its sectors. */
struct stack {
    uint64_t lines[LINES_MAX];
    uint32_t sectors[LINES_MAX];
    size_t count, room;
};

/* Sectors that were there; brings those that are brought. */
static uint32_t look_up(struct stack *s, uint64_t line, uint32_t brought)
{
    size_t at = 0;
    while (at < s->count && s->lines[at] != line)
        at++;
    uint32_t there = at < s->count ? s->sectors[at] : 0;
    if (at == s->count && s->count < s->room)
        s->count++;
    size_t moved = at < s->count ? at : s->count - 1;
    memmove(s->lines + 1, s->lines, moved * sizeof *s->lines);
    memmove(s->sectors + 1, s->sectors, moved * sizeof *s->sectors);
    s->lines[0] = line;
    s->sectors[0] = there | brought;
    return there;
}

/* One pass gives the hits of every size, also where far lines are forgotten. */
static void sectors_of_every_size(void **state)
{
    (void)state;
    enum { SECTORS = 4, FORGOTTEN = 256 };
    static const size_t rooms[] = {1, 2, 3, 7, 64, 200, FORGOTTEN};
    static struct stack stacks[COUNT_OF(rooms)];
    uint64_t hits[COUNT_OF(rooms)] = {0}, asked_all = 0;
    struct reuse *reuse = reuse_create(FORGOTTEN, SECTORS);
    struct rng rng;
    rng_init(&rng, 11, "sectors");
    assert_non_null(reuse);
    for (int i = 0; i < 40000; i++) {
        uint64_t line = rng_below(&rng, rng_below(&rng, 3) ? 60 : LINES_MAX) * 977;
        uint32_t asked = 1 + (uint32_t)rng_below(&rng, 15);
        uint32_t brought = rng_below(&rng, 2) ? asked : (asked | asked << 1) & 15;
        asked_all += (uint64_t)__builtin_popcount(asked);
        for (size_t k = 0; k < COUNT_OF(rooms); k++) {
            stacks[k].room = rooms[k];
            uint32_t there = look_up(&stacks[k], line, brought);
            hits[k] += (uint64_t)__builtin_popcount(there & asked);
        }
        reuse_access_sectors(reuse, line, asked, brought);
    }
    assert_int_equal(reuse_accesses(reuse), asked_all);
    for (size_t k = 0; k < COUNT_OF(rooms); k++)
        assert_int_equal(reuse_hits(reuse, rooms[k]), hits[k]);
    assert_true(hits[0] < hits[3] && hits[3] < hits[6]);
    reuse_destroy(reuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_table_1),
        cmocka_unit_test(random_sequences_are_a_stack),
        cmocka_unit_test(sectors_of_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
