/* Writes the inventory of a large fleet, made from a small one: its healthy GPUs are repeated with
 * figures drawn anew, and every 500th GPU is a copy of one that is not healthy.
 * usage: make_inventory SAMPLE GPUS SEED > FILE */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "inventory/inventory.h"

enum { GPUS_PER_NODE = 8, GPUS_PER_FAULT = 500 };

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* The next GPU of the sample from *at on that is healthy, or that is not. */
static size_t next_sample(const struct inventory *sample, size_t *at, bool healthy)
{
    for (size_t tried = 0; tried < sample->gpu_count; tried++) {
        size_t found = (*at)++ % sample->gpu_count;
        if ((sample->gpus[found].status == GPU_OK) == healthy)
            return found;
    }
    fprintf(stderr, "the sample needs GPUs that are healthy and some that are not\n");
    exit(1);
}

static double drawn(double value, struct rng *rng)
{
    if (!isfinite(value) || value == floor(value))
        return value;
    return measure_digits(value * (1 + 0.004 * (rng_uniform(rng) - 0.5)), 6);
}

/* Strings that are the same in the sample stay shared: this program frees nothing. */
static void make_gpu(struct inventory_gpu *out, const struct inventory_gpu *sample, size_t number,
                     struct rng *rng)
{
    char serial[32];
    *out = *sample;
    out->uuid = must(str_format("GPU-%08zx-0000-4000-8000-%012zx", number, number));
    out->node = must(str_format("gpu%06zu", number / GPUS_PER_NODE));
    out->pci = must(str_format("0000:%02zx:00.0", number % GPUS_PER_NODE * 16 + 11));
    out->index = (int32_t)(number % GPUS_PER_NODE);
    out->rank = (int32_t)(number / GPUS_PER_NODE);
    out->board = (struct facts){0};
    facts_copy(&out->board, &sample->board);
    snprintf(serial, sizeof serial, "%013zu", 1000000000000 + number);
    if (sample->board.count)
        facts_set_text(&out->board, "serial", serial);
    if (sample->status != GPU_OK || !sample->value_count)
        return;
    out->values = must(mem_array(sample->value_count, sizeof *out->values));
    for (size_t i = 0; i < sample->value_count; i++) {
        out->values[i] = sample->values[i];
        out->values[i].value = drawn(sample->values[i].value, rng);
    }
}

/* What the sample says about a GPU that is not healthy, said about its copy. */
static void add_fault(struct inventory *out, const struct inventory *sample, size_t from,
                      const struct inventory_gpu *gpu)
{
    const char *uuid = sample->gpus[from].uuid;
    for (size_t i = 0; i < sample->outlier_count; i++) {
        if (str_equal(sample->outliers[i].uuid, uuid)) {
            struct inventory_outlier *outlier = &out->outliers[out->outlier_count++];
            *outlier = sample->outliers[i];
            outlier->uuid = gpu->uuid;
            outlier->node = gpu->node;
            outlier->pci = gpu->pci;
        }
    }
    for (size_t i = 0; i < sample->unmeasured_count; i++) {
        if (str_equal(sample->unmeasured[i].uuid, uuid)) {
            struct inventory_unmeasured *gap = &out->unmeasured[out->unmeasured_count++];
            *gap = sample->unmeasured[i];
            gap->uuid = gpu->uuid;
            gap->node = gpu->node;
            gap->rank = gpu->rank;
        }
    }
}

static void count(struct inventory *out)
{
    out->total_gpus = (uint32_t)out->gpu_count;
    out->total_nodes = out->total_ranks =
        (uint32_t)((out->gpu_count + GPUS_PER_NODE - 1) / GPUS_PER_NODE);
    out->total_outliers = (uint32_t)out->outlier_count;
    out->total_unmeasured = (uint32_t)out->unmeasured_count;
    out->total_measured = out->total_gpus - out->total_unmeasured;
    for (size_t m = 0; m < out->model_count; m++) {
        out->models[m].count = 0;
        for (size_t i = 0; i < out->gpu_count; i++)
            out->models[m].count +=
                str_equal(out->gpus[i].model, out->models[m].id) && out->gpus[i].value_count > 0;
    }
}

static void fill(struct inventory *out, const struct inventory *sample, size_t gpus,
                 const char *seed)
{
    struct rng rng;
    size_t healthy = 0, faulty = 0;
    rng_init(&rng, strtoull(seed, NULL, 10), "make_inventory");
    *out = *sample;
    out->outlier_count = out->unmeasured_count = 0;
    out->gpus = must(mem_array(gpus, sizeof *out->gpus));
    out->outliers = must(mem_array(gpus / GPUS_PER_FAULT + 1, sizeof *out->outliers));
    out->unmeasured = must(mem_array(gpus / GPUS_PER_FAULT + 1, sizeof *out->unmeasured));
    for (out->gpu_count = 0; out->gpu_count < gpus; out->gpu_count++) {
        bool fault = out->gpu_count % GPUS_PER_FAULT == GPUS_PER_FAULT - 1;
        size_t from = next_sample(sample, fault ? &faulty : &healthy, !fault);
        struct inventory_gpu *gpu = &out->gpus[out->gpu_count];
        make_gpu(gpu, &sample->gpus[from], out->gpu_count, &rng);
        if (fault)
            add_fault(out, sample, from, gpu);
    }
    count(out);
}

int main(int argc, char **argv)
{
    struct inventory sample = {0}, made = {0};
    struct strbuf text = {0};
    struct err err = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: make_inventory SAMPLE GPUS SEED > FILE\n");
        return 2;
    }
    if (inventory_read_file(argv[1], &sample, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    fill(&made, &sample, strtoull(argv[2], NULL, 10), argv[3]);
    inventory_print(&made, &text);
    return text.failed || fwrite(text.data, 1, text.length, stdout) != text.length ||
           fclose(stdout);
}
