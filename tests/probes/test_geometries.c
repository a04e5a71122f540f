/* Twenty random GPUs and a few chosen ones: what the probes find against what is there. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geometry.h"

/* Twelve as a test; as a benchmark as many as the argument says. The last third comes from a seed
 * that was not used while the probes were made. */
static int random_count = 6;
static const uint64_t SEED = 20261115;
static uint64_t fresh_seed = 31337042; /* a second argument sets another */

static const char *const PROBES = "l1_data,texture.line,cache,main.latency";
static const double TOLERANCE = 0.02;

struct tally {
    int attributes;
    int wrong;
    int confident_and_wrong;
};

static void note(struct tally *tally, const struct measure *m, bool right)
{
    tally->attributes++;
    tally->wrong += !right;
    tally->confident_and_wrong += !right && m && m->status == MEASURE_OK && m->confidence > 0.9;
}

static void hold(const struct measures *measures, const char *metric, double truth,
                 double tolerance, struct tally *tally, struct strbuf *line)
{
    const struct measure *m = measures_get(measures, metric);
    double value = NAN;
    bool there = measures_value(measures, metric, &value);
    bool right = there && fabs(value - truth) <= tolerance * truth;
    strbuf_printf(line, " %9.6g %9.6g%s", truth, value, right ? "  " : " !");
    note(tally, m, right);
}

static void hold_shared(const struct measures *measures, bool truth, struct tally *tally,
                        struct strbuf *line)
{
    const struct measure *m = measures_get(measures, "l1_data.shared_with");
    bool shared = m && m->word_count == 1 && strcmp(m->words[0], "texture") == 0;
    bool right = m && shared == truth && m->word_count == truth;
    strbuf_printf(line, " %s%s", truth ? "one" : "two", right ? "  " : " !");
    note(tally, m, right);
}

static struct tally compare(const struct geometry *g, uint64_t seed)
{
    static const char *const policies[] = {"lru", "random", "fermi", "early"};
    struct measures found = {0};
    struct tally tally = {0};
    struct strbuf line = {0};
    geometry_measure(g, PROBES, seed, &found);
    hold(&found, "l1_data.size", (double)g->l1_size_bytes, TOLERANCE, &tally, &line);
    hold(&found, "l1_data.line", (double)g->l1_line_bytes, 0, &tally, &line);
    hold(&found, "l1_data.fetch", (double)g->l1_sector_bytes, 0, &tally, &line);
    hold(&found, "l1_data.latency", g->l1_cycles, TOLERANCE, &tally, &line);
    hold(&found, "main.latency", g->main_cycles, TOLERANCE, &tally, &line);
    hold(&found, "l1_data.per_sm", g->instances, 0, &tally, &line);
    hold_shared(&found, !g->texture_apart, &tally, &line);
    printf("%s  ways %2u %s %-6s jitter %4.1f spikes %.4f sms %u\n", line.data, g->l1_ways,
           g->hashed ? "hashed" : "modulo", policies[g->policy], g->jitter_cycles, g->spike_rate,
           g->sms);
    for (size_t i = 0; tally.wrong && i < found.count; i++)
        printf("    %s = %g +- %g, %s %s, confidence %.3f\n", found.items[i].metric,
               found.items[i].value, found.items[i].spread,
               measure_status_name(found.items[i].status),
               found.items[i].reason ? found.items[i].reason : "", found.items[i].confidence);
    strbuf_fini(&line);
    measures_fini(&found);
    return tally;
}

/* "Changing any number in a model changes the inventory accordingly." */
static void chosen(void **state)
{
    (void)state;
    struct geometry base = geometry_default(), larger = base, narrower = base, slower = base;
    larger.l1_size_bytes = 192 * 1024;
    narrower.l1_line_bytes = 64;
    slower.l1_cycles = 40;
    slower.main_cycles = 555;
    const struct geometry *const all[] = {&base, &larger, &narrower, &slower};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct tally tally = compare(all[i], SEED);
        assert_int_equal(tally.wrong, 0);
    }
}

