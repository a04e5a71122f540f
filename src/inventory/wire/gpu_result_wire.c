/* The binary form of one GPU's result: version, CRC-32, then the fields in declaration order. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/gpu_result.h"
#include "inventory/names.h"
#include "inventory/wire/frame.h"
#include "schema/wire.h"

enum { VERSION = 3 };

/* Minimum size of an item in the binary form. */
enum { MEASURE_BYTES = 60, TEXT_BYTES = 4 };

/* A number with status ok or noisy must be finite, and its spread finite and not negative. */
static bool is_sound(const struct measure *measure)
{
    return measure->kind != MEASURE_NUMBER || !measure_status_valued(measure->status) ||
           (isfinite(measure->value) && isfinite(measure->spread) && measure->spread >= 0);
}

/* NaN means unknown. */
static bool is_confidence(double value)
{
    return isnan(value) || (value >= 0 && value <= 1);
}

/* An invalid measure is written as failed; otherwise the reader would refuse the whole GPU. */
static void put_measure(struct strbuf *buffer, const struct measure *measure)
{
    bool sound = is_sound(measure);
    wire_put_text(buffer, measure->metric);
    wire_put_u32(buffer, (uint32_t)measure->kind);
    wire_put_u32(buffer, (uint32_t)(sound ? measure->status : MEASURE_FAILED));
    wire_put_text(buffer, sound ? measure->reason : "not a finite number");
    wire_put_f64(buffer, measure->value);
    wire_put_u32(buffer, (uint32_t)measure->bound);
    wire_put_text(buffer, measure->unit);
    wire_put_f64(buffer, measure->spread);
    wire_put_f64(buffer, is_confidence(measure->confidence) ? measure->confidence : NAN);
    wire_put_u32(buffer, measure->n);
    wire_put_text(buffer, measure->method);
    wire_put_u32(buffer, (uint32_t)measure->word_count);
    for (size_t i = 0; i < measure->word_count; i++)
        wire_put_text(buffer, measure->words[i]);
    wire_put_facts(buffer, &measure->notes);
}

static void put_body(struct strbuf *buffer, const struct gpu_result *result)
{
    wire_put_text(buffer, result->uuid);
    wire_put_text(buffer, result->node);
    wire_put_text(buffer, result->pci);
    wire_put_u32(buffer, (uint32_t)result->index);
    wire_put_u32(buffer, (uint32_t)result->rank);
    wire_put_text(buffer, result->name);
    wire_put_text(buffer, result->model_key);
    wire_put_u32(buffer, (uint32_t)result->status);
    wire_put_text(buffer, result->reason);
    wire_put_u32(buffer, (uint32_t)result->first_status);
    wire_put_text(buffer, result->first_reason);
    wire_put_u32(buffer, result->gpus_given);
    wire_put_f64(buffer, result->elapsed_s);
    wire_put_facts(buffer, &result->hardware);
    wire_put_facts(buffer, &result->board);
    wire_put_facts(buffer, &result->config);
    wire_put_facts(buffer, &result->health);
    wire_put_facts(buffer, &result->timings);
    wire_put_u32(buffer, (uint32_t)result->measures.count);
    for (size_t i = 0; i < result->measures.count; i++)
        put_measure(buffer, &result->measures.items[i]);
    wire_put_facts(buffer, &result->measured_again);
}

void gpu_result_encode(const struct gpu_result *result, struct strbuf *buffer)
{
    struct strbuf body = {0};
    put_body(&body, result);
    if (body.failed)
        buffer->failed = true;
    else {
        wire_put_u32(buffer, VERSION);
        wire_put_u32(buffer, frame_crc32(body.data, body.length));
        strbuf_append(buffer, body.data, body.length);
    }
    strbuf_fini(&body);
}

static void get_words(struct wire_reader *reader, struct measure *measure)
{
    uint32_t count = wire_get_items(reader, TEXT_BYTES);
    if (!count)
        return;
    measure->words = mem_array(count, sizeof *measure->words);
    if (!measure->words)
        wire_no_memory(reader);
    while (!reader->bad && measure->word_count < count) {
        char *word = wire_get_text(reader);
        if (word)
            measure->words[measure->word_count++] = word;
        else
            reader->bad = true;
    }
}

