/* Banks of shared memory on simulated GPUs: their number, width and costs are those of the model,
 * whatever it is, and a model with the costs of an RTX 2060 gives its published table.
 *
 * usage: test_probes_shared_banks [DRAWN] */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "probed.h"
#include "probes/memory/shared_memory.h"

static uint32_t drawn_count = 12;

static char *model_of(const char *shared, double latency, const char *noise)
{
    return str_format(
        "name: Banks\nsms: 4\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
        "noise: {%s}\nl2: {size: 1 MiB, line: 128, ways: 16}\nshared: {%s}\n"
        "paths: {global_ca: [l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
        " shared: %g}\n",
        noise, shared, latency);
}

static struct measures probe_model(const char *shared, double latency, const char *noise)
{
    char *model = model_of(shared, latency, noise);
    assert_non_null(model);
    struct measures all = probed_run(&(struct probed){.model = model, .list = "shared.banks"});
    free(model);
    return all;
}

static const char quiet[] = "jitter_cycles: 0.5, spike_rate: 0.0003, spike_cycles: 300";

static const char hostile[] = "jitter_cycles: 3, spike_rate: 0.005, spike_cycles: 500";

static void layouts(void **state)
{
    (void)state;
    static const struct {
        const char *shared;
        double latency, banks, width, interleave, conflict, pass, load;
    } rows[] = {
        {"conflict_cycles: 2", 23, 32, 4, 4, 2, 1, 1},
        {"banks: 16, conflict_cycles: 32, pass_cycles: 2, load_cycles: 2", 50, 16, 4, 4, 32, 2, 4},
        {"bank_width: 8, conflict_cycles: 3", 30, 32, 8, 8, 3, 1, 1},
        {"bank_width: 8, interleave: 4, conflict_cycles: 3", 30, 32, 8, 4, 3, 1, 1},
        {"banks: 64, conflict_cycles: 1, pass_cycles: 0.9, load_cycles: 0.8", 20, 64, 4, 4, 1, 0.9,
         0.9},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measures all = probe_model(rows[i].shared, rows[i].latency, quiet);
        probed_expect(&all, "shared.banks", rows[i].banks, rows[i].shared);
        probed_expect(&all, "shared.bank_width", rows[i].width, rows[i].shared);
        const struct measure *width = measures_get(&all, "shared.bank_width");
        assert_true(facts_int(&width->notes, "interleave", 0) == (int64_t)rows[i].interleave);
        probed_expect(&all, "shared.conflict.latency", rows[i].conflict, rows[i].shared);
        probed_expect(&all, "shared.conflict.interval", rows[i].pass, rows[i].shared);
        probed_expect(&all, "shared.load.interval", rows[i].load, rows[i].shared);
        measures_fini(&all);
    }
}

/* 32 warps do not fill a memory that takes 47 cycles. */
static void never_full(void **state)
{
    (void)state;
    struct measures all = probe_model("conflict_cycles: 2", 47, quiet);
    assert_int_equal(measures_get(&all, "shared.load.interval")->status, MEASURE_NOISY);
    probed_expect(&all, "shared.conflict.interval", 1, "many conflicts fill it");
    measures_fini(&all);
}

/* Table I of Qiu, Jo and Goswami; 0: they did not measure it. */
static const double published[11][6] = {
    {22, 22, 22, 22, 22, 22},    {22, 22, 22, 22, 22, 24},   {22, 22, 22, 22, 24, 28},
    {22, 22, 22, 24, 28, 36},    {22, 22, 24, 28, 36, 52},   {22, 24, 28, 36, 52, 84},
    {22, 24, 28, 36, 52, 84},    {22, 24, 28, 36, 64, 128},  {22, 24, 32, 64, 127, 255},
    {32, 32, 64, 127, 255, 511}, {62, 62, 125, 251, 504, 0},
};

static void published_table(void **state)
{
    (void)state;
    struct measures all = probe_model(
        "banks: 32, bank_width: 4, conflict_cycles: 2, load_cycles: 2", 22, "jitter_cycles: 0.3");
    const struct measure *m = measures_get(&all, "shared.conflict.latency");
    size_t rows = 0, columns = 0, threads_count = 0, strides_count = 0;
    const double *cycles = facts_rows(&m->notes, "table", &rows, &columns);
    const double *threads = facts_numbers(&m->notes, "table_threads", &threads_count);
    const double *strides = facts_numbers(&m->notes, "table_strides", &strides_count);
    assert_true(cycles && rows == 11 && columns == 6);
    assert_true(threads && threads_count == 11 && strides && strides_count == 6);
    double worst = 0;
    for (size_t r = 0; r < 11; r++) {
        assert_true(threads[r] == 1 << r);
        for (size_t c = 0; c < 6; c++) {
            assert_true(strides[c] == 1 << c);
            if (published[r][c] > 0)
                worst = fmax(worst, fabs(cycles[r * 6 + c] / published[r][c] - 1));
        }
    }
    if (worst > 0.033)
        fail_msg("%.2f %% from the published table", 100 * worst);
    measures_fini(&all);
}

