/* Caches of instructions on simulated GPUs: sizes, costs and who shares them are those of the
 * model; what cannot be told is not claimed.
 *
 * usage: test_instruction_cache [DRAWN] */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "device/straight.h"
#include "probed.h"

static const char MODEL[] =
    "name: Code\nsms: 16\nsms_per_tpc: 2\nsms_per_gpc: [6, 10]\nmemory: {size: 1 GiB}\n"
    "hardware: {compute_capability: \"9.0\"}\n"
    "clock: {sm_mhz: 1000, idle_mhz: 100, ramp_ms: 1, memory_mhz: 2000}\n"
    "timer: {overhead_cycles: 10}\nnoise: {jitter_cycles: 1}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500]}\n"
    "bandwidth: {l2_read: 400, l2_write: 300, main_read: 200, main_write: 180, main_copy: 160, "
    "h2d: 24, d2h: 22, bidir: 40}\n";
enum { SHARED_SIZE_MAX = DEVICE_STRAIGHT_SECOND_MAX / 3 * 4 * 16 };
enum { INSTRUCTION_BYTES = 16, LEVELS_MAX = 3, DRAWN = 4 };

static uint32_t drawn_count = DRAWN;

struct truth {
    uint64_t size, line, ways;
    int scope;         /* index in scopes */
    double miss, cost; /* cycles of a line that is missing; of an instruction in this level */
};

struct score {
    uint32_t right, wrong, all;
};

static const char *const scopes[] = {"sm", "tpc", "gpc", "gpu"};
static const double sharers[] = {1, 2, 6, 16};

static struct measures probe(const struct truth *truths, size_t count, double cycles,
                             const char *policy)
{
    struct strbuf model = {0};
    strbuf_puts(&model, MODEL);
    strbuf_printf(&model, "instruction_caches: {cycles: %g, levels: [", cycles);
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&model,
                      "%s{size: %llu, line: %llu, ways: %llu, scope: %s, miss_cycles: %g, "
                      "policy: %s}",
                      i ? ", " : "", (unsigned long long)truths[i].size,
                      (unsigned long long)truths[i].line, (unsigned long long)truths[i].ways,
                      scopes[truths[i].scope], truths[i].miss, policy);
    strbuf_puts(&model, "]}\n");
    const struct probed probed = {.model = model.data, .list = "instruction_cache"};
    struct measures measures = probed_run(&probed);
    strbuf_fini(&model);
    return measures;
}

static const struct measure *level(const struct measures *measures, size_t i, const char *what)
{
    char metric[80];
    snprintf(metric, sizeof metric, "instruction_cache.level%zu.%s", i + 1, what);
    return measures_get(measures, metric);
}

static bool is_sure(const struct measure *m)
{
    return m && m->status == MEASURE_OK;
}

/* The loop around the code takes some lines. */
static double tolerance(const struct truth *truth)
{
    double step = truth->size < 65536 ? 512 : 2048;
    return step + 3 * (double)truth->line;
}

/* 1: right; 0: not sure; -1: sure and wrong. */
static int judge_figure(const struct measure *m, double truth, double within)
{
    if (!is_sure(m))
        return 0;
    return fabs(m->value - truth) <= within ? 1 : -1;
}

static void draw(struct rng *rng, struct truth *truths, size_t count, double cycles)
{
    static const uint64_t lines[] = {32, 64, 128, 256}, ways[] = {1, 2, 4, 8, 16};
    uint64_t size = 8192 + 1024 * rng_below(rng, count == 3 ? 6 : 40);
    int scope = 0;
    truths[0].cost = cycles;
    for (size_t i = 0; i < count; i++) {
        struct truth *truth = &truths[i];
        truth->line = i ? truths[0].line : lines[rng_below(rng, COUNT_OF(lines))];
        truth->ways = ways[rng_below(rng, COUNT_OF(ways))];
        truth->size = size - size % (truth->line * truth->ways);
        truth->scope = scope + (int)rng_below(rng, COUNT_OF(scopes) - (uint64_t)scope);
        scope = truth->scope;
        double more = truth->cost * (0.3 + 2 * rng_uniform(rng));
        truth->miss = more * (double)truth->line / INSTRUCTION_BYTES;
        truths[i + 1].cost = truth->cost + more;
        size = truth->size * (3 + rng_below(rng, 2));
    }
}

