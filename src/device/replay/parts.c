/* The parts of a record's file, as entries. */
#include "device/replay/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/names.h"
#include "schema/wire.h"

const char replay_magic[RECORD_MAGIC_BYTES] = {'\x89', 'G', 'M', 'R', '\r', '\n', '\x1a', '\n'};

enum { TEXT_BYTES = 4, UNKNOWN_BYTES = 10 };

static void put_entry(struct strbuf *buffer, enum entry_type type, struct strbuf *payload)
{
    entry_write(buffer, type, payload);
    strbuf_fini(payload);
}

static void put_texts(struct strbuf *buffer, char *const *texts, size_t count)
{
    wire_put_u32(buffer, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        wire_put_text(buffer, texts[i]);
}

/* Reads texts, none of which may be missing. */
static char **get_texts(struct wire_reader *reader, size_t *out_count)
{
    uint32_t count = wire_get_count(reader, TEXT_BYTES);
    char **texts = mem_array(count, sizeof *texts);
    if (!texts)
        wire_no_memory(reader);
    for (uint32_t i = 0; i < count && !reader->bad; i++) {
        texts[i] = wire_get_text(reader);
        *out_count = i + 1;
        if (!texts[i])
            reader->bad = true;
    }
    return texts;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void parts_put_provenance(struct strbuf *buffer, const struct record_provenance *provenance)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, provenance->version);
    wire_put_text(&payload, provenance->date);
    wire_put_text(&payload, provenance->host);
    wire_put_text(&payload, provenance->backend);
    put_texts(&payload, provenance->command, provenance->command_count);
    wire_put_u64(&payload, provenance->seed);
    wire_put_u32(&payload, provenance->profile);
    wire_put_text(&payload, provenance->probes);
    wire_put_u32(&payload, provenance->measure_busy);
    wire_put_text(&payload, provenance->config);
    wire_put_text(&payload, provenance->config_text);
    wire_put_u32(&payload, provenance->ranks);
    put_entry(buffer, ENTRY_PROVENANCE, &payload);
}

void parts_get_provenance(struct wire_reader *reader, struct record_provenance *out_provenance)
{
    struct record_provenance *p = out_provenance;
    p->version = wire_get_text(reader);
    p->date = wire_get_text(reader);
    p->host = wire_get_text(reader);
    p->backend = wire_get_text(reader);
    p->command = get_texts(reader, &p->command_count);
    p->seed = wire_get_u64(reader);
    p->profile = wire_get_u32(reader);
    p->probes = wire_get_text(reader);
    p->measure_busy = wire_get_enum(reader, 2);
    p->config = wire_get_text(reader);
    p->config_text = wire_get_text(reader);
    p->ranks = wire_get_u32(reader);
    if (!p->version || !p->backend || !p->config || !p->config_text)
        reader->bad = true;
}

void record_provenance_fini(struct record_provenance *provenance)
{
    free(provenance->version);
    free(provenance->date);
    free(provenance->host);
    free(provenance->backend);
    free_texts(provenance->command, provenance->command_count);
    free(provenance->probes);
    free(provenance->config);
    free(provenance->config_text);
    memset(provenance, 0, sizeof *provenance);
}

void record_put_gpu(struct strbuf *buffer, const struct gpu_result *gpu, uint32_t session,
                    const char *body, size_t body_bytes, bool closed)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, gpu->uuid);
    wire_put_text(&payload, gpu->node);
    wire_put_text(&payload, gpu->pci);
    wire_put_signed(&payload, gpu->index);
    wire_put_text(&payload, gpu->name);
    wire_put_text(&payload, gpu->model_key);
    wire_put_signed(&payload, gpu->rank);
    wire_put_u32(&payload, (uint32_t)gpu->status);
    wire_put_text(&payload, gpu->reason);
    wire_put_u32(&payload, closed);
    wire_put_varint(&payload, body_bytes);
    if (gpu->first_status != GPU_OK || gpu->gpus_given) { /* older records end here */
        wire_put_u32(&payload, (uint32_t)gpu->first_status);
        wire_put_text(&payload, gpu->first_reason);
        wire_put_u32(&payload, gpu->gpus_given);
    }
    put_entry(buffer, session ? ENTRY_GPU_AGAIN : ENTRY_GPU, &payload);
    strbuf_append(buffer, body, body_bytes);
}