static void get_measure(struct wire_reader *reader, struct measure *measure)
{
    measure->metric = wire_get_key(reader);
    measure->kind = (enum measure_kind)wire_get_enum(reader, MEASURE_WORDS + 1);
    measure->status = (enum measure_status)wire_get_enum(reader, MEASURE_STATUS_COUNT);
    measure->reason = wire_get_text(reader);
    measure->value = wire_get_f64(reader);
    measure->bound = (enum measure_bound)wire_get_enum(reader, MEASURE_AT_LEAST + 1);
    measure->unit = wire_get_text(reader);
    measure->spread = wire_get_f64(reader);
    measure->confidence = wire_get_f64(reader);
    measure->n = wire_get_u32(reader);
    measure->method = wire_get_text(reader);
    reader->bad |= !is_sound(measure) || !is_confidence(measure->confidence);
    get_words(reader, measure);
    wire_get_facts(reader, &measure->notes);
}

static void get_measures(struct wire_reader *reader, struct measures *measures)
{
    uint32_t count = wire_get_items(reader, MEASURE_BYTES);
    if (!count)
        return;
    measures->items = mem_array(count, sizeof *measures->items);
    if (!measures->items) {
        wire_no_memory(reader);
        return;
    }
    measures->capacity = count;
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        struct measure measure = {0};
        get_measure(reader, &measure);
        if (reader->bad && reader->in_place)
            measure_fini_lists(&measure);
        else if (reader->bad)
            measure_fini(&measure);
        else
            measures->items[measures->count++] = measure;
    }
    const char *metrics[WIRE_ITEMS_MAX];
    for (size_t i = 0; i < measures->count; i++)
        metrics[i] = measures->items[i].metric;
    reader->bad |= wire_repeats(metrics, measures->count);
}

static void get_body(struct wire_reader *reader, struct gpu_result *result)
{
    result->uuid = wire_get_text(reader);
    result->node = wire_get_text(reader);
    result->pci = wire_get_text(reader);
    result->index = (int32_t)wire_get_u32(reader);
    result->rank = (int32_t)wire_get_u32(reader);
    result->name = wire_get_text(reader);
    result->model_key = wire_get_text(reader);
    result->status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
    result->reason = wire_get_text(reader);
    result->first_status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
    result->first_reason = wire_get_text(reader);
    result->gpus_given = wire_get_u32(reader);
    result->elapsed_s = wire_get_f64(reader);
    reader->bad |= !(isfinite(result->elapsed_s) && result->elapsed_s >= 0);
    wire_get_facts(reader, &result->hardware);
    wire_get_facts(reader, &result->board);
    wire_get_facts(reader, &result->config);
    wire_get_facts(reader, &result->health);
    wire_get_facts(reader, &result->timings);
    get_measures(reader, &result->measures);
    wire_get_facts(reader, &result->measured_again);
}

static int decode(const void *data, size_t length, bool framed, struct gpu_result *out_result,
                  struct err *err)
{
    struct wire_reader reader = {.data = data, .length = length, .in_place = framed};
    uint32_t version = wire_get_u32(&reader);
    uint32_t sum = wire_get_u32(&reader);
    if (reader.bad)
        return err_set(err, -EBADMSG, "a GPU's result is cut off after %zu bytes", length);
    if (version != VERSION)
        return err_set(err, -EBADMSG, "a GPU's result has version %u, expected %d", version,
                       VERSION);
    const char *body = (const char *)data + reader.position;
    if (!framed && sum != frame_crc32(body, length - reader.position))
        return err_set(err, -EBADMSG, "a GPU's result is damaged: wrong checksum");
    struct gpu_result result = {.in_message = framed};
    get_body(&reader, &result);
    if (reader.bad || reader.position != length) {
        gpu_result_fini(&result);
        if (reader.no_memory)
            return err_no_memory(err);
        return err_set(err, -EBADMSG, "a GPU's result is malformed at byte %zu of %zu",
                       reader.position, length);
    }
    *out_result = result;
    return 0;
}

int gpu_result_decode(const void *data, size_t length, struct gpu_result *out_result,
                      struct err *err)
{
    return decode(data, length, false, out_result, err);
}

int gpu_result_decode_framed(void *data, size_t length, struct gpu_result *out_result,
                             struct err *err)
{
    return decode(data, length, true, out_result, err);
}
