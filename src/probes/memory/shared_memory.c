/* The probes of shared memory: its latency, how many banks there are, how wide, what a conflict
 * costs, and the table of latencies by threads and stride. */
#include "probes/memory/shared_memory.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/shared_load.h"
#include "probes/method/chase.h"
#include "probes/method/latency.h"
#include "probes/method/pool.h"
#include "probes/method/repeats.h"

/* Two far words are in one bank with probability 1 / banks, however they are laid out: the share of
 * conflicts tells how many there are. The first conflict is where the words of all banks end. */

enum { WORD_BYTES = 4, FAR_WORDS = BANK_PATTERN_WORDS / 2 };

/* A conflict costs at least this much; a load between the two groups is neither. */
static const double least_cycles = 0.4, unclear_low = 0.25, unclear_high = 0.75;

static int banks_classify(const struct bank_pattern *pattern, bool *conflicts, struct err *err)
{
    double low = INFINITY, high = 0;
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++) {
        low = fmin(low, pattern->cycles[i]);
        high = fmax(high, pattern->cycles[i]);
    }
    if (high - low < least_cycles)
        return err_set(err, -ENODATA, "no two words up to %d bytes apart conflict",
                       BANK_PATTERN_WORDS * WORD_BYTES);
    for (uint32_t i = 1; i <= BANK_PATTERN_WORDS; i++) {
        double share = (pattern->cycles[i] - low) / (high - low);
        if (share > unclear_low && share < unclear_high)
            return err_set(err, -ENODATA,
                           "loads of words %u bytes apart take %.2f cycles: neither %.2f nor %.2f",
                           i * WORD_BYTES, pattern->cycles[i], low, high);
        conflicts[i] = share >= unclear_high;
    }
    return 0;
}

static bool in_conflict(const struct bank_layout *layout, uint32_t words)
{
    uint64_t address = (uint64_t)words * WORD_BYTES;
    bool same_bank = address / layout->interleave_bytes % layout->banks == 0;
    return same_bank && address >= (uint64_t)layout->banks * layout->bank_bytes;
}

int bank_pattern_layout(const struct bank_pattern *pattern, struct bank_layout *out_layout,
                        struct err *err)
{
    bool conflicts[BANK_PATTERN_WORDS + 1] = {false};
    uint32_t first = 1, run = 0, count = 0;
    int rc = banks_classify(pattern, conflicts, err);
    if (rc)
        return rc;
    while (!conflicts[first])
        first++;
    while (first + run <= BANK_PATTERN_WORDS && conflicts[first + run])
        run++;
    for (uint32_t i = BANK_PATTERN_WORDS - FAR_WORDS; i < BANK_PATTERN_WORDS; i++)
        count += conflicts[i];
    uint32_t banks = count ? FAR_WORDS / count : 0;
    struct bank_layout layout = {banks, banks ? first * WORD_BYTES / banks : 0, run * WORD_BYTES};
    bool explained = banks && layout.bank_bytes >= WORD_BYTES;
    for (uint32_t i = 1; explained && i <= BANK_PATTERN_WORDS; i++)
        explained = in_conflict(&layout, i) == conflicts[i];
    if (!explained)
        return err_set(err, -ENODATA,
                       "words conflict in another pattern than that of banks in turn: first at "
                       "%u bytes, then one in %u",
                       first * WORD_BYTES, banks);
    *out_layout = layout;
    return 0;
}

uint32_t bank_layout_passes(const struct bank_layout *layout, uint32_t lanes, uint32_t stride_bytes)
{
    uint32_t most = 1;
    for (uint32_t bank = 0; bank < layout->banks; bank++) {
        uint64_t last = UINT64_MAX; /* rows rise with the lanes */
        uint32_t count = 0;
        for (uint32_t lane = 0; lane < lanes; lane++) {
            uint64_t address = (uint64_t)lane * stride_bytes;
            uint64_t row = address / ((uint64_t)layout->banks * layout->bank_bytes);
            if (address / layout->interleave_bytes % layout->banks != bank)
                continue;
            count += row != last;
            last = row;
        }
        most = count > most ? count : most;
    }
    return most;
}

/* Loops of two lengths: their difference is free of what is not the loads. Disturbances only add
 * time, so the shortest of several counts. */
enum { SHORT = 64, LONG = 192, TRIES = 3, SCAN_LOADS = 32, SCAN_AGAIN = 24 };

enum { LANES = SHARED_LOAD_LANES_MAX, WARPS = SHARED_LOAD_WARPS_MAX };

