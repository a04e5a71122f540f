/* The two frames of a spool file in their binary form. */
#include "inventory/wire/spool_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/names.h"
#include "schema/wire.h"

enum frame_type { FRAME_ORIGIN = 1, FRAME_GPU, FRAME_SURVEY };

/* A file with more ranks is refused: they would only cost time and memory. */
enum { RANKS_MAX = 1 << 20 };

/* Minimum size of an item in the binary form. */
enum { TEXT_BYTES = 4, GPU_BYTES = 40 };

/* Appends the payload as a frame and releases it. */
static void put_frame(struct strbuf *buffer, enum frame_type type, struct strbuf *payload)
{
    if (payload->failed)
        buffer->failed = true;
    else
        frame_write(buffer, type, payload->data, payload->length);
    strbuf_fini(payload);
}

static void put_origin(struct strbuf *buffer, const struct spool_origin *origin)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, origin->survey);
    wire_put_text(&payload, origin->version);
    wire_put_text(&payload, origin->backend);
    wire_put_u64(&payload, origin->seed);
    wire_put_u64(&payload, origin->time_ms);
    put_frame(buffer, FRAME_ORIGIN, &payload);
}

void spool_encode_gpu(const struct spool_origin *origin, const struct gpu_result *gpu,
                      struct strbuf *buffer)
{
    struct strbuf payload = {0};
    put_origin(buffer, origin);
    gpu_result_encode(gpu, &payload);
    put_frame(buffer, FRAME_GPU, &payload);
}

/* Identity and rank; nothing is measured yet. */
static void put_gpus(struct strbuf *buffer, const struct gpu_result *gpus, size_t count)
{
    wire_put_u32(buffer, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        wire_put_text(buffer, gpus[i].uuid);
        wire_put_text(buffer, gpus[i].node);
        wire_put_text(buffer, gpus[i].pci);
        wire_put_u32(buffer, (uint32_t)gpus[i].index);
        wire_put_u32(buffer, (uint32_t)gpus[i].rank);
        wire_put_text(buffer, gpus[i].name);
        wire_put_text(buffer, gpus[i].model_key);
        wire_put_u32(buffer, (uint32_t)gpus[i].status);
        wire_put_text(buffer, gpus[i].reason);
        wire_put_u32(buffer, gpus[i].gpus_given);
    }
}

