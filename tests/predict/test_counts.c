/* All counts of all kernels in many configurations, compared with a golden file: what makes the
 * model faster must not change its results. The file has a table for each kernel: a column for each
 * configuration, a row for each count. test_counts FILE compares, test_counts --print prints the
 * file. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/model.h"

enum { LINE_MAX_BYTES = 512 };

/* Caches so small that every kernel overflows both. */
static struct model_config small_gpu(void)
{
    struct model_config config = {
        .sms = 5,
        .schedulers = 4,
        .limits = {.warps_max = 32, .blocks_max = 8, .shared_bytes = 228 << 10},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .seed = 1,
        .l1 = {.size = 8000, .line = 128, .sector = 32, .fetch = 32, .index = CACHE_HASHED},
        .l2 = {.size = 40000,
               .line = 128,
               .sector = 32,
               .fetch = 64,
               .ways = 16,
               .index = CACHE_HASHED,
               .mostly_hits = true},
    };
    config.l1.early_fill = config.l2.early_fill = 1;
    return config;
}

static void as_it_is(struct model_config *config)
{
    (void)config;
}

static void with_tags(struct model_config *config)
{
    config->l1.ways = 4;
    config->l1.tags = 12288;
    config->l1.index = CACHE_MODULO;
}

static void with_random(struct model_config *config)
{
    config->l1.policy = config->l2.policy = CACHE_RANDOM;
    config->l1.ways = 4;
    config->mapping = BLOCK_RANDOM;
}

static void with_random_l2(struct model_config *config)
{
    config->l2.policy = CACHE_FERMI;
    config->l2.ways = 4;
    config->l1.ways = 8;
    config->l1.policy = CACHE_FIFO;
    config->mapping = BLOCK_PART1;
}

static void with_lfu(struct model_config *config)
{
    config->l1.policy = CACHE_LFU;
    config->l1.ways = 4;
    config->l2.policy = CACHE_LFU;
    config->mapping = BLOCK_RR;
}

static void with_tree(struct model_config *config)
{
    config->l1.policy = config->l2.policy = CACHE_TREE;
    config->l1.ways = 4;
    config->l1.index = CACHE_XOR;
    config->l2.index = CACHE_PRIME;
    config->mapping = BLOCK_PART2;
}

static void with_early(struct model_config *config)
{
    config->l1.policy = CACHE_EARLY;
    config->l1.early_fill = 0.5;
    config->l1.ways = 16;
    config->l2.ways = 32;
    config->writes = MODEL_RWON;
}

static void with_evicting_stores(struct model_config *config)
{
    config->writes = MODEL_WON;
    config->l1_per_sm = 2;
    config->l2.ways = 0;
}

static void with_stores_in_l1(struct model_config *config)
{
    config->writes = MODEL_OFF;
    config->l1.ways = 4;
    config->l2.line = 64;
    config->together = true;
    config->schedulers = 3;
}

static void with_greedy(struct model_config *config)
{
    config->scheduler = SM_GTO;
    config->stall = 7;
    config->l1.ways = 4;
    config->l2.line = 256;
}

static void with_mshrs(struct model_config *config)
{
    config->parallel = (struct parallel_config){.banks = 2,
                                                .ports = 2,
                                                .mshrs = 6,
                                                .merges_max = 4,
                                                .latency = {.k1 = 2, .k2 = 0.25, .sharers = 1}};
    config->l1_per_sm = 2;
}

static void with_reuse(struct model_config *config)
{
    config->reuse = true;
    config->l1.slack = 0.1;
    config->l1.ways = 4;
    config->l2.size = 1 << 20;
}

static void with_parts(struct model_config *config)
{
    config->l2_parts = 2;
    config->groups = 2;
    config->merged_loads = 4;
    config->merged_store_lines = 8;
}

static const struct {
    const char *name;
    void (*change)(struct model_config *config);
} variants[] = {
    {"plain", as_it_is},        {"tags", with_tags},
    {"random", with_random},    {"random_l2", with_random_l2},
    {"lfu", with_lfu},          {"tree", with_tree},
    {"early", with_early},      {"won", with_evicting_stores},
    {"off", with_stores_in_l1}, {"gto", with_greedy},
    {"mshrs", with_mshrs},      {"reuse", with_reuse},
    {"parts", with_parts},
};

/* A row of a table: one count in all configurations. */
static const struct count_row {
    const char *name;
    size_t offset, size; /* of the member; size 0: curve_sum() */
} count_rows[] = {
#define MEMBER(name)                                                                               \
#name, offsetof(struct model_counts, name), sizeof((struct model_counts *)0)->name
    {MEMBER(accesses)},
    {MEMBER(lines)},
    {MEMBER(l1_reads)},
    {MEMBER(l1_read_hits)},
    {MEMBER(l1_writes)},
    {MEMBER(l1_write_hits)},
    {MEMBER(merges)},
    {MEMBER(fails)},
    {MEMBER(steps)},
    {MEMBER(waits_l1)},
    {MEMBER(waits_l2)},
    {MEMBER(waits_main)},
    {MEMBER(warps_in_flight)},
    {MEMBER(active_sms)},
    {MEMBER(blocks_in_flight)},
    {MEMBER(l2.reads)},
    {MEMBER(l2.read_hits)},
    {MEMBER(l2.writes)},
    {MEMBER(l2.write_hits)},
    {MEMBER(l2.main_reads)},
    {MEMBER(l2.main_writes)},
    {MEMBER(l2_bypassed.reads)},
    {MEMBER(l2_bypassed.read_hits)},
    {MEMBER(l2_bypassed.writes)},
    {MEMBER(l2_bypassed.write_hits)},
    {MEMBER(l2_bypassed.main_reads)},
    {MEMBER(l2_bypassed.main_writes)},
    {"curve_sum", 0, 0},
#undef MEMBER
};