/* The table of [Q]: threads by stride, in words. */
static const uint32_t threads[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

static const uint32_t strides[] = {1, 2, 4, 8, 16, 32};

enum { ROWS = COUNT_OF(threads), COLUMNS = COUNT_OF(strides), ONE_WARP_ROW = 5 };

struct bank_table {
    double cycles[ROWS][COLUMNS]; /* per load; 0: a block does not have that many threads */
};

/* What the cost of a load follows from: it takes latency + conflict (p - 1) cycles alone, p being
 * the words that the fullest bank delivers one after the other, and keeps shared memory busy for
 * max(load, p pass) cycles. */
struct bank_costs {
    double latency, conflict, load, pass;
};

static int shortest(struct probe_context *context, const struct device_shared_load *load,
                    size_t tries, double *out_cycles, struct err *err)
{
    double best = INFINITY;
    for (size_t i = 0; i < tries; i++) {
        struct device_shared_load_answer answer;
        int rc = device_load_shared(context->device, load, &answer, err);
        if (rc)
            return rc;
        best = fmin(best, (double)answer.cycles);
    }
    *out_cycles = best;
    return 0;
}

/* Cycles between two loads of a warp. */
static int cycles_each(struct probe_context *context, struct device_shared_load load,
                       double *out_cycles, struct err *err)
{
    double cycles[2];
    for (int i = 0; i < 2; i++) {
        load.loads = i ? LONG : SHORT;
        int rc = shortest(context, &load, TRIES, &cycles[i], err);
        if (rc)
            return rc;
    }
    *out_cycles = (cycles[1] - cycles[0]) / (LONG - SHORT);
    return 0;
}

static struct device_shared_load two_lanes(uint32_t words)
{
    return (struct device_shared_load){1, 2, words * WORD_BYTES, WORD_BYTES, SCAN_LOADS};
}

/* Those that seem to conflict are loaded again, since a disturbance looks the same. */
static int load_slow_again(struct probe_context *context, struct bank_pattern *pattern,
                           double lowest, struct err *err)
{
    const double limit = lowest + SCAN_LOADS / 4; /* a conflict costs more per load */
    for (uint32_t words = 1; words <= BANK_PATTERN_WORDS; words++) {
        const struct device_shared_load load = two_lanes(words);
        double cycles = pattern->cycles[words], again = 0;
        for (int i = 0; i < SCAN_AGAIN && cycles > limit; i++) {
            int rc = shortest(context, &load, 1, &again, err);
            if (rc)
                return rc;
            cycles = fmin(cycles, again);
        }
        pattern->cycles[words] = cycles / SCAN_LOADS;
    }
    return 0;
}

/* Two lanes at every distance. */
static int scan(struct probe_context *context, struct bank_pattern *pattern, struct err *err)
{
    double lowest = INFINITY;
    for (uint32_t words = 1; words <= BANK_PATTERN_WORDS; words++) {
        const struct device_shared_load load = two_lanes(words);
        int rc = shortest(context, &load, TRIES, &pattern->cycles[words], err);
        if (rc)
            return rc;
        lowest = fmin(lowest, pattern->cycles[words]);
    }
    return load_slow_again(context, pattern, lowest, err);
}

static int measure_table(struct probe_context *context, struct bank_table *out_table,
                         struct err *err)
{
    uint32_t warps_max = device_limits(context->device)->warp_count;
    *out_table = (struct bank_table){0};
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++) {
            uint32_t lanes = threads[r] < LANES ? threads[r] : LANES;
            const struct device_shared_load load = {threads[r] / lanes, lanes,
                                                    strides[c] * WORD_BYTES, WORD_BYTES, 0};
            if (warps_max && load.warps > warps_max)
                continue;
            int rc = cycles_each(context, load, &out_table->cycles[r][c], err);
            if (rc)
                return rc;
        }
    return 0;
}

/* The stride with the most conflicts. */
static size_t worst_column(const struct bank_layout *layout)
{
    size_t worst = 0;
    uint32_t most = 0;
    for (size_t c = 0; c < COLUMNS; c++) {
        uint32_t passes = bank_layout_passes(layout, LANES, strides[c] * WORD_BYTES);
        worst = passes > most ? c : worst;
        most = passes > most ? passes : most;
    }
    return worst;
}

/* The row with the most warps that a block can have. */
static size_t full_row(const struct bank_table *table)
{
    size_t full = ROWS - 1;
    while (full > ONE_WARP_ROW && table->cycles[full][0] <= 0)
        full--;
    return full;
}

/* The costs by the corners of the table: one warp with the fewest and the most conflicts, and as
 * many warps as there are. */
