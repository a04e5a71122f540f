/* TLBs and the latency spectrum of simulated GPUs: what the probes say against what is there. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "probed.h"

/* Few as a test; as a benchmark as many as the argument says. */
static int random_count = 4;
static uint64_t random_seed = 20261117; /* a second argument sets another */

static const char head[] = "name: G\nsms: 8\nsms_per_tpc: 2\nsms_per_gpc: [4, 4]\n"
                           "clock: {sm_mhz: 1000}\n"
                           "noise: {jitter_cycles: 0.8, spike_rate: 0.0003, spike_cycles: 300}\n"
                           "caches: {l1: {size: 16384, line: 128, ways: 4}}\n"
                           "paths:\n"
                           "  global_ca: [l1: 30, l2: 200, main: 500]\n"
                           "  global_cg: [l2: 200, main: 500]\n";

static struct measures measure(const char *list, const char *memory, const char *l2,
                               const char *tlb)
{
    struct strbuf text = {0};
    strbuf_printf(&text, "%sl2: {%s}\nmemory: {size: %s}\n%s", head, l2, memory, tlb);
    const struct probed probed = {.model = text.data, .profile = PROFILE_FULL, .list = list};
    struct measures found = probed_run(&probed);
    strbuf_fini(&text);
    return found;
}

static const char plain_l2[] = "size: 8 MiB, line: 128, sector: 32, ways: 16, index: hashed";
static const char sliced_l2[] = "size: 8 MiB, line: 128, sector: 32, ways: 16, index: hashed, "
                                "parts: homes, far_cycles: 100, slice_cycles: 40";

struct level {
    double entries, sets, ways, largest, span; /* 0: not told */
    double penalty;                            /* 0: not checked */
    double sms;
};

static void expect_level(const struct measures *found, int number, const struct level *wanted)
{
    const struct {
        const char *name;
        double value;
    } figures[] = {{"entries", wanted->entries},
                   {"sets", wanted->sets},
                   {"ways", wanted->ways},
                   {"ways_largest", wanted->largest},
                   {"span", wanted->span},
                   {"sms", wanted->sms},
                   {"reach", wanted->entries * wanted->span}};
    char metric[40];
    for (size_t i = 0; i < COUNT_OF(figures); i++) {
        snprintf(metric, sizeof metric, "tlb.l%d.%s", number, figures[i].name);
        const struct measure *m = measures_get(found, metric);
        double value = m && measure_status_valued(m->status) ? m->value : 0;
        if (value != figures[i].value)
            fail_msg("%s is %g, not %g: %s", metric, value, figures[i].value,
                     m && m->reason ? m->reason : "");
    }
    if (!wanted->penalty)
        return;
    snprintf(metric, sizeof metric, "tlb.l%d.penalty", number);
    probed_expect(found, metric, wanted->penalty, metric);
}

/* Mei and Chu, table 5 and figure 9; what an H200 shows; a TLB per TPC; one that replaces at
 * random; and each of them behind an L2 whose lines differ. */
