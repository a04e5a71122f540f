/* The line from what stays resident at several strides, and from where misses begin; the fetch unit
 * from which loads of cold chases miss. Of caches that are reckoned here. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>

#include "probes/caches/fetch.h"
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

/* Whether an array of elements this far apart stays in an LRU cache. */
static bool fits(const struct cache *cache, uint64_t units, uint64_t array_units)
{
    uint64_t *lines = mem_array(cache->sets, sizeof *lines), last = UINT64_MAX;
    bool all = true;
    for (uint64_t at = 0; at < array_units; at += units) {
        uint64_t line = at / cache->line;
        if (line != last)
            all &= ++lines[line % cache->sets] <= cache->ways;
        last = line;
    }
    free(lines);
    return all;
}

/* From sweeps of sizes around the capacity, in steps of 2 %, at strides up to more than two lines.
 */
static void the_line_is_told_by_sweeps(void **state)
{
    (void)state;
    static const struct cache caches[] = {
        {2, 97, 4}, {4, 101, 8}, {4, 64, 6}, {8, 64, 4}, {8, 53, 4}};
    for (size_t i = 0; i < COUNT_OF(caches); i++) {
        const struct cache *c = &caches[i];
        struct line_evidence e = {.systematic = 0.01, .multiple = 2};
        uint64_t capacity = c->line * c->sets * c->ways, step = capacity / 50;
        for (uint64_t units = 1; units <= 2 * c->line + 2; units++) {
            uint64_t array = capacity / 2;
            while (array + step <= 3 * capacity / 2 && fits(c, units, array + step))
                array += step;
            e.items[e.count++] = (struct line_observation){.units = units,
                                                           .reach = {(double)array, (double)step},
                                                           .open = array + step > 3 * capacity / 2};
        }
        struct line_verdict verdict = line_judge(&e);
        if (verdict.best.line != (double)c->line || line_confidence(&verdict) < LINE_SURE)
            fail_msg("line %llu of %llu sets: %g, clear by %g", (unsigned long long)c->line,
                     (unsigned long long)c->sets, verdict.best.line, verdict.clear);
    }
}

/* Cold chases with strides of 4 to 96 bytes: in order, without their first load, and in an order
 * that is not known; one load in 20 seems to miss. */
static void the_fetch_unit_is_told(void **state)
{
    (void)state;
    enum { STRIDES = 24, LOADS = 40 };
    for (uint64_t unit = 16; unit <= 64; unit += 16)
        for (enum fetch_order order = FETCH_IN_ORDER; order <= FETCH_IN_RANDOM_ORDER; order++) {
            static uint32_t misses[STRIDES][LOADS];
            struct fetch_row rows[STRIDES];
            for (uint64_t s = 0; s < STRIDES; s++) {
                uint64_t stride = 4 * (s + 1), first = order == FETCH_WITHOUT_FIRST;
                for (uint64_t i = 0; i < LOADS; i++) {
                    uint64_t at = (first + i) * stride;
                    /* The unknown order: backwards. */
                    uint64_t k = order == FETCH_IN_RANDOM_ORDER ? LOADS - 1 - i : i;
                    bool begins = !at || at / unit != (at - stride) / unit;
                    misses[s][k] = begins || (i + s) % 20 == 7;
                }
                rows[s] = (struct fetch_row){
                    .stride_bytes = stride, .loads = LOADS, .passes = 1, .misses = misses[s]};
            }
            const struct fetch_unit found = fetch_judge(rows, STRIDES, order, 4, 96);
            assert_int_equal(found.bytes, unit);
            assert_true(found.contrast > 0.8);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_told), cmocka_unit_test(unused_sets_do_not_lengthen_it),
        cmocka_unit_test(doubt_is_told), cmocka_unit_test(the_line_is_told_by_sweeps),
        cmocka_unit_test(the_fetch_unit_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