static struct bank_costs shared_banks_fit(const struct bank_table *table,
                                          const struct bank_layout *layout)
{
    size_t full = full_row(table), worst = worst_column(layout);
    double warps = threads[full] / (double)LANES;
    double least = bank_layout_passes(layout, LANES, strides[0] * WORD_BYTES);
    double most = bank_layout_passes(layout, LANES, strides[worst] * WORD_BYTES);
    const double *one = table->cycles[ONE_WARP_ROW], *all = table->cycles[full];
    return (struct bank_costs){.latency = table->cycles[0][0],
                               .conflict = (one[worst] - one[0]) / (most - least),
                               .load = all[0] / warps,
                               .pass = all[worst] / warps / most};
}

static double expected(const struct bank_costs *costs, const struct bank_layout *layout, size_t row,
                       size_t column)
{
    uint32_t lanes = threads[row] < LANES ? threads[row] : LANES;
    double passes = bank_layout_passes(layout, lanes, strides[column] * WORD_BYTES);
    double alone = costs->latency + costs->conflict * (passes - 1);
    return fmax(alone, threads[row] / lanes * fmax(costs->load, passes * costs->pass));
}

/* The largest deviation of the table from what the costs say, as a share. */
static double deviation(const struct bank_table *table, const struct bank_costs *costs,
                        const struct bank_layout *layout)
{
    double worst = 0;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLUMNS; c++)
            if (table->cycles[r][c] > 0)
                worst = fmax(worst, fabs(table->cycles[r][c] / expected(costs, layout, r, c) - 1));
    return worst;
}

static void report_layout(struct probe_context *context, const struct bank_layout *layout)
{
    static const char method[] = "two lanes at every distance";
    struct measure *m = measures_add(context->measures, "shared.banks", layout->banks, "", method);
    m->confidence = 1;
    m = measures_add(context->measures, "shared.bank_width", layout->bank_bytes, "B", method);
    facts_set_int(&m->notes, "interleave", layout->interleave_bytes);
    m->confidence = 1;
}

/* Cycles by threads (rows) and stride in words. */
static void note_table(struct measure *m, const struct bank_table *table)
{
    double at_threads[ROWS], at_strides[COLUMNS], cells[ROWS * COLUMNS];
    size_t rows = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        at_strides[c] = strides[c];
    for (size_t r = 0; r < ROWS; r++) {
        if (table->cycles[r][0] <= 0)
            continue;
        at_threads[rows] = threads[r];
        for (size_t c = 0; c < COLUMNS; c++)
            cells[rows * COLUMNS + c] = facts_decimals(table->cycles[r][c], 1);
        rows++;
    }
    if (!rows)
        return;
    facts_set_numbers(&m->notes, "table_threads", at_threads, rows);
    facts_set_numbers(&m->notes, "table_strides", at_strides, COLUMNS);
    facts_set_rows(&m->notes, "table", cells, rows, COLUMNS);
}

/* If so many warps take no longer than one, the memory was never full: the interval is shorter. */
static void add_interval(struct probe_context *context, const char *metric, double alone,
                         double all, uint32_t warps)
{
    static const double longer = 1.02;
    struct measure *m =
        measures_add(context->measures, metric, all / warps, "cycles", "all warps, no conflicts");
    if (all < alone * longer)
        measure_set_status(m, MEASURE_NOISY, "at most this: all warps take no longer than one");
}