static int32_t get_i32(struct wire_reader *reader)
{
    int64_t value = wire_get_signed(reader);
    if (value < INT32_MIN || value > INT32_MAX)
        reader->bad = true;
    return reader->bad ? 0 : (int32_t)value;
}

void parts_get_gpu(struct wire_reader *reader, struct record_gpu *out_gpu)
{
    struct gpu_result *gpu = &out_gpu->gpu;
    gpu->uuid = wire_get_text(reader);
    gpu->node = wire_get_text(reader);
    gpu->pci = wire_get_text(reader);
    gpu->index = get_i32(reader);
    gpu->name = wire_get_text(reader);
    gpu->model_key = wire_get_text(reader);
    gpu->rank = get_i32(reader);
    gpu->status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
    gpu->reason = wire_get_text(reader);
    out_gpu->closed = wire_get_enum(reader, 2);
    out_gpu->body_bytes = wire_get_varint(reader);
    if (!reader->bad && reader->position < reader->length) {
        gpu->first_status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
        gpu->first_reason = wire_get_text(reader);
        gpu->gpus_given = wire_get_u32(reader);
    }
    if (!gpu->uuid || out_gpu->body_bytes > RECORD_BODY_MAX)
        reader->bad = true;
}

static bool any_given(const struct record_survey *survey)
{
    bool any = false;
    for (size_t i = 0; i < survey->unknown_count; i++)
        any |= survey->unknown[i].gpus_given > 0;
    return any;
}

void parts_put_survey(struct strbuf *buffer, const struct record_survey *survey)
{
    struct strbuf payload = {0};
    wire_put_u32(&payload, survey->nodes);
    wire_put_u32(&payload, survey->lost_ranks);
    put_texts(&payload, survey->bare_nodes, survey->bare_count);
    wire_put_u32(&payload, (uint32_t)survey->unknown_count);
    for (size_t i = 0; i < survey->unknown_count; i++) {
        const struct gpu_result *unknown = &survey->unknown[i];
        wire_put_text(&payload, unknown->node);
        wire_put_signed(&payload, unknown->rank);
        wire_put_u32(&payload, (uint32_t)unknown->status);
        wire_put_text(&payload, unknown->reason);
    }
    if (any_given(survey)) /* older records end here */
        for (size_t i = 0; i < survey->unknown_count; i++)
            wire_put_u32(&payload, survey->unknown[i].gpus_given);
    put_entry(buffer, ENTRY_SURVEY, &payload);
}

void parts_get_survey(struct wire_reader *reader, struct record_survey *out_survey)
{
    struct record_survey *survey = out_survey;
    survey->nodes = wire_get_u32(reader);
    survey->lost_ranks = wire_get_u32(reader);
    survey->bare_nodes = get_texts(reader, &survey->bare_count);
    uint32_t count = wire_get_count(reader, UNKNOWN_BYTES);
    survey->unknown = mem_array(count, sizeof *survey->unknown);
    if (!survey->unknown)
        wire_no_memory(reader);
    while (survey->unknown_count < count && !reader->bad) {
        struct gpu_result *unknown = &survey->unknown[survey->unknown_count++];
        unknown->node = wire_get_text(reader);
        unknown->rank = get_i32(reader);
        unknown->status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
        unknown->reason = wire_get_text(reader);
        unknown->index = -1;
    }
    bool given = !reader->bad && reader->position < reader->length;
    for (size_t i = 0; given && i < survey->unknown_count; i++)
        survey->unknown[i].gpus_given = wire_get_u32(reader);
}

void record_survey_fini(struct record_survey *survey)
{
    free_texts(survey->bare_nodes, survey->bare_count);
    for (size_t i = 0; i < survey->unknown_count; i++)
        gpu_result_fini(&survey->unknown[i]);
    free(survey->unknown);
    memset(survey, 0, sizeof *survey);
}

void parts_put_end(struct strbuf *buffer, uint64_t file_bytes)
{
    struct strbuf payload = {0};
    wire_put_u64(&payload, file_bytes);
    put_entry(buffer, ENTRY_END, &payload);
}
