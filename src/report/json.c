/* An inventory as JSON, and a model as MT4G writes it. */
#include "report/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/writer.h"

void report_json(const struct inventory *inventory, struct strbuf *out_text)
{
    struct writer writer = {.out = out_text, .format = WRITER_JSON};
    schema_print(&inventory_schema, &writer, NULL, inventory);
}

enum { METRIC_MAX = 64 };

/* The measure of an attribute of a memory if it has a number; NULL otherwise. */
static const struct measure *mt4g_number_of(const struct inventory_model *model, const char *memory,
                                            const char *attribute)
{
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    const struct measure *m = measures_get(&model->memory, metric);
    bool usable = m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status);
    return usable && isfinite(m->value) ? m : NULL;
}

static void mt4g_put_value(struct writer *json, const char *key, const char *unit, double value)
{
    if (!isfinite(value))
        return;
    writer_map(json, key, WRITER_BLOCK);
    writer_text(json, "unit", unit);
    writer_number(json, "value", value);
    writer_end(json);
}

/* Additional keys, since MT4G has none for bounds and noisy values. */
static void mt4g_put_bound(struct writer *json, const char *key, const struct measure *m)
{
    if (m->bound == MEASURE_AT_LEAST)
        writer_text(json, key, "at_least");
}

static void mt4g_put_status(struct writer *json, const char *key, const struct measure *m)
{
    if (m->status != MEASURE_OK)
        writer_text(json, key, measure_status_name(m->status));
}

/* MT4G gives confidence 0 to a capacity that is only a lower bound. */
static void mt4g_put_size(struct writer *json, const char *key, const struct measure *m)
{
    if (!m)
        return;
    writer_map(json, key, WRITER_BLOCK);
    mt4g_put_bound(json, "bound", m);
    if (m->bound == MEASURE_AT_LEAST || !isnan(m->confidence))
        writer_number(json, "confidence", m->bound == MEASURE_AT_LEAST ? 0 : m->confidence);
    writer_text(json, "method", m->method);
    writer_bool(json, "randomized", false);
    writer_number(json, "size", m->value);
    mt4g_put_status(json, "status", m);
    writer_text(json, "unit", "bytes");
    writer_end(json);
}

static double note_of(const struct measure *m, const char *key)
{
    const struct fact *note = facts_get(&m->notes, key);
    if (note && note->kind == FACT_REAL)
        return note->real;
    return note && note->kind == FACT_INT ? (double)note->integer : NAN;
}

static void mt4g_put_note(struct writer *json, const struct measure *m, const char *key)
{
    double value = note_of(m, key);
    if (isfinite(value))
        writer_number(json, key, value);
}

/* The value is the mean, unless there is a note with the mean. */
static void mt4g_put_latency(struct writer *json, const struct measure *m)
{
    if (!m)
        return;
    double mean = note_of(m, "mean");
    writer_map(json, "latency", WRITER_BLOCK);
    mt4g_put_bound(json, "bound", m);
    writer_number(json, "mean", isfinite(mean) ? mean : m->value);
    if (m->n)
        writer_number(json, "measurements", m->n);
    writer_text(json, "method", m->method);
    mt4g_put_note(json, m, "p50");
    mt4g_put_note(json, m, "p95");
    mt4g_put_status(json, "status", m);
    if (isfinite(note_of(m, "sd")))
        writer_number(json, "stdev", note_of(m, "sd"));
    writer_text(json, "unit", "cycles");
    writer_end(json);
}

static void mt4g_put_plain(struct writer *json, const char *key, const char *unit, double factor,
                           const struct measure *m)
{
    if (!m)
        return;
    writer_map(json, key, WRITER_BLOCK);
    mt4g_put_bound(json, "bound", m);
    mt4g_put_status(json, "status", m);
    writer_text(json, "unit", unit);
    writer_number(json, "value", m->value * factor);
    writer_end(json);
}

static void mt4g_put_fact(struct writer *json, const struct inventory_model *model,
                          const char *fact, const char *key, const char *unit, double factor)
{
    int64_t value = facts_int(&model->identity, fact, -1);
    if (value < 0)
        return;
    if (unit)
        mt4g_put_value(json, key, unit, (double)value * factor);
    else
        writer_number(json, key, (double)value);
}

static void mt4g_put_sharing(struct writer *json, const struct inventory_model *model,
                             const char *memory)
{
    static const char *const names[][2] = {
        {"l1_data", "L1"}, {"read_only", "Read Only"}, {"texture", "Texture"}};
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.shared_with", memory);
    const struct measure *m = measures_get(&model->memory, metric);
    if (!m || m->kind != MEASURE_WORDS || m->status != MEASURE_OK)
        return;
    writer_list(json, "sharedWith", WRITER_BLOCK);
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t i = 0; i < m->word_count; i++)
            if (strcmp(m->words[i], names[n][0]) == 0)
                writer_text(json, NULL, names[n][1]);
    writer_end(json);
}

