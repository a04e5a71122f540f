/* Steps of a parallel cache: the seed's table 3, merges, and both latency models. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"
#include "predict/parallel.h"
#include "predict/reuse.h"

enum { STEPS = 5, BANKS = 2 };

/* A bank that is never full: a line is there once it was brought. The distances are those of the
 * bank's own accesses. */
struct bank_pair {
    struct reuse *banks[BANKS];
    bool here[256];
    int64_t distance; /* of the last lookup */
};

static bool lookup(void *cache, const struct parallel_access *access, bool bring)
{
    struct bank_pair *pair = cache;
    bool here = pair->here[access->line];
    if (!here && !bring)
        return false;
    pair->here[access->line] = true;
    pair->distance = reuse_access(pair->banks[access->bank], access->line);
    return here;
}

struct seen {
    struct bank_pair *pair;
    char text[STEPS][BANKS][64];
};

static void watch(void *watcher, uint64_t step, const struct parallel_access *access,
                  enum parallel_status status)
{
    static const char *const names[] = {"h", "m", "merged", "rf"};
    struct seen *seen = watcher;
    char *text = seen->text[step][access->bank];
    size_t length = strlen(text);
    int64_t distance = seen->pair->distance;
    assert_true(step < STEPS);
    if (status == PARALLEL_FAILED)
        snprintf(text + length, 64 - length, "%c rf ", (char)access->line);
    else if (distance == REUSE_NEVER)
        snprintf(text + length, 64 - length, "%c %s inf ", (char)access->line, names[status]);
    else
        snprintf(text + length, 64 - length, "%c %s %d ", (char)access->line, names[status],
                 (int)distance);
}

static size_t warp(struct parallel_access *accesses, size_t at, uint32_t number, const char *lines)
{
    for (; *lines; lines++)
        accesses[at++] = (struct parallel_access){
            .line = (uint64_t)*lines, .warp = number, .bank = (uint32_t)(*lines - 'A') % 2};
    return at;
}

/* Two warp schedulers, two banks of two ports, two MSHRs for both, misses of two steps. */
static void seed_table_3(void **state)
{
    (void)state;
    static const char *const wanted[STEPS][BANKS] = {
        {"A m inf C m inf ", "B rf D rf "},
        {"E rf G rf ", "B m inf D m inf "},
        {"E m inf G m inf ", "F rf H rf "},
        {"", "F m inf H m inf "},
        {"A h 3 ", "D h 2 "},
    };
    struct bank_pair pair = {{reuse_create(0, 1), reuse_create(0, 1)}, {false}, 0};
    struct seen seen = {.pair = &pair};
    struct parallel p = {
        .config = {.banks = 2, .ports = 2, .mshrs = 2, .merges_max = 8, .latency = {.k1 = 2}},
        .lookup = lookup,
        .cache = &pair,
        .watch = watch,
        .watcher = &seen};
    struct parallel_access accesses[8];
    assert_int_equal(parallel_check(&p.config, NULL), 0);
    size_t count = warp(accesses, warp(accesses, 0, 0, "ABCD"), 1, "EFGH");
    parallel_serve(&p, accesses, count);
    parallel_serve(&p, accesses, warp(accesses, 0, 2, "AD"));
    for (int step = 0; step < STEPS; step++)
        for (int bank = 0; bank < BANKS; bank++)
            assert_string_equal(seen.text[step][bank], wanted[step][bank]);
    assert_int_equal(p.counts.steps, 5);
    assert_int_equal(p.counts.misses, 8);
    assert_int_equal(p.counts.hits, 2);
    assert_int_equal(p.counts.fails, 6);
    reuse_destroy(pair.banks[0]);
    reuse_destroy(pair.banks[1]);
}

/* Serves the warps one after the other on one bank and one port. */
static struct parallel_counts serve(struct parallel_config config, const char *const *warps)
{
    struct bank_pair pair = {{reuse_create(0, 1), reuse_create(0, 1)}, {false}, 0};
    struct parallel p = {.config = config, .lookup = lookup, .cache = &pair};
    for (uint32_t i = 0; warps[i]; i++) {
        struct parallel_access accesses[16];
        size_t count = warp(accesses, 0, i, warps[i]);
        for (size_t k = 0; k < count; k++)
            accesses[k].bank = 0;
        parallel_serve(&p, accesses, count);
    }
    reuse_destroy(pair.banks[0]);
    reuse_destroy(pair.banks[1]);
    return p.counts;
}

