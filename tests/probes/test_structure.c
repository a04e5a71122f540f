/* Sets, ways, index and policy of simulated caches: what the probe says against what is there. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "geometry.h"

/* Few as a test; as a benchmark as many as the argument says. */
static int random_count = 1, random_first = 0; /* a third argument begins with another one */
static uint64_t random_seed = 20261117;        /* a second argument sets another */

static const double SHARE_TOLERANCE = 0.02;

struct truth {
    uint64_t sets, ways, larger;
    char index[40];
    const char *policy;
};

static bool power_of_two(uint64_t x)
{
    return !(x & (x - 1));
}

static const char *policy_of(const struct geometry *g, uint64_t ways)
{
    static const char *const names[] = {"lru", "random", "biased", "not_lru", "fifo", "not_lru"};
    if (ways == 1)
        return "direct_mapped";
    if (g->policy == POLICY_TREE && ways == 2) /* a tree of two ways is LRU */
        return "lru";
    if (g->policy == POLICY_EARLY && ceil(0.8 * (double)ways) >= (double)ways)
        return "lru";
    return names[g->policy];
}

static struct truth truth_of(const struct geometry *g)
{
    uint64_t lines = g->l1_size_bytes / g->l1_line_bytes;
    uint64_t bytes = (g->run ? g->run : 1) * g->l1_line_bytes;
    uint64_t sets = g->l1_ways ? lines / g->l1_ways : 1;
    struct truth t = {.sets = sets, .ways = lines / sets, .larger = lines % sets};
    t.policy = policy_of(g, t.ways);
    if (sets == 1)
        snprintf(t.index, sizeof t.index, "one_set");
    else if (g->hashed)
        snprintf(t.index, sizeof t.index, "hashed");
    else if (!power_of_two(sets) || !power_of_two(bytes))
        snprintf(t.index, sizeof t.index, "modulo_%llu", (unsigned long long)(sets * bytes));
    else if (sets == 2)
        snprintf(t.index, sizeof t.index, "bit_%d", __builtin_ctzll(bytes));
    else
        snprintf(t.index, sizeof t.index, "bits_%d_to_%d", __builtin_ctzll(bytes),
                 __builtin_ctzll(bytes * sets) - 1);
    return t;
}

struct tally {
    int attributes, right, sure_and_wrong;
};

static void count(struct tally *tally, const struct measure *m, bool right)
{
    bool valued = m && measure_status_valued(m->status);
    tally->attributes++;
    tally->right += valued && right;
    tally->sure_and_wrong += valued && !right && m->status == MEASURE_OK;
}

static void hold_number(const struct measures *found, const char *metric, uint64_t truth,
                        struct tally *tally, struct strbuf *line)
{
    const struct measure *m = measures_get(found, metric);
    bool right = m && measure_status_valued(m->status) && m->value == (double)truth;
    strbuf_printf(line, " %5llu %5g%s", (unsigned long long)truth,
                  m && measure_status_valued(m->status) ? m->value : NAN, right ? " " : "!");
    count(tally, m, right);
}

static void hold_word(const struct measures *found, const char *metric, const char *truth,
                      struct tally *tally, struct strbuf *line)
{
    const struct measure *m = measures_get(found, metric);
    const char *word = m && m->word_count ? m->words[0] : "?";
    bool right = strcmp(word, truth) == 0;
    strbuf_printf(line, " %s %s%s", truth, word, right ? " " : "!");
    count(tally, m, right);
}

