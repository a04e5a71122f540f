/* The line from what stays resident at several strides, of caches that are reckoned here. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>

#include "probes/caches/line.h"

/* A direct-mapped or LRU cache of `sets` sets, touched in order again and again. */
struct cache {
    uint64_t line, sets, ways; /* line in fetch units */
};

/* Elements that are resident after many passes: those of the last `ways` lines that each set met.
 */
static uint64_t resident(const struct cache *cache, uint64_t units, uint64_t elements)
{
    uint64_t lines = (elements - 1) * units / cache->line + 1, count = 0;
    bool *touched = mem_array(lines, sizeof *touched);
    assert_non_null(touched);
    for (uint64_t i = 0; i < elements; i++)
        touched[i * units / cache->line] = true;
    for (uint64_t i = 0; i < elements; i++) {
        uint64_t line = i * units / cache->line, later = 0;
        for (uint64_t l = line + cache->sets; l < lines; l += cache->sets)
            later += touched[l];
        count += later < cache->ways;
    }
    free(touched);
    return count;
}

static void observe(struct line_evidence *e, const struct cache *cache, uint64_t units,
                    double oversize, double error)
{
    double capacity = (double)(cache->line * cache->sets * cache->ways);
    uint64_t elements = (uint64_t)ceil(oversize * capacity / (double)units);
    if (units > cache->line)
        elements = (uint64_t)ceil(oversize * capacity / (double)cache->line);
    e->items[e->count++] = (struct line_observation){
        .units = units,
        .layout = {.elements = elements, .stride = units, .few = 1, .jobs = 1},
        .share = {.hits = (double)resident(cache, units, elements) / (double)elements,
                  .error = error,
                  .n = 1000}};
}

static void the_line_is_told(void **state)
{
    (void)state;
    static const struct cache caches[] = {
        {1, 64, 4},    {1, 97, 1},  {2, 97, 1},  {3, 64, 2},  {4, 432, 16}, {4, 1, 7},
        {8, 77, 1},    {8, 1, 12},  {7, 120, 1}, {12, 50, 4}, {16, 1, 4},   {16, 9, 6},
        {16, 1000, 2}, {5, 1, 100}, {4, 30, 8},  {8, 1, 5},   {11, 1, 6},   {13, 1, 5},
    };
    for (size_t i = 0; i < COUNT_OF(caches); i++) {
        const struct cache *c = &caches[i];
        struct line_evidence e = {.systematic = 0.004};
        for (uint64_t units = 1; units <= c->line + 2; units++)
            observe(&e, c, units, 1.5, 0.005);
        observe(&e, c, c->line + 1, 3, 0.005);
        observe(&e, c, c->line + 3, 3, 0.005);
        observe(&e, c, 2 * c->line + 3, 3, 0.005);
        observe(&e, c, 23, 3, 0.005);
        struct line_verdict verdict = line_judge(&e);
        if (verdict.best.line != (double)c->line || verdict.clear < 6)
            fail_msg("line %llu of %llu sets, %llu ways: %g, clear by %g",
                     (unsigned long long)c->line, (unsigned long long)c->sets,
                     (unsigned long long)c->ways, verdict.best.line, verdict.clear);
        double capacity = (double)(c->line * c->sets * c->ways);
        assert_true(fabs(line_capacity(&e, verdict.best).units - capacity) < 0.01 * capacity);
    }
}

/* Strides that leave sets unused show too little: that alone does not make a line longer. */
static void unused_sets_do_not_lengthen_it(void **state)
{
    (void)state;
    static const struct cache cache = {1, 256, 2};
    struct line_evidence e = {.systematic = 0.004};
    observe(&e, &cache, 1, 1.5, 0.01);
    for (uint64_t units = 2; units <= 8; units *= 2)
        observe(&e, &cache, units, 3, 0.01);
    assert_true(line_judge(&e).best.line > 1); /* nothing tells that sets are unused */
    observe(&e, &cache, 3, 3, 0.01);
    observe(&e, &cache, 7, 3, 0.01);
    assert_true(line_judge(&e).best.line == 1);
}

/* With large errors the verdict is not clear. */
static void doubt_is_told(void **state)
{
    (void)state;
    static const struct cache cache = {8, 100, 4};
    struct line_evidence e = {.systematic = 0.004};
    for (uint64_t units = 4; units <= 10; units++)
        observe(&e, &cache, units, 1.5, 0.1);
    assert_true(line_judge(&e).clear < 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_line_is_told),
                                       cmocka_unit_test(unused_sets_do_not_lengthen_it),
                                       cmocka_unit_test(doubt_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