/* Whether global loads are cached in L1, if that is known. */
static void mt4g_put_global(struct writer *json, const struct inventory_model *model)
{
    const struct measure *m = measures_get(&model->memory, "l1_data.global_loads");
    if (m && m->kind == MEASURE_WORDS && m->status == MEASURE_OK && m->word_count)
        writer_bool(json, "globalL1CacheSupported", strcmp(m->words[0], "cached") == 0);
}

static void mt4g_put_cache(struct writer *json, const struct inventory_model *model,
                           const char *memory, const char *key)
{
    writer_map(json, key, WRITER_BLOCK);
    const struct measure *m = mt4g_number_of(model, memory, "per_sm");
    if (m && m->status == MEASURE_OK &&
        m->bound == MEASURE_EXACT) /* a number without room for bound or status */
        writer_number(json, "amountPerMultiprocessor", m->value);
    mt4g_put_size(json, "fetchGranularity", mt4g_number_of(model, memory, "fetch"));
    if (strcmp(memory, "l1_data") == 0)
        mt4g_put_global(json, model);
    mt4g_put_latency(json, mt4g_number_of(model, memory, "latency"));
    mt4g_put_size(json, "lineSize", mt4g_number_of(model, memory, "line"));
    mt4g_put_plain(json, "missPenalty", "cycles", 1, mt4g_number_of(model, memory, "miss_penalty"));
    if (strncmp(memory, "constant", strlen("constant")) != 0)
        mt4g_put_sharing(json, model, memory);
    mt4g_put_size(json, "size", mt4g_number_of(model, memory, "size"));
    writer_end(json);
}

/* GB/s to GiB/s. */
static const double to_gib = 1e9 / (1024.0 * 1024 * 1024);

/* In MT4G the size of L2 is what the driver reports; the measured size has a separate key. */
static void mt4g_put_l2_size(struct writer *json, const struct inventory_model *model)
{
    const struct measure *m = mt4g_number_of(model, "l2", "size");
    int64_t reported = facts_int(&model->identity, "l2_bytes", -1);
    if (reported < 0 && !m)
        return;
    writer_map(json, "size", WRITER_BLOCK);
    if (m) {
        writer_number(json, "measured", m->value);
        mt4g_put_bound(json, "measuredBound", m);
        mt4g_put_status(json, "measuredStatus", m);
    }
    writer_text(json, "unit", "bytes");
    if (reported >= 0)
        writer_number(json, "value", (double)reported);
    writer_end(json);
}

static void mt4g_put_l2(struct writer *json, const struct inventory_model *model)
{
    writer_map(json, "l2", WRITER_BLOCK);
    mt4g_put_size(json, "fetchGranularity", mt4g_number_of(model, "l2", "fetch"));
    mt4g_put_latency(json, mt4g_number_of(model, "l2", "latency"));
    mt4g_put_size(json, "lineSize", mt4g_number_of(model, "l2", "line"));
    mt4g_put_plain(json, "missPenalty", "cycles", 1, mt4g_number_of(model, "l2", "miss_penalty"));
    mt4g_put_plain(json, "readBandwidth", "GiB/s", to_gib,
                   mt4g_number_of(model, "l2", "bandwidth.read"));
    const struct measure *part = mt4g_number_of(model, "l2", "part_size");
    mt4g_put_size(json, "segmentSize", part ? part : mt4g_number_of(model, "l2", "size"));
    mt4g_put_l2_size(json, model);
    mt4g_put_plain(json, "writeBandwidth", "GiB/s", to_gib,
                   mt4g_number_of(model, "l2", "bandwidth.write"));
    writer_end(json);
}

static void mt4g_put_main(struct writer *json, const struct inventory_model *model)
{
    writer_map(json, "main", WRITER_BLOCK);
    mt4g_put_latency(json, mt4g_number_of(model, "main", "latency"));
    mt4g_put_fact(json, model, "memory_bus_bits", "memoryBusWidth", "bit", 1);
    mt4g_put_fact(json, model, "memory_clock_max_mhz", "memoryClockRate", "kHz", 1000);
    mt4g_put_plain(json, "readBandwidth", "GiB/s", to_gib,
                   mt4g_number_of(model, "main", "bandwidth.read"));
    mt4g_put_fact(json, model, "memory_bytes", "totalGlobalMem", "bytes", 1);
    mt4g_put_plain(json, "writeBandwidth", "GiB/s", to_gib,
                   mt4g_number_of(model, "main", "bandwidth.write"));
    writer_end(json);
}