static struct tally compare(const struct geometry *g, uint64_t seed, struct measures *found)
{
    const struct truth t = truth_of(g);
    struct tally tally = {0};
    struct strbuf line = {0};
    geometry_measure(g, "structure.texture", seed, found);
    hold_number(found, "texture.sets", t.sets, &tally, &line);
    hold_number(found, "texture.ways", t.ways, &tally, &line);
    hold_word(found, "texture.index", t.index, &tally, &line);
    hold_word(found, "texture.policy", t.policy, &tally, &line);
    printf("%s  %llu B, line %llu, larger %llu, jitter %.1f spikes %.4f\n", line.data,
           (unsigned long long)g->l1_size_bytes, (unsigned long long)g->l1_line_bytes,
           (unsigned long long)t.larger, g->jitter_cycles, g->spike_rate);
    for (size_t i = 0; tally.right < tally.attributes && i < found->count; i++)
        if (found->items[i].reason)
            printf("    %s = %g: %s\n", found->items[i].metric, found->items[i].value,
                   found->items[i].reason);
    const struct measure *ways = measures_get(found, "texture.ways");
    const struct fact *seen = ways ? facts_get(&ways->notes, "seen") : NULL;
    if (tally.right < tally.attributes && seen)
        printf("    seen: %s\n", seen->text);
    strbuf_fini(&line);
    return tally;
}

/* The caches of Mei and Chu (table 5 and sections 4.3, 4.5), and one that answers otherwise for
 * each of their properties. */