/* A table that the costs do not explain is shown, but its costs are uncertain. */
static void report_costs(struct probe_context *context, const struct bank_table *table,
                         const struct bank_layout *layout)
{
    static const double explained = 0.05, clear_share = 0.05;
    const struct bank_costs costs = shared_banks_fit(table, layout);
    double worst = deviation(table, &costs, layout);
    /* What a conflict costs is a difference of two cells, shared among the conflicts. */
    size_t column = worst_column(layout);
    double error = worst * table->cycles[ONE_WARP_ROW][column] /
                   (bank_layout_passes(layout, LANES, strides[column] * WORD_BYTES) -
                    bank_layout_passes(layout, LANES, strides[0] * WORD_BYTES));
    const struct {
        const char *metric;
        double value;
        const char *method;
    } rows[] = {
        {"shared.conflict.latency", costs.conflict, "one warp, by words from one bank"},
        {"shared.conflict.interval", costs.pass, "all warps, by words from one bank"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct measure *m = measures_add(context->measures, rows[i].metric, rows[i].value, "cycles",
                                         rows[i].method);
        if (worst > explained)
            measure_set_status(m, MEASURE_NOISY, "the table does not follow these costs");
        else if (i == 0 && error > clear_share * costs.conflict)
            measure_set_status(m, MEASURE_NOISY, "the table scatters too much beside a conflict");
        if (i == 0) {
            facts_set_real(&m->notes, "deviation", worst);
            note_table(m, table);
        }
    }
    size_t full = full_row(table);
    add_interval(context, "shared.load.interval", table->cycles[ONE_WARP_ROW][0],
                 table->cycles[full][0], threads[full] / LANES);
}

/* Wide loads of a whole warp, without conflicts. */
static int report_wide(struct probe_context *context, struct err *err)
{
    for (uint32_t width = 2 * WORD_BYTES; width <= SHARED_LOAD_WIDTH_MAX; width *= 2) {
        struct device_shared_load load = {1, LANES, width, width, 0};
        double alone = 0, all = 0;
        char metric[48];
        int rc = cycles_each(context, load, &alone, err);
        if (rc)
            return rc;
        uint32_t warps = device_limits(context->device)->warp_count;
        load.warps = warps && warps < WARPS ? warps : WARPS;
        rc = cycles_each(context, load, &all, err);
        if (rc)
            return rc;
        snprintf(metric, sizeof metric, "shared.load.latency_%u", width);
        measures_add(context->measures, metric, alone, "cycles", "one warp, no conflicts");
        snprintf(metric, sizeof metric, "shared.load.interval_%u", width);
        add_interval(context, metric, alone, all, load.warps);
    }
    return 0;
}

static int shared_banks_measure(struct probe_context *context, struct err *err)
{
    struct bank_pattern pattern;
    struct bank_layout layout;
    struct bank_table table;
    int rc = scan(context, &pattern, err);
    if (rc)
        return rc;
    rc = bank_pattern_layout(&pattern, &layout, err);
    if (rc)
        return rc;
    report_layout(context, &layout);
    rc = measure_table(context, &table, err);
    if (rc)
        return rc;
    report_costs(context, &table, &layout);
    return rc ? rc : report_wide(context, err);
}

static int shared_banks_run(struct probe_context *context, struct err *err)
{
    const uint64_t needed =
        (uint64_t)LANES * LANES * WORD_BYTES + SHARED_LOAD_PLACES * SHARED_LOAD_PLACE_BYTES;
    struct err own = {0};
    if (device_limits(context->device)->shared_array_bytes < needed) {
        repeats_unsupported(context, "shared.banks", "a block has too little shared memory");
        return 0;
    }
    int rc = shared_banks_measure(context, &own);
    if (rc == -ENOSYS) {
        repeats_unsupported(context, "shared.banks", own.text);
        return 0;
    }
    return rc ? repeats_end(context, "shared.banks", rc, &own, err) : 0;
}

const struct probe probe_shared_banks = {
    .description = {"shared.banks", "banks of shared memory and their conflicts", PROFILE_FULL},
    .metrics = {"shared.banks", "shared.bank_width", "shared.conflict.*", "shared.load.*"},
    .run = shared_banks_run,
};

/* The probe of the latency of shared memory. */

enum { ARRAY_BYTES = 1024, STRIDE_BYTES = 8, JOBS = 4, LOADS = 2048 };

static const char METRIC[] = "shared.latency";

/* The scatter of single loads decides how long the chases are. */
static int measure_scatter(struct probe_context *context, const struct device_array *array,
                           struct study *out_study, struct err *err)
{
    struct device_job jobs[JOBS];
    struct device_answer *answers;
    struct pool loads = {0};
    for (size_t i = 0; i < JOBS; i++)
        jobs[i] = chase_twice(array, LOADS);
    int rc = chase_run(context, jobs, JOBS, 0, &answers, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < JOBS; i++)
        pool_add(&loads, &answers[i].samples[0]);
    const struct pool_centre centre = pool_centre(&loads);
    *out_study = (struct study){.path = DEVICE_SHARED,
                                .hit_cycles = centre.cycles,
                                .sigma_cycles = centre.sigma,
                                .spike_share = centre.spike_share};
    chase_free(answers, JOBS);
    return 0;
}

static int shared_latency_run(struct probe_context *context, struct err *err)
{
    const struct device_array array = {
        .path = DEVICE_SHARED, .size_bytes = ARRAY_BYTES, .stride_bytes = STRIDE_BYTES};
    struct study scatter;
    struct err own = {0};
    if (device_limits(context->device)->shared_array_bytes < ARRAY_BYTES) {
        repeats_unsupported(context, METRIC, "a block has no shared memory");
        return 0;
    }
    int rc = measure_scatter(context, &array, &scatter, &own);
    if (rc)
        return repeats_end(context, METRIC, rc, &own, err);
    rc = latency_report(context, METRIC, &array, &scatter, &own);
    if (rc)
        return repeats_end(context, METRIC, rc, &own, err);
    return 0;
}

const struct probe probe_shared_latency = {
    .description = {"shared.latency", "latency of shared memory", PROFILE_STANDARD},
    .metrics = {"shared.latency"},
    .run = shared_latency_run,
};