static void judge_level(const struct measures *measures, const struct truth *truths, size_t i,
                        struct score *score)
{
    const struct truth *truth = &truths[i];
    const struct measure *size = level(measures, i, "size"), *cycles = level(measures, i, "cycles"),
                         *shared = level(measures, i, "shared_by");
    const struct measure *const figures[] = {size, cycles, shared};
    const int judged[] = {judge_figure(size, (double)truth->size, tolerance(truth)),
                          judge_figure(cycles, truth->cost, 0.03 * truth->cost),
                          judge_figure(shared, sharers[truth->scope], 0)};
    /* There is no second copy of the longest code. */
    size_t count = COUNT_OF(judged) - (truth->size > SHARED_SIZE_MAX);
    for (size_t k = 0; k < count; k++, score->all++) {
        score->right += judged[k] == 1;
        if (judged[k] == 0)
            print_message("level %zu, figure %zu: %s\n", i + 1, k,
                          figures[k] && figures[k]->reason ? figures[k]->reason : "not there");
        if (judged[k] >= 0)
            continue;
        score->wrong++;
        print_error(
            "level %zu (%llu B, line %llu, %llu ways, %s, %g more): %g B, %g not %g cycles, "
            "shared by %g\n",
            i + 1, (unsigned long long)truth->size, (unsigned long long)truth->line,
            (unsigned long long)truth->ways, scopes[truth->scope], truth->miss,
            size ? size->value : 0, cycles ? cycles->value : 0, truth->cost,
            shared ? shared->value : 0);
    }
}

/* Sizes, costs and sharers of drawn caches. */
static void drawn(void **state)
{
    (void)state;
    struct rng rng;
    struct score score = {0};
    rng_init(&rng, 17, "instruction caches");
    for (uint32_t round = 0; round < drawn_count; round++) {
        struct truth truths[LEVELS_MAX + 1];
        size_t count = 1 + rng_below(&rng, LEVELS_MAX);
        double cycles = 1 + rng_uniform(&rng);
        draw(&rng, truths, count, cycles);
        struct measures measures = probe(truths, count, cycles, "lru");
        const struct measure *levels = measures_get(&measures, "instruction_cache.levels");
        score.all++;
        score.right += judge_figure(levels, (double)count, 0) == 1;
        if (judge_figure(levels, (double)count, 0) < 0) {
            score.wrong++;
            print_error("round %u: %g levels, not %zu\n", round, levels->value, count);
        }
        for (size_t i = 0; i < count; i++)
            judge_level(&measures, truths, i, &score);
        measures_fini(&measures);
    }
    printf("%u of %u figures right\n", score.right, score.all);
    assert_int_equal(score.wrong, 0);
    assert_true(score.right >= 0.99 * score.all);
}

/* As on an H200, and what another GPU would have. */
static void controls(void **state)
{
    (void)state;
    static const struct truth h200[] = {{32768, 128, 4, 1, 6.5, 1.19}, {131072, 128, 8, 2, 28, 2}};
    static const struct truth one[] = {{49152, 128, 4, 3, 30, 1}};
    static const struct truth own[] = {{16384, 128, 4, 0, 6, 1}, {65536, 128, 4, 0, 40, 1.75}};
    const struct {
        const struct truth *truths;
        size_t count;
        const char *scopes[2];
    } cases[] = {{h200, 2, {"tpc", NULL}}, {one, 1, {"gpu"}}, {own, 2, {"sm", "sm"}}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct measures measures =
            probe(cases[c].truths, cases[c].count, cases[c].truths[0].cost, "lru");
        const struct measure *levels = measures_get(&measures, "instruction_cache.levels");
        assert_true(levels->value == (double)cases[c].count);
        assert_int_equal(levels->bound, MEASURE_AT_LEAST);
        for (size_t i = 0; i < cases[c].count; i++) {
            const struct measure *shared = level(&measures, i, "shared_by");
            assert_true(is_sure(shared));
            assert_true(shared->value == sharers[cases[c].truths[i].scope]);
            const char *scope = facts_text(&shared->notes, "scope");
            assert_true(cases[c].scopes[i] ? str_equal(scope, cases[c].scopes[i]) : !scope);
            assert_int_equal(
                judge_figure(level(&measures, i, "size"), (double)cases[c].truths[i].size, 0), 1);
        }
        measures_fini(&measures);
    }
}