static void levels_are_told(void **state)
{
    (void)state;
    static const double M = 1 << 20;
    const struct {
        const char *memory, *l2, *tlb;
        int count;
        struct level levels[2];
    } cases[] = {
        {"1 GiB",
         plain_l2,
         "tlb:\n  - {entries: 16, policy: fifo, page: 2 MiB, miss_cycles: 27}\n"
         "  - {ways: [17, 8, 8, 8, 8, 8, 8], page: 2 MiB, miss_cycles: 280}\n",
         2,
         {{16, 1, 16, 0, 2 * M, 27, 1}, {65, 7, 8, 17, 2 * M, 280, 8}}},
        {"140 GiB",
         sliced_l2,
         "sms_per_cpc: 2\n"
         "tlb:\n  - {entries: 16, page: 16 MiB, miss_cycles: 40}\n"
         "  - {entries: 2048, ways: 8, index: hashed, page: 32 MiB, miss_cycles: 90, scope: cpc}\n",
         2,
         {{16, 1, 16, 0, 16 * M, 40, 1}, {2048, 256, 8, 0, 32 * M, 90, 2}}},
        {"4 GiB",
         plain_l2,
         "tlb: [{entries: 96, ways: 3, page: 2 MiB, miss_cycles: 60, scope: gpc}]\n",
         1,
         {{96, 32, 3, 0, 2 * M, 60, 4}}},
        /* Spread pages are an even number of pages apart: four of them miss in one set. */
        {"4 GiB",
         plain_l2,
         "tlb: [{entries: 6, ways: 3, page: 1 MiB, miss_cycles: 90}]\n",
         1,
         {{6, 2, 3, 0, 1 * M, 90, 1}}},
        {"2 GiB",
         plain_l2,
         "tlb: [{entries: 48, page: 1 MiB, policy: random, miss_cycles: 100, scope: tpc}]\n",
         1,
         /* Its penalty comes out as 91 cycles, noisy. */
         {{48, 0, 0, 0, 1 * M, 0, 2}}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct measures found = measure("tlb", cases[i].memory, cases[i].l2, cases[i].tlb);
        assert_int_equal(probed_value(&found, "tlb.levels"), cases[i].count);
        assert_int_equal(measures_get(&found, "tlb.levels")->bound, MEASURE_AT_LEAST);
        for (int k = 0; k < cases[i].count; k++)
            expect_level(&found, k + 1, &cases[i].levels[k]);
        measures_fini(&found);
    }
}

/* Replacement at random: the entries, but no sets. */
static void random_replacement_is_told(void **state)
{
    (void)state;
    struct measures found =
        measure("tlb", "2 GiB", plain_l2,
                "tlb: [{entries: 48, page: 1 MiB, policy: random, miss_cycles: 100}]\n");
    const struct measure *policy = measures_get(&found, "tlb.l1.policy");
    assert_int_equal(probed_value(&found, "tlb.l1.entries"), 48);
    assert_non_null(policy);
    assert_string_equal(policy->words[0], "random");
    assert_int_equal(measures_get(&found, "tlb.l1.ways")->status, MEASURE_FAILED);
    assert_int_equal(measures_get(&found, "tlb.l1.penalty")->status, MEASURE_NOISY);
    assert_int_equal(measures_get(&found, "tlb.levels")->status, MEASURE_NOISY);
    measures_fini(&found);
}

/* Few entries at random rise as sets of one way do, at first. */
static void few_entries_at_random(void **state)
{
    (void)state;
    for (int entries = 8; entries <= 16; entries++) {
        char tlb[120];
        snprintf(tlb, sizeof tlb,
                 "tlb: [{entries: %d, page: 2 MiB, policy: random, miss_cycles: 260}]\n", entries);
        struct measures found = measure("tlb", "4 GiB", plain_l2, tlb);
        const struct measure *policy = measures_get(&found, "tlb.l1.policy");
        if (policy->word_count && strcmp(policy->words[0], "random") != 0)
            fail_msg("%d entries: %s", entries, policy->words[0]);
        measures_fini(&found);
    }
}

/* No TLB, or one that reaches further than the memory: none is seen, and it says how far. */
static void none_is_none(void **state)
{
    (void)state;
    static const char *const tlbs[] = {"",
                                       "tlb: [{entries: 4096, page: 2 MiB, miss_cycles: 90}]\n"};
    for (size_t i = 0; i < COUNT_OF(tlbs); i++) {
        struct measures found = measure("tlb,spectrum", "4 GiB", sliced_l2, tlbs[i]);
        const struct measure *levels = measures_get(&found, "tlb.levels");
        assert_int_equal(levels->value, 0);
        assert_int_equal(levels->status, MEASURE_OK);
        assert_int_equal(levels->bound, MEASURE_AT_LEAST);
        assert_true(fact_number(facts_get(&levels->notes, "memory")) > 3e9);
        assert_true(fact_number(facts_get(&levels->notes, "pages")) > 1000);
        assert_null(measures_get(&found, "tlb.l1.entries"));
        assert_int_equal(measures_get(&found, "spectrum.p3")->status, MEASURE_UNSUPPORTED);
        measures_fini(&found);
    }
}

static void the_spectrum_adds_up(void **state)
{
    (void)state;
    struct measures found =
        measure("spectrum", "4 GiB", plain_l2,
                "tlb:\n  - {entries: 16, page: 2 MiB, miss_cycles: 40}\n"
                "  - {ways: [17, 8, 8, 8, 8, 8, 8], page: 2 MiB, miss_cycles: 150}\n"
                "  - {entries: 1, page: 512 MiB, miss_cycles: 800}\n");
    probed_expect(&found, "spectrum.p1", 200, "L2");
    probed_expect(&found, "spectrum.p2", 240, "the second TLB");
    probed_expect(&found, "spectrum.p3", 390, "the page table");
    probed_expect(&found, "spectrum.p4", 500, "memory");
    /* One load in 256 leaves the active part of the page table. */
    probed_expect(&found, "spectrum.p5", 690 + 800.0 / 256, "memory and page table");
    probed_expect(&found, "spectrum.p6", 690 + 800 * 7.0 / 8, "another part of the page table");
    measures_fini(&found);
    found = measure("spectrum", "4 GiB", plain_l2,
                    "tlb:\n  - {entries: 16, page: 2 MiB, miss_cycles: 40}\n"
                    "  - {entries: 64, ways: 8, page: 2 MiB, miss_cycles: 150}\n");
    probed_expect(&found, "spectrum.p6", 0, "all of the page table is active");
    measures_fini(&found);
}

/* What rests on TLBs that are not certain is not certain, and not said to be missing. */
static void doubts_reach_the_spectrum(void **state)
{
    (void)state;
    struct measures found =
        measure("spectrum", "4 GiB", plain_l2,
                "tlb:\n  - {entries: 13, page: 1 MiB, policy: random, miss_cycles: 99}\n"
                "  - {entries: 90, ways: 6, page: 1 MiB, miss_cycles: 86}\n");
    assert_int_equal(measures_get(&found, "tlb.levels")->status, MEASURE_NOISY);
    assert_int_equal(measures_get(&found, "spectrum.p1")->status, MEASURE_OK);
    static const char *const doubted[] = {"spectrum.p2", "spectrum.p3", "spectrum.p5"};
    for (size_t i = 0; i < COUNT_OF(doubted); i++) {
        enum measure_status status = measures_get(&found, doubted[i])->status;
        assert_true(status == MEASURE_NOISY || status == MEASURE_FAILED);
    }
    measures_fini(&found);
}

struct drawn {
    uint64_t entries[2], page[2];
    double miss_cycles[2];
    int count;
    char text[400];
};

/* One or two levels on pages as GPUs have them. */
static struct drawn draw(uint64_t number)
{
    static const char *const policies[] = {"lru", "lru", "fifo", "random"};
    static const char *const scopes[] = {"sm", "tpc", "gpc", "gpu"};
    struct drawn d = {0};
    struct rng rng;
    rng_init(&rng, rng_derive(random_seed, "tlb", number), "tlb");
    d.count = 1 + (int)rng_below(&rng, 2);
    size_t at = (size_t)snprintf(d.text, sizeof d.text, "tlb:\n");
    uint64_t entries = 4 + rng_below(&rng, 60), page = UINT64_C(1) << (20 + rng_below(&rng, 3));
    for (int i = 0; i < d.count; i++) {
        uint64_t ways = rng_below(&rng, 3) ? 0 : 2 + rng_below(&rng, 7);
        ways = i && !ways ? 4 : ways;
        entries -= ways ? entries % ways : 0;
        entries = ways && !entries ? ways : entries;
        const char *policy = policies[i ? 0 : rng_below(&rng, 4)];
        const char *scope = scopes[rng_below(&rng, i ? 4 : 2)];
        d.miss_cycles[i] = 20 + (double)rng_below(&rng, 300);
        at += (size_t)snprintf(
            d.text + at, sizeof d.text - at,
            "  - {entries: %llu, ways: %llu, page: %llu, policy: %s, scope: %s, miss_cycles: %g}\n",
            (unsigned long long)entries, (unsigned long long)(ways ? ways : entries),
            (unsigned long long)page, policy, scope, d.miss_cycles[i]);
        d.entries[i] = entries;
        d.page[i] = page;
        entries = entries * (4 + rng_below(&rng, 8));
        page <<= rng_below(&rng, 2);
    }
    return d;
}

/* A level that costs less than the smallest rise may be overlooked, and the probe says so. */
static void drop_overlooked_level(struct drawn *d, const struct measure *levels)
{
    double least = fact_number(facts_get(&levels->notes, "smallest_rise"));
    if ((int)levels->value >= d->count || d->count < 2 || d->miss_cycles[0] > least)
        return;
    d->entries[0] = d->entries[1];
    d->page[0] = d->page[1];
    d->count = 1;
}

static int judge_drawn(const struct measures *found, const struct drawn *d, int *right)
{
    int wrong = 0;
    for (int i = 0; i < d->count; i++) {
        char metric[40];
        const uint64_t truths[] = {d->entries[i], d->page[i]};
        static const char *const names[] = {"entries", "span"};
        for (int k = 0; k < 2; k++) {
            snprintf(metric, sizeof metric, "tlb.l%d.%s", i + 1, names[k]);
            const struct measure *m = measures_get(found, metric);
            bool same = m && measure_status_valued(m->status) && m->value == (double)truths[k];
            *right += same;
            if (!same)
                printf("  %s: %g, not %llu, %s\n", metric, m ? m->value : NAN,
                       (unsigned long long)truths[k], m && m->reason ? m->reason : "-");
            wrong += m && !same && m->status == MEASURE_OK;
        }
    }
    return wrong;
}

static void drawn_ones(void **state)
{
    (void)state;
    int right = 0, wrong = 0, all = 0;
    for (int i = 0; i < random_count; i++) {
        struct drawn d = draw((uint64_t)i);
        struct measures found = measure("tlb", "16 GiB", i & 1 ? sliced_l2 : plain_l2, d.text);
        int before = wrong, count = (int)probed_value(&found, "tlb.levels");
        const struct measure *levels = measures_get(&found, "tlb.levels");
        drop_overlooked_level(&d, levels);
        wrong += levels->status == MEASURE_OK && count != d.count;
        wrong += judge_drawn(&found, &d, &right);
        all += 2 * d.count;
        if (wrong > before)
            printf("%d: levels %d of %d\n%s", i, count, d.count, d.text);
        measures_fini(&found);
    }
    printf("%d GPUs: %d of %d figures right, %d sure and wrong (wanted 0)\n", random_count, right,
           all, wrong);
    assert_int_equal(wrong, 0);
    assert_true(right >= 0.8 * all);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_told),
        cmocka_unit_test(random_replacement_is_told),
        cmocka_unit_test(few_entries_at_random),
        cmocka_unit_test(none_is_none),
        cmocka_unit_test(the_spectrum_adds_up),
        cmocka_unit_test(doubts_reach_the_spectrum),
        cmocka_unit_test(drawn_ones),
    };
    if (argc > 1)
        random_count = atoi(argv[1]);
    if (argc > 2)
        random_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