static void mt4g_put_memory(struct writer *json, const struct inventory_model *model)
{
    writer_map(json, "memory", WRITER_BLOCK);
    writer_map(json, "constant", WRITER_BLOCK);
    mt4g_put_cache(json, model, "constant_l1", "l1");
    mt4g_put_cache(json, model, "constant_l15", "l1.5");
    mt4g_put_fact(json, model, "constant_bytes", "totalConstMem", "bytes", 1);
    writer_end(json);
    mt4g_put_cache(json, model, "l1_data", "l1");
    mt4g_put_l2(json, model);
    mt4g_put_main(json, model);
    mt4g_put_cache(json, model, "read_only", "readOnly");
    writer_map(json, "shared", WRITER_BLOCK);
    mt4g_put_latency(json, mt4g_number_of(model, "shared", "latency"));
    mt4g_put_fact(json, model, "shared_reserved_bytes", "reservedSharedMemPerBlock", "bytes", 1);
    mt4g_put_plain(json, "sharedMemPerBlockOptin", "bytes", 1,
                   mt4g_number_of(model, "shared", "size"));
    mt4g_put_fact(json, model, "shared_per_sm_bytes", "sharedMemPerMultiProcessor", "bytes", 1);
    writer_end(json);
    mt4g_put_cache(json, model, "texture", "texture");
    writer_end(json);
}

static void mt4g_put_compute(struct writer *json, const struct inventory_model *model)
{
    int64_t sms = facts_int(&model->identity, "sms", -1);
    int64_t cores = facts_int(&model->identity, "cores", -1);
    writer_map(json, "compute", WRITER_BLOCK);
    mt4g_put_fact(json, model, "blocks_per_sm", "maxBlocksPerMultiProcessor", NULL, 1);
    mt4g_put_fact(json, model, "threads_per_block", "maxThreadsPerBlock", NULL, 1);
    mt4g_put_fact(json, model, "threads_per_sm", "maxThreadsPerMultiProcessor", NULL, 1);
    mt4g_put_fact(json, model, "sms", "multiProcessorCount", NULL, 1);
    if (sms > 0 && cores > 0)
        writer_number(json, "numberOfCoresPerMultiProcessor", (double)(cores / sms));
    mt4g_put_fact(json, model, "registers_per_block", "regsPerBlock", NULL, 1);
    mt4g_put_fact(json, model, "registers_per_sm", "regsPerMultiProcessor", NULL, 1);
    mt4g_put_fact(json, model, "warp_size", "warpSize", NULL, 1);
    writer_end(json);
}

static void mt4g_put_general(struct writer *json, const struct inventory_model *model)
{
    const char *capability = facts_text(&model->identity, "compute_capability");
    int major, minor;
    writer_map(json, "general", WRITER_BLOCK);
    mt4g_put_fact(json, model, "sm_clock_max_mhz", "clockRate", "kHz", 1000);
    if (capability && sscanf(capability, "%d.%d", &major, &minor) == 2) {
        writer_map(json, "computeCapability", WRITER_BLOCK);
        writer_number(json, "major", major);
        writer_number(json, "minor", minor);
        writer_end(json);
    }
    writer_text(json, "name", model->name);
    writer_text(json, "vendor", "NVIDIA");
    writer_end(json);
}

/* CUDA encodes version 12.2 as 12020. */
static void mt4g_put_driver(struct writer *json, const struct inventory *inventory,
                            const struct inventory_model *model)
{
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        const char *cuda = facts_text(&gpu->board, "cuda");
        int major, minor;
        if (!cuda || !str_equal(gpu->model, model->id) ||
            sscanf(cuda, "%d.%d", &major, &minor) != 2)
            continue;
        writer_number(json, "driver", 1000.0 * major + 10.0 * minor);
        return;
    }
}

void report_json_mt4g(const struct inventory *inventory, const struct inventory_model *model,
                      struct strbuf *out_text)
{
    struct writer json = {.out = out_text};
    writer_map(&json, NULL, WRITER_BLOCK);
    mt4g_put_compute(&json, model);
    mt4g_put_general(&json, model);
    mt4g_put_memory(&json, model);
    writer_map(&json, "meta", WRITER_BLOCK);
    mt4g_put_driver(&json, inventory, model);
    writer_text(&json, "gpumemtopo", inventory->version);
    writer_text(&json, "timestamp", inventory->generated);
    writer_end(&json);
    writer_end(&json);
}