static void chosen(void **state)
{
    (void)state;
    static const struct {
        uint64_t size, line;
        uint32_t ways, run;
        bool hashed;
        enum geometry_policy policy;
        const char *index, *word;
    } cases[] = {
        {16 << 10, 128, 4, 1, false, POLICY_FERMI, "bits_7_to_11", "biased"},
        {16 << 10, 128, 4, 1, false, POLICY_RANDOM, "bits_7_to_11", "random"},
        {16 << 10, 128, 4, 1, false, POLICY_TREE, "bits_7_to_11", "not_lru"},
        {16 << 10, 128, 4, 1, true, POLICY_FERMI, "hashed", "biased"},
        {12 << 10, 32, 96, 4, false, POLICY_LRU, "bits_7_to_8", "lru"},
        {12 << 10, 32, 96, 4, false, POLICY_FIFO, "bits_7_to_8", "fifo"},
        {12 << 10, 32, 96, 1, false, POLICY_LRU, "bits_5_to_6", "lru"},
        {12 << 10, 32, 96, 4, true, POLICY_LRU, "hashed", "lru"},
        {24 << 10, 32, 192, 4, false, POLICY_LRU, "bits_7_to_8", "lru"},
        {24 << 10, 32, 192, 4, true, POLICY_LRU, "hashed", "lru"},      /* Pascal, read-only */
        {18 * 128, 128, 4, 1, false, POLICY_LRU, "bits_7_to_8", "lru"}, /* two sets of five */
        {24 << 10, 128, 8, 1, false, POLICY_LRU, "modulo_3072", "lru"},
        {16 << 10, 128, 16, 1, false, POLICY_EARLY, "bits_7_to_9", "not_lru"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct geometry g = geometry_default();
        struct measures found = {0};
        g.l1_size_bytes = cases[i].size;
        g.l1_line_bytes = g.l1_sector_bytes = cases[i].line;
        g.l1_ways = cases[i].ways;
        g.run = cases[i].run;
        g.hashed = cases[i].hashed;
        g.policy = cases[i].policy;
        g.spike_rate = 0.0003;
        g.spike_cycles = 300;
        g.jitter_cycles = 0.8;
        assert_string_equal(truth_of(&g).index, cases[i].index);
        assert_string_equal(truth_of(&g).policy, cases[i].word);
        struct tally tally = compare(&g, 7 + i, &found);
        assert_int_equal(tally.right, tally.attributes);
        const struct measure *ways = measures_get(&found, "texture.ways");
        for (int way = 0; way < 4 && g.policy == POLICY_FERMI; way++) {
            char key[] = "way_1";
            key[4] = (char)('1' + way);
            double share = fact_number(facts_get(&ways->notes, key));
            assert_true(fabs(share - (way == 1 ? 1.0 / 2 : 1.0 / 6)) < SHARE_TOLERANCE);
        }
        measures_fini(&found);
    }
}

/* Jobs of two SMs that share the cache must not spare each other misses. */
static void shared_by_two_sms(void **state)
{
    (void)state;
    struct geometry g = geometry_default();
    struct measures found = {0};
    g.l1_size_bytes = 48 << 10;
    g.l1_ways = 2;
    g.per_tpc = true;
    g.jitter_cycles = 2.9;
    struct tally tally = compare(&g, 59, &found);
    assert_int_equal(tally.right, tally.attributes);
    measures_fini(&found);
}

/* As Hopper's L1: tags for more lines than data, so that no set overflows by itself. */
struct tags_case {
    uint32_t ways;
    bool hashed;
    enum geometry_policy policy;
    const char *index, *word; /* no index: nothing may be called sure */
};

static void check_tags(const struct tags_case *wanted, const struct measures *found)
{
    const struct measure *sets = measures_get(found, "texture.sets");
    const struct measure *policy = measures_get(found, "texture.policy");
    const char *word = policy->word_count ? policy->words[0] : "?";
    print_message("%u ways: %s, found %s %s\n", wanted->ways, wanted->word, word,
                  policy->reason ? policy->reason : "");
    if (!wanted->index) {
        assert_true(sets->status == MEASURE_FAILED || sets->status == MEASURE_NOISY);
        assert_true(policy->status == MEASURE_FAILED || policy->status == MEASURE_NOISY);
        return;
    }
    assert_string_equal(word, wanted->word);
    assert_int_equal(policy->status, MEASURE_OK);
    assert_true(sets->value == 2048.0 / wanted->ways && sets->status == MEASURE_OK);
    assert_int_equal(facts_int(&sets->notes, "tag_bytes", 0), 256 << 10);
    assert_true(measures_get(found, "texture.ways")->value == wanted->ways);
    assert_string_equal(measures_get(found, "texture.index")->words[0], wanted->index);
}

static void more_tags_than_data(void **state)
{
    (void)state;
    static const struct tags_case cases[] = {
        {4, true, POLICY_LRU, "hashed", "lru"},
        {4, true, POLICY_FIFO, "hashed", "fifo"},
        {4, true, POLICY_TREE, "hashed", "not_lru"},
        {4, false, POLICY_LRU, "bits_7_to_15", "lru"}, /* from here on as a benchmark */
        {4, false, POLICY_FIFO, "bits_7_to_15", "fifo"},
        {4, true, POLICY_RANDOM, NULL, "random"},
        {4, true, POLICY_FERMI, NULL, "biased"},
        {2, true, POLICY_LRU, "hashed", "lru"},
        {2, true, POLICY_FIFO, "hashed", "fifo"},
        {8, true, POLICY_LRU, NULL, "lru"}, /* 220 sets of 9 explain the misses as well */
        {8, true, POLICY_TREE, NULL, "not_lru"},
        {16, true, POLICY_FIFO, NULL, "fifo"},
    };
    for (size_t i = 0; i < (random_count > 1 ? COUNT_OF(cases) : 3); i++) {
        struct geometry g = geometry_default();
        struct measures found = {0};
        g.l1_size_bytes = 217 << 10;
        g.tags_bytes = 256 << 10;
        g.l1_ways = cases[i].ways;
        g.hashed = cases[i].hashed;
        g.policy = cases[i].policy;
        g.spike_rate = 0.0003;
        g.spike_cycles = 300;
        g.jitter_cycles = 0.8;
        geometry_measure(&g, "structure.texture", 31 + i, &found);
        check_tags(&cases[i], &found);
        measures_fini(&found);
    }
}

static void index_and_policy_of_l2(void **state)
{
    (void)state;
    static const struct {
        enum geometry_policy policy;
        bool hashed;
        const char *index, *word;
    } cases[] = {
        {POLICY_LRU, true, "not_by_bits", "lru"},
        {POLICY_RANDOM, false, "regular", "random"},
        {POLICY_FIFO, true, "not_by_bits", "fifo"},
        {POLICY_LRU, false, "regular", "lru"}, /* from here on as a benchmark */
        {POLICY_TREE, true, "not_by_bits", "not_lru"},
    };
    for (size_t i = 0; i < (random_count > 1 ? COUNT_OF(cases) : 3); i++) {
        struct geometry g = geometry_default();
        struct measures found = {0};
        g.l2_policy = cases[i].policy;
        g.l2_hashed = cases[i].hashed;
        geometry_measure(&g, "structure.l2", 40 + i, &found);
        const struct measure *index = measures_get(&found, "l2.index");
        const struct measure *policy = measures_get(&found, "l2.policy");
        assert_true(index && index->word_count && policy && policy->word_count);
        print_message("L2 %s %s, found %s %s\n", cases[i].index, cases[i].word, index->words[0],
                      policy->words[0]);
        assert_string_equal(index->words[0], cases[i].index);
        assert_string_equal(policy->words[0], cases[i].word);
        /* Few ways could look like another policy. */
        assert_int_equal(policy->status,
                         cases[i].policy == POLICY_TREE ? MEASURE_NOISY : MEASURE_OK);
        measures_fini(&found);
    }
}

/* As the random geometries of the other probes, with every policy and some runs. */
static struct geometry draw(uint64_t seed, uint64_t i)
{
    static const uint32_t ways[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 96};
    struct geometry g = geometry_random(seed, i);
    struct rng rng;
    rng_init(&rng, rng_derive(seed, "structure", i), "structure");
    uint64_t lines = g.l1_size_bytes / g.l1_line_bytes;
    lines = lines > 6000 ? lines / 4 : lines;
    g.l1_ways = ways[rng_below(&rng, COUNT_OF(ways))];
    if (g.l1_ways > lines)
        g.l1_ways = 0;
    g.policy = (enum geometry_policy)rng_below(&rng, POLICY_TREE + 1);
    if (g.policy == POLICY_TREE && (!g.l1_ways || g.l1_ways > 31))
        g.policy = POLICY_LRU;
    if (g.policy == POLICY_FERMI && (!g.l1_ways || g.l1_ways > 31))
        g.policy = POLICY_RANDOM;
    g.run = 1u << (rng_below(&rng, 4) ? 0 : 1 + rng_below(&rng, 2));
    if (!g.l1_ways || g.l1_ways % (2 * g.run) || lines / g.l1_ways < 2)
        g.run = 1;
    if (g.l1_ways && (g.run > 1 || g.hashed)) /* hashed sets of unequal size are not told */
        lines -= lines % g.l1_ways;
    /* 0.8 of four ways are all of them, of five in the larger sets not: no one word says both. */
    if (g.policy == POLICY_EARLY && g.l1_ways == 4 && lines % (lines / 4))
        g.policy = POLICY_LRU;
    g.l1_size_bytes = lines * g.l1_line_bytes;
    g.l1_sector_bytes = g.run > 1 ? g.l1_line_bytes : g.l1_sector_bytes;
    g.texture_apart = false;
    return g;
}

static void random_ones(void **state)
{
    (void)state;
    struct tally sum = {0};
    for (int i = random_first; i < random_first + random_count; i++) {
        struct geometry g = draw(random_seed, (uint64_t)i);
        struct measures found = {0};
        printf("%d:", i);
        struct tally tally = compare(&g, random_seed + (uint64_t)i, &found);
        sum.attributes += tally.attributes;
        sum.right += tally.right;
        sum.sure_and_wrong += tally.sure_and_wrong;
        measures_fini(&found);
    }
    printf("%d caches: %.2f %% of %d attributes right (wanted 99), %d wrong and sure (wanted 0)\n",
           random_count, 100.0 * sum.right / sum.attributes, sum.attributes, sum.sure_and_wrong);
    assert_true(sum.right >= 0.99 * sum.attributes);
    assert_int_equal(sum.sure_and_wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen), cmocka_unit_test(shared_by_two_sms),
        cmocka_unit_test(more_tags_than_data), cmocka_unit_test(index_and_policy_of_l2),
        cmocka_unit_test(random_ones)};
    if (argc > 1)
        random_count = atoi(argv[1]);
    if (argc > 2)
        random_seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        random_first = atoi(argv[3]);
    if (argc > 3)
        cmocka_set_test_filter("random_ones");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