/* Wide loads of a warp go in groups of lanes. */
static void wide_loads(void **state)
{
    (void)state;
    struct measures all = probe_model("conflict_cycles: 2", 23, quiet);
    probed_expect(&all, "shared.load.latency_8", 25, "8 B");
    probed_expect(&all, "shared.load.latency_16", 29, "16 B");
    probed_expect(&all, "shared.load.interval_8", 2, "8 B");
    probed_expect(&all, "shared.load.interval_16", 4, "16 B");
    measures_fini(&all);
    all = probe_model("bank_width: 8, conflict_cycles: 2", 23, quiet);
    probed_expect(&all, "shared.load.latency_8", 23, "8 B, banks of 8 B");
    probed_expect(&all, "shared.load.interval_16", 2, "16 B, banks of 8 B");
    measures_fini(&all);
}

static void no_banks(void **state)
{
    (void)state;
    struct measures all = probe_model("conflict_cycles: 0", 23, quiet);
    assert_int_equal(measures_get(&all, "shared.banks")->status, MEASURE_FAILED);
    assert_non_null(strstr(measures_get(&all, "shared.banks")->reason, "conflict"));
    measures_fini(&all);
    all = probe_model("size: 1 KiB", 23, quiet);
    assert_int_equal(measures_get(&all, "shared.banks")->status, MEASURE_UNSUPPORTED);
    measures_fini(&all);
}

/* Never confident and wrong: banks chosen by a hash, and a load between both. */
static void other_patterns(void **state)
{
    (void)state;
    struct bank_pattern pattern = {{0}};
    struct bank_layout layout = {0};
    struct err err = {0};
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++)
        pattern.cycles[i] = ((i ^ i >> 5) & 31) == 0 ? 25 : 23;
    assert_int_equal(bank_pattern_layout(&pattern, &layout, &err), -ENODATA);
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++)
        pattern.cycles[i] = i % 32 == 0 ? 25 : 23;
    assert_int_equal(bank_pattern_layout(&pattern, &layout, &err), 0);
    assert_int_equal(layout.banks, 32);
    pattern.cycles[7] = 24;
    assert_int_equal(bank_pattern_layout(&pattern, &layout, &err), -ENODATA);
    pattern.cycles[7] = 25;
    assert_int_equal(bank_pattern_layout(&pattern, &layout, &err), -ENODATA);
}

static void draw(struct rng *rng, bool noisy)
{
    uint32_t banks = 8u << rng_below(rng, 4), width = 4u << rng_below(rng, 2);
    uint32_t interleave = width == 8 && rng_below(rng, 2) ? 4 : width;
    double conflict = 1 + (double)rng_below(rng, 40) / 4;
    char *shared =
        str_format("banks: %u, bank_width: %u, interleave: %u, conflict_cycles: %g, size: 48 KiB",
                   banks, width, interleave, conflict);
    struct measures all =
        probe_model(shared, 20 + (double)rng_below(rng, 30), noisy ? hostile : quiet);
    const struct measure *m = measures_get(&all, "shared.banks");
    if (m->status == MEASURE_OK) {
        probed_expect(&all, "shared.banks", banks, shared);
        probed_expect(&all, "shared.bank_width", width, shared);
    } else if (!noisy) {
        fail_msg("%s: %s", shared, m->reason);
    }
    measures_fini(&all);
    free(shared);
}

/* All are found; under much noise some may fail, but none is wrong. */
static void drawn(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 18, "banks");
    for (uint32_t i = 0; i < drawn_count; i++)
        draw(&rng, i % 3 == 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),         cmocka_unit_test(never_full),
        cmocka_unit_test(published_table), cmocka_unit_test(wide_loads),
        cmocka_unit_test(no_banks),        cmocka_unit_test(other_patterns),
        cmocka_unit_test(drawn),
    };
    drawn_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : drawn_count;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
