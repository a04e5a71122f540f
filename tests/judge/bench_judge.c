/* Grouping, consensus and judgement of large fleets: time, memory, and that both are linear. The
 * results are drawn with the scatter that an H200 showed, heavy tails included. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml.h"
#include "judge/judge.h"
#include "judge/reference.h"

enum { PER_NODE = 8, REPEATS = 5, FAULTY_EVERY = 200 };

static const double SECONDS_MAX = 4, MIB_MAX = 1024;

/* Time for ten times the GPUs, over ten times the time. */
static const double GROWTH_MAX = 1.5;

static void must(bool done, const char *what)
{
    if (done)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Every figure of a `standard` run: what it is, how far repetitions scatter, whether it follows the
 * SM clock. */
static const struct {
    const char *metric, *unit;
    double value, scatter, follows;
} figures[] = {
    {"l1_data.size", "B", 222208, 0.001, 0},
    {"l1_data.line", "B", 128, 0, 0},
    {"l1_data.fetch", "B", 32, 0, 0},
    {"l1_data.latency", "cycles", 32, 0.0005, 0},
    {"l1_data.miss_penalty", "cycles", 180, 0.01, 0},
    {"l1_data.bandwidth.read", "GB/s", 33000, 0.002, 1},
    {"texture.size", "B", 222208, 0.001, 0},
    {"texture.line", "B", 128, 0, 0},
    {"texture.latency", "cycles", 88, 0.001, 0},
    {"read_only.size", "B", 222208, 0.001, 0},
    {"read_only.line", "B", 128, 0, 0},
    {"read_only.latency", "cycles", 32, 0.0005, 0},
    {"constant_l1.size", "B", 2048, 0, 0},
    {"constant_l1.latency", "cycles", 28, 0.001, 0},
    {"constant_l15.latency", "cycles", 102, 0.001, 0},
    {"shared.size", "B", 232448, 0, 0},
    {"shared.latency", "cycles", 23, 0.0005, 0},
    {"shared.bandwidth.read", "GB/s", 33000, 0.002, 1},
    {"main.latency", "cycles", 640, 0.02, 0.6},
    {"main.size", "B", 150754820096.0, 0, 0},
    {"main.bandwidth.read", "GB/s", 4527, 0.0005, 0},
    {"main.bandwidth.write", "GB/s", 4329, 0.0005, 0},
    {"main.bandwidth.copy", "GB/s", 3960, 0.001, 0},
    {"l2.latency", "cycles", 265, 0.005, 0},
    {"l2.latency_far", "cycles", 304, 0.005, 0},
    {"l2.parts", "", 2, 0, 0},
    {"l2.line", "B", 128, 0, 0},
    {"l2.size", "B", 61200000, 0.005, 0},
    {"l2.bandwidth.read", "GB/s", 8430, 0.01, 1},
    {"l2.bandwidth.write", "GB/s", 4700, 0.01, 1},
    {"host.latency", "cycles", 1600, 0.03, 0.9},
    {"host.bandwidth.h2d", "GB/s", 55.2, 0.001, 0},
    {"host.bandwidth.d2h", "GB/s", 55.1, 0.001, 0},
    {"host.bandwidth.both", "GB/s", 100, 0.005, 0},
    {"clock.sm", "MHz", 1980, 0.0001, 1},
    {"clock.memory", "MHz", 3201, 0, 0},
    {"sm.l1_latency", "cycles", 32, 0.0005, 0},
    {"sm.l1_worst", "", 1.003, 0.0005, 0},
    {"sm.l1_worst_sm", "id", 17, 0, 0},
    {"sm.count", "", 132, 0, 0},
    {"sm.l2_latency", "cycles", 290, 0.01, 0},
};

static const char *const numbers[] = {
    "violation_power_ns",
    "violation_thermal_ns",
    "ecc_corrected_volatile",
    "ecc_uncorrected_volatile",
    "ecc_corrected_sram",
    "ecc_corrected_dram",
    "ecc_uncorrected_sram",
    "ecc_uncorrected_dram",
    "ecc_uncorrected_new",
    "retired_pages_corrected",
    "retired_pages_uncorrected",
    "remapped_rows_corrected",
    "remapped_rows_uncorrected",
    "remap_banks_high",
    "remap_banks_partial",
    "remap_banks_low",
    "remap_banks_none",
    "pcie_replays",
    "nvlinks_down",
    "nvlink_errors",
    "processes",
};

/* Student's distribution with three degrees of freedom: rare repetitions are far off. */
static double heavy(struct rng *rng)
{
    double squares = 0, value = rng_normal(rng);
    for (int i = 0; i < 3; i++)
        squares += pow(rng_normal(rng), 2);
    return value / sqrt(squares / 3);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void draw_figure(struct gpu_result *gpu, size_t k, double clock, double factor,
                        struct rng *rng)
{
    double values[REPEATS], scatter = figures[k].scatter;
    double unit =
        scatter > 0 && strcmp(figures[k].metric, "clock.sm") != 0 ? 1 + 0.005 * rng_normal(rng) : 1;
    double center = figures[k].value * (1 + figures[k].follows * (clock - 1)) * unit * factor;
    for (int i = 0; i < REPEATS; i++)
        values[i] = center * (1 + scatter * heavy(rng));
    qsort(values, REPEATS, sizeof *values, by_value);
    struct measure *m = measures_add(&gpu->measures, figures[k].metric, values[REPEATS / 2],
                                     figures[k].unit, "average of long chases");
    must(m, "out of memory");
    m->spread = (values[REPEATS - 1] - values[0]) / 2;
    m->confidence = 0.99;
    m->n = REPEATS;
    facts_set_real(&m->notes, "ns", values[0] / 2);
}

static void draw_facts(struct gpu_result *gpu, struct rng *rng)
{
    facts_set_text(&gpu->hardware, "architecture", "hopper");
    facts_set_text(&gpu->hardware, "compute_capability", "9.0");
    facts_set_int(&gpu->hardware, "sms", 132);
    facts_set_int(&gpu->hardware, "memory_bytes", INT64_C(150754820096));
    facts_set_int(&gpu->hardware, "memory_bus_bits", 6144);
    facts_set_int(&gpu->hardware, "l2_bytes", 62914560);
    facts_set_int(&gpu->hardware, "pcie_gen_max", 5);
    facts_set_int(&gpu->hardware, "pcie_width_max", 16);
    facts_set_text(&gpu->board, "serial", gpu->uuid + 8);
    facts_set_text(&gpu->board, "part", "900-21010-0040-000");
    facts_set_text(&gpu->board, "vbios", "96.00.99.00.01");
    facts_set_text(&gpu->board, "driver", "580.65.06");
    facts_set_text(&gpu->board, "inforom", "G520.0280.00.05");
    facts_set_text(&gpu->config, "compute_mode", "default");
    facts_set_bool(&gpu->config, "persistence", true);
    facts_set_bool(&gpu->config, "ecc", true);
    facts_set_bool(&gpu->config, "ecc_pending", true);
    facts_set_bool(&gpu->config, "mig", false);
    facts_set_int(&gpu->config, "power_limit_w", 700);
    facts_set_int(&gpu->config, "sm_clock_limit_mhz", 1980);
    facts_set_int(&gpu->config, "pcie_gen", 5);
    facts_set_int(&gpu->config, "pcie_width", 16);
    facts_set_text(&gpu->health, "throttle", "none");
    facts_set_bool(&gpu->health, "remap_pending", false);
    facts_set_bool(&gpu->health, "inforom_valid", true);
    facts_set_int(&gpu->health, "nvlinks_active", 18);
    facts_set_int(&gpu->health, "temperature_c", 35 + (int64_t)rng_below(rng, 30));
    facts_set_int(&gpu->health, "power_draw_w", 200 + (int64_t)rng_below(rng, 200));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        facts_set_int(&gpu->health, numbers[i], 0);
}

/* GPU i; every 200th has DRAM a tenth slower. */
static struct gpu_result draw(size_t i, bool *out_faulty)
{
    struct gpu_result gpu = {.index = (int32_t)(i % PER_NODE), .rank = (int32_t)i};
    struct rng rng;
    rng_init(&rng, i, "bench");
    double clock = 0.96 + 0.08 * rng_uniform(&rng);
    *out_faulty = i % FAULTY_EVERY == 7;
    gpu.uuid = str_format("GPU-%016" PRIx64, rng_next(&rng));
    gpu.node = str_format("gpu%05zu", i / PER_NODE);
    gpu.pci = str_format("0000:%02zx:00.0", i % PER_NODE * 16 + 11);
    gpu.name = str_copy("NVIDIA H200");
    gpu.model_key = str_copy("10de:2335:10de:18be:NVIDIA H200");
    must(gpu.uuid && gpu.node && gpu.pci && gpu.name && gpu.model_key, "out of memory");
    draw_facts(&gpu, &rng);
    for (size_t k = 0; k < COUNT_OF(figures); k++) {
        bool dram = *out_faulty && strncmp(figures[k].metric, "main.bandwidth", 14) == 0;
        draw_figure(&gpu, k, clock, dram ? 1 / 1.1 : 1, &rng);
    }
    return gpu;
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Only the judge's own time counts. */
static double judge_count(const struct judge_basis *basis, size_t count)
{
    struct inventory inventory = {0};
    struct judge *judge;
    struct err err = {0};
    size_t faulty = 0, found = 0;
    double spent_s = 0, before;
    judge = judge_create(basis, count);
    for (size_t i = 0; i < count; i++) {
        bool is_faulty;
        struct gpu_result gpu = draw(i, &is_faulty);
        faulty += is_faulty;
        before = cpu_s();
        must(!judge_add(judge, &gpu, &err), err.text);
        spent_s += cpu_s() - before;
        gpu_result_fini(&gpu);
    }
    before = cpu_s();
    judge_finish(judge, &inventory);
    spent_s += cpu_s() - before;
    for (size_t i = 0; i < inventory.gpu_count; i++)
        found += inventory.gpus[i].status == GPU_OUTLIER &&
                 (size_t)inventory.gpus[i].rank % FAULTY_EVERY == 7;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%7zu GPUs: %.2f CPU s, %.1f us each, peak %ld MiB; %zu of %zu faulty found, %zu false "
           "alarms, %zu watched\n",
           count, spent_s, 1e6 * spent_s / (double)count, usage.ru_maxrss / 1024, found, faulty,
           inventory.total_outliers - found, inventory.watch_count);
    must(inventory.total_outliers == found, "healthy GPUs were accused");
    must(usage.ru_maxrss / 1024 < MIB_MAX, "too much memory");
    inventory_fini(&inventory);
    judge_destroy(judge);
    return spent_s;
}

int main(int argc, char **argv)
{
    struct judge_config config = {0};
    struct judge_references references = {0};
    struct yaml_doc *doc = NULL;
    struct err err = {0};
    must(argc == 3, "bench_judge SURVEY.yaml MODELS");
    must(!yaml_read_file(argv[1], &yaml_limits_config, &doc, &err), err.text);
    must(!judge_config_read(yaml_get(yaml_root(doc), "judge"), NULL, &config, &err), err.text);
    must(!judge_references_read(argv[2], &references, &err), err.text);
    const struct judge_basis basis = {.config = &config, .references = &references};
    judge_count(&basis, 1000);
    double few_s = judge_count(&basis, 10000), many_s = judge_count(&basis, 100000);
    must(many_s < SECONDS_MAX, "too slow");
    must(many_s < GROWTH_MAX * 10 * few_s, "the cost is not linear");
    judge_references_fini(&references);
    judge_config_fini(&config);
    yaml_destroy(doc);
    return 0;
}