/* A line that is under way is merged, as often as allowed, and hits once it has arrived. */
static void merges_until_it_arrives(void **state)
{
    (void)state;
    static const char *const same[] = {"A", "A", "A", "A", "A", "A", NULL};
    struct parallel_config config = {
        .banks = 1, .ports = 1, .mshrs = 4, .merges_max = 8, .latency = {.k1 = 4}};
    struct parallel_counts counts = serve(config, same);
    assert_int_equal(counts.misses, 1);
    assert_int_equal(counts.merges, 3); /* steps 1, 2, 3; it arrives at the end of step 3 */
    assert_int_equal(counts.hits, 2);
    config.merges_max = 1;
    counts = serve(config, same);
    assert_int_equal(counts.merges, 1);
    assert_int_equal(counts.fails, 2);
    assert_int_equal(counts.hits, 4);
    assert_int_equal(counts.steps, 8);
}

/* With k2 > 0 a miss takes longer the more misses are outstanding. */
static void busy_registers_slow_misses(void **state)
{
    (void)state;
    static const char *const many[] = {"ABCDEFGH", "IJKLMNOP", NULL};
    struct parallel_config config = {.banks = 1, .ports = 8, .mshrs = 8, .latency = {.k1 = 2}};
    struct parallel_counts fixed = serve(config, many);
    config.latency.k2 = 1;
    config.latency.sharers = 2;
    struct parallel_counts adaptive = serve(config, many);
    assert_int_equal(fixed.misses, adaptive.misses);
    assert_true(adaptive.steps > fixed.steps);
    assert_true(adaptive.fails > fixed.fails);
}

static void ignore(void *watcher, uint64_t step, const struct parallel_access *access,
                   enum parallel_status status)
{
    (void)watcher, (void)step, (void)access, (void)status;
}

/* Groups of pseudo-random lines; with a watcher every step is taken, without one idle steps are
 * skipped. */
static struct parallel_counts serve_random(struct parallel_config config, parallel_watch *watcher)
{
    struct bank_pair pair = {{reuse_create(0, 1), reuse_create(0, 1)}, {false}, 0};
    struct parallel p = {.config = config, .lookup = lookup, .cache = &pair, .watch = watcher};
    uint32_t random = 1;
    for (int group = 0; group < 40; group++) {
        struct parallel_access accesses[16];
        for (uint32_t i = 0; i < COUNT_OF(accesses); i++) {
            random = random * 1664525 + 1013904223;
            accesses[i] = (struct parallel_access){
                .line = random >> 24, .warp = i / 4, .bank = (random >> 24) % config.banks};
        }
        parallel_serve(&p, accesses, COUNT_OF(accesses));
    }
    reuse_destroy(pair.banks[0]);
    reuse_destroy(pair.banks[1]);
    return p.counts;
}

static void skipped_steps_count_as_taken(void **state)
{
    (void)state;
    uint64_t fails = 0;
    for (uint32_t i = 0; i < 64; i++) {
        struct parallel_config config = {
            .banks = 1 + i % 2,
            .ports = 1 + i / 2 % 2,
            .mshrs = 1 + i / 4 % 4,
            .merges_max = i / 16 % 2,
            .latency = {.k1 = i % 3 ? 37.5 : 2, .k2 = i / 32 * 3.25, .sharers = 2}};
        struct parallel_counts all = serve_random(config, ignore);
        struct parallel_counts skipped = serve_random(config, NULL);
        assert_memory_equal(&all, &skipped, sizeof all);
        fails += all.fails;
    }
    assert_true(fails > 1000);
}

/* Taken one by one, these steps would need hours. */
static void long_misses_take_no_longer(void **state)
{
    (void)state;
    static const char *const many[] = {"ABCDEFGH", "IJKLMNOP", NULL};
    struct parallel_config config = {.banks = 1, .ports = 1, .mshrs = 1, .latency = {.k1 = 1e13}};
    struct parallel_counts counts = serve(config, many);
    assert_int_equal(counts.misses, 16);
    assert_int_equal(counts.steps, 15 * (UINT64_C(10000000000000) - 1) + 1);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const struct parallel_config bad[] = {
        {.banks = 0, .ports = 1, .mshrs = 1, .latency = {.k1 = 1}},
        {.banks = 65, .ports = 1, .mshrs = 1, .latency = {.k1 = 1}},
        {.banks = 1, .ports = 1, .mshrs = 0, .latency = {.k1 = 1}},
        {.banks = 1, .ports = 1, .mshrs = 1, .latency = {.k1 = 0}},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err err = {0};
        assert_int_equal(parallel_check(&bad[i], &err), -EINVAL);
        assert_true(err.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_table_3),
        cmocka_unit_test(merges_until_it_arrives),
        cmocka_unit_test(busy_registers_slow_misses),
        cmocka_unit_test(skipped_steps_count_as_taken),
        cmocka_unit_test(long_misses_take_no_longer),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