/* All code that can be asked for fits. */
static void no_end(void **state)
{
    (void)state;
    static const struct truth large[] = {{1 << 20, 128, 4, 3, 30, 1.5}};
    struct measures measures = probe(large, 1, 1.5, "lru");
    assert_true(probed_value(&measures, "instruction_cache.levels") == 0);
    assert_null(level(&measures, 0, "size"));
    assert_int_equal(
        judge_figure(measures_get(&measures, "instruction_cache.beyond.cycles"), 1.5, 0.02), 1);
    measures_fini(&measures);
}

/* A cache that replaces at random loses code slowly: no size is claimed that is not there. */
static void at_random(void **state)
{
    (void)state;
    for (uint64_t ways = 4; ways <= 16; ways *= 4) {
        const struct truth truth = {40960, 128, ways, 1, 20, 1};
        struct measures measures = probe(&truth, 1, 1, "random");
        const struct measure *size = level(&measures, 0, "size");
        if (judge_figure(size, 40960, tolerance(&truth)) < 0)
            fail_msg("%g B, not 40960", size->value);
        measures_fini(&measures);
    }
}

/* The cache of a sub-core, which only jumping code shows, and one cache for code and constants:
 * with that, the size of a constant L1.5 that constant memory cannot fill. */
static const struct {
    const char *sub_core, *l15, *constants;
    double l0, size, line; /* 0: not told */
} jumping[] = {
    /* As on an H200; with other ways; without a cache of a sub-core; constants apart. */
    {"sub_core: {size: 5632, line: 128, ways: 44, miss_cycles: 9}, ",
     "{size: 128 KiB, line: 256, "
     "ways: 8}",
     "true", 5632, 131072, 256},
    {"sub_core: {size: 12 KiB, line: 128, ways: 4, miss_cycles: 12}, ",
     "{size: 128 KiB, line: 256, "
     "ways: 8, index: hashed}",
     "true", 12288, 131072, 256},
    {"", "{size: 128 KiB, line: 256, ways: 8}", "true", 0, 131072, 256},
    {"", "{size: 128 KiB, line: 256, ways: 8}", "false", 0, 0, 0},
    {"", "{size: 48 KiB, line: 256, ways: 4}", "false", 0, 0, 256},
};