/* The curves of reuse distances as one number. */
static uint64_t curve_sum(const struct model_counts *counts)
{
    const struct model_curve *l1 = &counts->l1_curve, *l2 = &counts->l2_curve;
    uint64_t sum = l1->accesses + l1->count;
    for (size_t i = 0; i < l1->count; i++)
        sum = sum * 31 + l1->hits[i];
    for (size_t i = 0; i < l2->count; i++)
        sum = sum * 31 + l2->hits[i];
    return sum;
}

static uint64_t row_value(const struct count_row *row, const struct model_counts *counts)
{
    uint64_t wide;
    uint32_t narrow;
    const char *at = (const char *)counts + row->offset;
    if (row->size == 0)
        return curve_sum(counts);
    if (row->size == sizeof narrow)
        return memcpy(&narrow, at, sizeof narrow), narrow;
    return memcpy(&wide, at, sizeof wide), wide;
}

/* Some ten thousand accesses; a whole number of tiles. */
static uint64_t small_size(const struct kernel *kernel)
{
    if (kernel->size >= 65536)
        return 2048;
    if (strcmp(kernel->name, "attention") == 0)
        return 512;
    return kernel->loops ? 64 : 192;
}

/* The embedding cannot be small: only some. */
static size_t variants_of(const struct kernel *kernel)
{
    return strcmp(kernel->name, "embedding") == 0 ? 3 : COUNT_OF(variants);
}

static int kernel_counts(const struct kernel *kernel, size_t variant, struct model_counts *counts)
{
    static struct kernel_launch launch;
    struct model_config config = small_gpu();
    struct err err = {0};
    variants[variant].change(&config);
    int rc = kernel_launch_init(&launch, kernel, small_size(kernel), 0, 0, &err);
    rc = rc ? rc : model_run(&config, &launch, counts, &err);
    if (rc)
        fprintf(stderr, "%s %s: %s\n", kernel->name, variants[variant].name, err.text);
    return rc;
}

/* The table of a kernel: a column for each configuration, a row for each count. */
static void put_table(const struct kernel *kernel,
                      uint64_t values[COUNT_OF(variants)][COUNT_OF(count_rows)], struct strbuf *out)
{
    size_t columns = variants_of(kernel);
    int widths[COUNT_OF(variants)];
    for (size_t v = 0; v < columns; v++) {
        widths[v] = (int)strlen(variants[v].name);
        for (size_t r = 0; r < COUNT_OF(count_rows); r++) {
            int width = snprintf(NULL, 0, "%" PRIu64, values[v][r]);
            widths[v] = width > widths[v] ? width : widths[v];
        }
    }
    strbuf_printf(out, "%-24s", kernel->name);
    for (size_t v = 0; v < columns; v++)
        strbuf_printf(out, "  %*s", widths[v], variants[v].name);
    strbuf_puts(out, "\n");
    for (size_t r = 0; r < COUNT_OF(count_rows); r++) {
        strbuf_printf(out, "%-24s", count_rows[r].name);
        for (size_t v = 0; v < columns; v++)
            strbuf_printf(out, "  %*" PRIu64, widths[v], values[v][r]);
        strbuf_puts(out, "\n");
    }
    strbuf_puts(out, "\n");
}

static int add_table(const struct kernel *kernel, struct strbuf *out)
{
    static uint64_t values[COUNT_OF(variants)][COUNT_OF(count_rows)];
    static struct model_counts counts;
    for (size_t v = 0; v < variants_of(kernel); v++) {
        int rc = kernel_counts(kernel, v, &counts);
        if (rc)
            return rc;
        for (size_t r = 0; r < COUNT_OF(count_rows); r++)
            values[v][r] = row_value(&count_rows[r], &counts);
    }
    put_table(kernel, values, out);
    return 0;
}

/* The table's lines are the next of the golden file. What differs is printed below the names of the
 * columns. */
static bool is_golden(FILE *golden, char *table)
{
    char expected[LINE_MAX_BYTES], *rest = table;
    bool good = true;
    int columns = (int)strcspn(table, "\n");
    for (char *line; (line = strsep(&rest, "\n")) && rest;) {
        if (!fgets(expected, sizeof expected, golden))
            expected[0] = '\0';
        expected[strcspn(expected, "\n")] = '\0';
        if (strcmp(expected, line) == 0)
            continue;
        if (good)
            fprintf(stderr, "          %.*s\n", columns, table);
        fprintf(stderr, "expected: %s\ngot:      %s\n", expected, line);
        good = false;
    }
    return good;
}

int main(int argc, char **argv)
{
    bool print = argc == 2 && strcmp(argv[1], "--print") == 0, good = true;
    FILE *golden = argc == 2 && !print ? fopen(argv[1], "r") : NULL;
    char more[LINE_MAX_BYTES];
    if (!print && !golden) {
        fprintf(stderr, "test_counts FILE|--print\n");
        return EXIT_FAILURE;
    }
    for (size_t k = 0; k < kernel_table_count; k++) {
        struct strbuf table = {0};
        if (add_table(&kernel_table[k], &table) != 0)
            good = false;
        else if (print)
            fputs(table.data, stdout);
        else
            good &= is_golden(golden, table.data);
        strbuf_fini(&table);
    }
    if (golden && fgets(more, sizeof more, golden)) {
        fprintf(stderr, "more than expected in %s: %s", argv[1], more);
        good = false;
    }
    if (golden)
        fclose(golden);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
