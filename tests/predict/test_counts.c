/* All counts of all kernels in many configurations, held against a golden file: what makes the
 * model faster must not change its results. test_counts FILE compares, test_counts --print prints
 * the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/model.h"

enum { TEXT_MAX = 512 };

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

static size_t put_l2(char *text, size_t at, const struct model_l2_counts *l2)
{
    const uint64_t all[] = {l2->reads,      l2->read_hits,  l2->writes,
                            l2->write_hits, l2->main_reads, l2->main_writes};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        at += (size_t)snprintf(text + at, TEXT_MAX - at, " %llu", (unsigned long long)all[i]);
    return at;
}

/* One line: all counts. The curves of reuse distances are summed up. */
static void put_counts(char text[TEXT_MAX], const char *kernel, const char *variant,
                       const struct model_counts *c)
{
    uint64_t curve = c->l1_curve.accesses + c->l1_curve.count;
    for (size_t i = 0; i < c->l1_curve.count; i++)
        curve = curve * 31 + c->l1_curve.hits[i];
    for (size_t i = 0; i < c->l2_curve.count; i++)
        curve = curve * 31 + c->l2_curve.hits[i];
    const uint64_t all[] = {
        c->accesses,        c->lines,         c->l1_reads,         c->l1_read_hits,
        c->l1_writes,       c->l1_write_hits, c->merges,           c->fails,
        c->steps,           c->waits_l1,      c->waits_l2,         c->waits_main,
        c->warps_in_flight, c->active_sms,    c->blocks_in_flight, curve};
    size_t at = (size_t)snprintf(text, TEXT_MAX, "%s %s:", kernel, variant);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        at += (size_t)snprintf(text + at, TEXT_MAX - at, " %llu", (unsigned long long)all[i]);
    at = put_l2(text, at, &c->l2);
    at = put_l2(text, at, &c->l2_bypassed);
    snprintf(text + at, TEXT_MAX - at, "\n");
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

static int make_line(const struct kernel *kernel, size_t variant, char text[TEXT_MAX])
{
    static struct kernel_launch launch;
    static struct model_counts counts;
    struct model_config config = small_gpu();
    struct err err = {0};
    variants[variant].change(&config);
    int rc = kernel_launch_init(&launch, kernel, small_size(kernel), 0, 0, &err);
    rc = rc ? rc : model_run(&config, &launch, &counts, &err);
    if (rc)
        fprintf(stderr, "%s %s: %s\n", kernel->name, variants[variant].name, err.text);
    else
        put_counts(text, kernel->name, variants[variant].name, &counts);
    return rc;
}

/* The golden file's next line is the expected one; without a file: prints it. */
static bool is_golden(FILE *golden, const char *text)
{
    char expected[TEXT_MAX] = "";
    if (!golden)
        return fputs(text, stdout) >= 0;
    if (fgets(expected, sizeof expected, golden) && strcmp(expected, text) == 0)
        return true;
    fprintf(stderr, "expected %sgot      %s", expected[0] ? expected : "nothing\n", text);
    return false;
}

int main(int argc, char **argv)
{
    bool print = argc == 2 && strcmp(argv[1], "--print") == 0, good = true;
    FILE *golden = argc == 2 && !print ? fopen(argv[1], "r") : NULL;
    char text[TEXT_MAX];
    if (!print && !golden) {
        fprintf(stderr, "test_counts FILE|--print\n");
        return EXIT_FAILURE;
    }
    for (size_t k = 0; k < kernel_table_count; k++)
        for (size_t v = 0; v < variants_of(&kernel_table[k]); v++)
            good &= !make_line(&kernel_table[k], v, text) && is_golden(golden, text);
    if (golden && fgets(text, sizeof text, golden)) {
        fprintf(stderr, "more than expected in %s: %s", argv[1], text);
        good = false;
    }
    if (golden)
        fclose(golden);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