static void jumps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(jumping); i++) {
        struct strbuf model = {0};
        strbuf_puts(&model, MODEL);
        strbuf_printf(&model,
                      "caches: {constant_l1: {size: 2 KiB, line: 64, ways: 4}, constant_l15: %s}\n"
                      "instruction_caches: {cycles: 1.2, %sconstants: %s, levels: [{size: 32 KiB, "
                      "line: 128, ways: 4, miss_cycles: 7, scope: tpc}, {size: 128 KiB, line: 256, "
                      "ways: 8, miss_cycles: 50, scope: gpc}]}\n",
                      jumping[i].l15, jumping[i].sub_core, jumping[i].constants);
        char *paths = strstr(model.data, "paths: {");
        assert_non_null(paths);
        struct strbuf whole = {0};
        strbuf_printf(&whole,
                      "%.*sconstant: [constant_l1: 28, constant_l15: 102, l2: 267, main: "
                      "531], %s",
                      (int)(paths - model.data) + 8, model.data, paths + 8);
        const struct probed probed = {
            .model = whole.data,
            .list = "instruction_cache.l0,constant_l15.shared_with,structure.constant_l15"};
        struct measures measures = probed_run(&probed);
        const struct measure *l0 = measures_get(&measures, "instruction_cache.l0.size"),
                             *size = measures_get(&measures, "constant_l15.size"),
                             *line = measures_get(&measures, "constant_l15.line"),
                             *shared = measures_get(&measures, "constant_l15.shared_with");
        assert_true(jumping[i].l0 ? judge_figure(l0, jumping[i].l0, 512) == 1 : !l0);
        assert_true(probed_value(&measures, "instruction_cache.levels") == (jumping[i].l0 ? 3 : 2));
        assert_true(is_sure(shared));
        assert_int_equal(shared->word_count, jumping[i].size ? 1 : 0);
        if (jumping[i].size) {
            assert_string_equal(shared->words[0], "instruction_cache.level2");
            assert_int_equal(size->bound, MEASURE_EXACT);
            assert_int_equal(judge_figure(size, jumping[i].size, 2048), 1);
            assert_null(measures_get(&measures, "constant_l15.sets"));
        } else if (jumping[i].line == 0)
            assert_int_equal(size->bound, MEASURE_AT_LEAST);
        assert_int_equal(line->bound, jumping[i].line ? MEASURE_EXACT : MEASURE_AT_LEAST);
        assert_true(line->value == 256);
        measures_fini(&measures);
        strbuf_fini(&whole);
        strbuf_fini(&model);
    }
}

/* Of few SMs the passes over four lengths say less than of many, if they scatter. */
static void few_sms(void **state)
{
    (void)state;
    static const struct {
        unsigned sms;
        double jitter;
        bool noisy;
    } cases[] = {{1, 5, false}, {1, 10, true}, {2, 10, true}, {16, 10, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strbuf model = {0};
        strbuf_printf(&model,
                      "name: Code\nsms: %u\nmemory: {size: 1 GiB}\n"
                      "hardware: {compute_capability: \"9.0\"}\nclock: {sm_mhz: 1000}\n"
                      "timer: {overhead_cycles: 10}\nnoise: {jitter_cycles: %g}\n%s"
                      "instruction_caches: {cycles: 1.5, levels: [{size: 32 KiB, line: 128, "
                      "ways: 4, scope: sm, miss_cycles: 12}]}\n",
                      cases[i].sms, cases[i].jitter, strstr(MODEL, "l2: "));
        const struct probed probed = {.model = model.data, .list = "instruction_cache"};
        struct measures measures = probed_run(&probed);
        const struct measure *cycles = level(&measures, 0, "cycles");
        assert_int_equal(judge_figure(level(&measures, 0, "size"), 32768, 0), 1);
        assert_true(fabs(cycles->value - 1.5) < 0.02);
        if (is_sure(cycles) == cases[i].noisy)
            fail_msg("%u SMs, jitter %g: %s", cases[i].sms, cases[i].jitter,
                     cycles->reason ? cycles->reason : "sure");
        if (cases[i].noisy)
            assert_string_equal(cycles->reason, "passes scatter too much for so few SMs");
        measures_fini(&measures);
        strbuf_fini(&model);
    }
}

static void no_code(void **state)
{
    (void)state;
    const struct probed probed = {.model = MODEL, .list = "instruction_cache"};
    struct measures measures = probed_run(&probed);
    assert_int_equal(measures_get(&measures, "instruction_cache.levels")->status,
                     MEASURE_UNSUPPORTED);
    measures_fini(&measures);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn),  cmocka_unit_test(controls),
                                       cmocka_unit_test(no_end), cmocka_unit_test(at_random),
                                       cmocka_unit_test(jumps),  cmocka_unit_test(few_sms),
                                       cmocka_unit_test(no_code)};
    if (argc > 1)
        drawn_count = (uint32_t)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