static void put_texts(struct strbuf *buffer, char *const *texts, size_t count)
{
    wire_put_u32(buffer, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        wire_put_text(buffer, texts[i]);
}

void spool_encode_survey(const struct spool_origin *origin, const struct spool_survey *survey,
                         struct strbuf *buffer)
{
    struct strbuf payload = {0};
    put_origin(buffer, origin);
    put_texts(&payload, survey->command, survey->command_count);
    wire_put_text(&payload, survey->config_name);
    wire_put_text(&payload, survey->config_text);
    wire_put_u32(&payload, survey->ranks);
    wire_put_u32(&payload, survey->nodes);
    wire_put_u32(&payload, survey->lost_ranks);
    put_texts(&payload, survey->bare_nodes, survey->bare_count);
    put_gpus(&payload, survey->expected, survey->expected_count);
    put_gpus(&payload, survey->unknown, survey->unknown_count);
    wire_put_u32(&payload, survey->apart);
    wire_put_u32(&payload, survey->rank);
    put_frame(buffer, FRAME_SURVEY, &payload);
}

static char *get_text(struct wire_reader *reader)
{
    char *text = wire_get_text(reader);
    reader->bad |= !text;
    return text;
}

int spool_decode_origin(const struct frame *frame, struct spool_origin *origin, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    if (frame->type != FRAME_ORIGIN)
        return err_set(err, -EBADMSG, "it does not say which survey it belongs to");
    origin->survey = get_text(&reader);
    origin->version = get_text(&reader);
    origin->backend = get_text(&reader);
    origin->seed = wire_get_u64(&reader);
    origin->time_ms = wire_get_u64(&reader);
    return wire_end(&reader, "origin", err);
}

static void get_gpu(struct wire_reader *reader, struct gpu_result *out)
{
    out->uuid = wire_get_text(reader);
    out->node = wire_get_text(reader);
    out->pci = wire_get_text(reader);
    out->index = (int32_t)wire_get_u32(reader);
    out->rank = (int32_t)wire_get_u32(reader);
    out->name = wire_get_text(reader);
    out->model_key = wire_get_text(reader);
    out->status = (enum gpu_status)wire_get_enum(reader, GPU_STATUS_COUNT);
    out->reason = wire_get_text(reader);
    out->gpus_given = wire_get_u32(reader);
}

static void get_gpus(struct wire_reader *reader, bool known, struct gpu_result **out_gpus,
                     size_t *out_count)
{
    uint32_t count = wire_get_count(reader, GPU_BYTES);
    struct gpu_result *gpus = mem_array(count, sizeof *gpus);
    if (!gpus)
        wire_no_memory(reader);
    *out_gpus = gpus;
    for (; !reader->bad && *out_count < count; ++*out_count) {
        get_gpu(reader, &gpus[*out_count]);
        reader->bad |= known != (gpus[*out_count].uuid != NULL);
    }
}

static void get_texts(struct wire_reader *reader, char ***out_texts, size_t *out_count)
{
    uint32_t count = wire_get_count(reader, TEXT_BYTES);
    char **texts = mem_array(count, sizeof *texts);
    if (!texts)
        wire_no_memory(reader);
    *out_texts = texts;
    for (; !reader->bad && *out_count < count; ++*out_count)
        texts[*out_count] = get_text(reader);
}

static int get_survey(const struct frame *frame, struct spool_survey *survey, struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    get_texts(&reader, &survey->command, &survey->command_count);
    survey->config_name = get_text(&reader);
    survey->config_text = get_text(&reader);
    survey->ranks = wire_get_u32(&reader);
    survey->nodes = wire_get_u32(&reader);
    survey->lost_ranks = wire_get_u32(&reader);
    get_texts(&reader, &survey->bare_nodes, &survey->bare_count);
    get_gpus(&reader, true, &survey->expected, &survey->expected_count);
    get_gpus(&reader, false, &survey->unknown, &survey->unknown_count);
    if (!reader.bad && reader.position < reader.length) { /* files of version 0.1.0 end here */
        survey->apart = wire_get_u32(&reader);
        survey->rank = wire_get_u32(&reader);
    }
    reader.bad |= survey->ranks > RANKS_MAX || (survey->apart && survey->rank >= survey->ranks);
    return wire_end(&reader, "survey", err);
}

int spool_decode_body(const struct frame *frame, struct spool_file *file, struct err *err)
{
    if (frame->type == FRAME_SURVEY) {
        file->kind = SPOOL_SURVEY;
        return get_survey(frame, &file->survey, err);
    }
    if (frame->type != FRAME_GPU)
        return err_set(err, -EBADMSG, "contains neither a GPU nor a survey");
    file->kind = SPOOL_GPU;
    int rc = gpu_result_decode(frame->payload, frame->length, &file->gpu, err);
    if (!rc && !file->gpu.uuid)
        rc = err_set(err, -EBADMSG, "its GPU has no UUID");
    return rc;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static void free_gpus(struct gpu_result *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gpu_result_fini(&gpus[i]);
    free(gpus);
}

void spool_file_fini(struct spool_file *file)
{
    struct spool_survey *survey = &file->survey;
    free(file->origin.survey);
    free(file->origin.version);
    free(file->origin.backend);
    gpu_result_fini(&file->gpu);
    free_texts(survey->command, survey->command_count);
    free(survey->config_name);
    free(survey->config_text);
    free_texts(survey->bare_nodes, survey->bare_count);
    free_gpus(survey->expected, survey->expected_count);
    free_gpus(survey->unknown, survey->unknown_count);
    memset(file, 0, sizeof *file);
}