static void random_ones(void **state)
{
    (void)state;
    struct tally sum = {0};
    for (int i = 0; i < random_count; i++) {
        uint64_t seed = i < random_count * 2 / 3 ? SEED : fresh_seed;
        struct geometry g = geometry_random(seed, (uint64_t)i);
        struct tally tally = compare(&g, seed + (uint64_t)i);
        sum.attributes += tally.attributes;
        sum.wrong += tally.wrong;
        sum.confident_and_wrong += tally.confident_and_wrong;
    }
    printf("%d geometries: %.2f %% of %d attributes right (wanted 99.5), %d wrong and called "
           "confident (wanted 0)\n",
           random_count, 100.0 * (sum.attributes - sum.wrong) / sum.attributes, sum.attributes,
           sum.confident_and_wrong);
    assert_true(sum.wrong <= 0.005 * sum.attributes);
    assert_int_equal(sum.confident_and_wrong, 0);
}

static void no_l1_for_global_loads(void **state)
{
    (void)state;
    struct geometry g = geometry_default();
    struct measures found = {0};
    g.l1_for_global = false;
    geometry_measure(&g, "l1_data", 1, &found);
    static const char *const metrics[] = {"l1_data.size", "l1_data.line", "l1_data.fetch",
                                          "l1_data.latency", "l1_data.reach"};
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        const struct measure *m = measures_get(&found, metrics[i]);
        assert_non_null(m);
        assert_int_equal(m->status, MEASURE_UNSUPPORTED);
        assert_non_null(strstr(m->reason, "no cache seen"));
    }
    measures_fini(&found);
}

/* Larger than the region that is searched: an answer, not an error. */
static void larger_than_searched(void **state)
{
    (void)state;
    struct geometry g = geometry_default();
    struct measures found = {0};
    g.l1_size_bytes = 8 * 1024 * 1024;
    geometry_measure(&g, "l1_data.size", 1, &found);
    const struct measure *m = measures_get(&found, "l1_data.size");
    assert_int_equal(m->bound, MEASURE_AT_LEAST);
    assert_true(m->value == 4 * 1024 * 1024);
    measures_fini(&found);
}

/* A policy that begins to miss before the cache is full: reach and size differ, and are told. */
static void early_misses(void **state)
{
    (void)state;
    struct geometry g = geometry_default();
    struct measures found = {0};
    g.policy = POLICY_EARLY;
    g.l1_ways = 16;
    geometry_measure(&g, "l1_data.size", 1, &found);
    double size, reach;
    assert_true(measures_value(&found, "l1_data.size", &size));
    assert_true(measures_value(&found, "l1_data.reach", &reach));
    assert_true(reach < 0.95 * size);
    assert_true(fabs(size - 128 * 1024) < TOLERANCE * 128 * 1024);
    assert_int_equal(measures_get(&found, "l1_data.size")->status, MEASURE_NOISY);
    measures_fini(&found);
}

static void same_seed_same_result(void **state)
{
    (void)state;
    struct geometry g = geometry_random(SEED, 3);
    struct measures a = {0}, b = {0};
    geometry_measure(&g, PROBES, 5, &a);
    geometry_measure(&g, PROBES, 5, &b);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        assert_string_equal(a.items[i].metric, b.items[i].metric);
        assert_true(a.items[i].value == b.items[i].value);
        assert_true(a.items[i].spread == b.items[i].spread);
    }
    measures_fini(&a);
    measures_fini(&b);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        random_count = atoi(argv[1]);
    if (argc > 2)
        fresh_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen),
                                       cmocka_unit_test(random_ones),
                                       cmocka_unit_test(no_l1_for_global_loads),
                                       cmocka_unit_test(larger_than_searched),
                                       cmocka_unit_test(early_misses),
                                       cmocka_unit_test(same_seed_same_result)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
