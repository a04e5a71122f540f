/* How long a large fleet's inventory takes to print and to read back, and how much memory.
 * The numbers have 16 digits, more than those of a survey, which makes it slower than real ones. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "inventory/inventory.h"

enum { GPUS = 100000, VALUES = 40 };

static const double print_limit_s = 10, read_limit_s = 4, peak_limit_mib = 600;

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void fill_gpu(struct inventory_gpu *gpu, size_t number, struct rng *rng)
{
    gpu->uuid = must(str_format("GPU-%08zx-0000-0000-0000-%012zx", number, number));
    gpu->node = must(str_format("gpu%05zu", number / 8));
    gpu->pci = must(str_format("0000:%02zx:00.0", number % 8 * 16));
    gpu->model = must(str_copy("nvidia-h200"));
    gpu->values = must(mem_array(VALUES, sizeof *gpu->values));
    for (; gpu->value_count < VALUES; gpu->value_count++) {
        struct inventory_value *value = &gpu->values[gpu->value_count];
        value->metric = must(str_format("memory%zu.latency", gpu->value_count));
        value->value = 1000 * rng_uniform(rng);
        value->spread = rng_uniform(rng);
    }
}

static void fill(struct inventory *inventory)
{
    struct rng rng;
    rng_init(&rng, 1, "bench_speed");
    inventory->version = must(str_copy("0.1.0"));
    inventory->generated = must(str_copy("2026-11-14T12:00:00Z"));
    inventory->backend = must(str_copy("sim"));
    inventory->gpus = must(mem_array(GPUS, sizeof *inventory->gpus));
    for (; inventory->gpu_count < GPUS; inventory->gpu_count++)
        fill_gpu(&inventory->gpus[inventory->gpu_count], inventory->gpu_count, &rng);
}

/* Of this process: what else runs on the machine does not count. */
static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

int main(void)
{
    struct inventory inventory = {0};
    struct strbuf text = {0};
    struct err err = {0};
    char message[1024];
    fill(&inventory);
    double start = cpu_s();
    inventory_print(&inventory, &text);
    double printed = cpu_s();
    inventory_fini(&inventory);
    if (text.failed)
        return 1;
    double print_s = printed - start;
    printf("print: %d GPUs of %d values, %.1f MiB in %.2f CPU s (limit %.0f), peak %.0f MiB\n",
           GPUS, VALUES, (double)text.length / (1 << 20), print_s, print_limit_s, peak_mib());
    start = cpu_s();
    if (inventory_read_text(text.data, text.length, "large", &inventory, &err)) {
        fprintf(stderr, "%s\n", err_format(&err, message, sizeof message));
        return 1;
    }
    double read_s = cpu_s() - start;
    printf("read: %.2f CPU s (limit %.0f), peak %.0f MiB (limit %.0f)\n", read_s, read_limit_s,
           peak_mib(), peak_limit_mib);
    inventory_fini(&inventory);
    strbuf_fini(&text);
    return print_s > print_limit_s || read_s > read_limit_s || peak_mib() > peak_limit_mib;
}
