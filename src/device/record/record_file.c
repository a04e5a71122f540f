/* The file of a record while rank 0 writes it, part by part. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/new_file.h"
#include "device/record/entry.h"
#include "device/record/record_read.h"
#include "inventory/gpu_result.h"

struct record_file {
    struct new_file file;
    uint64_t written;
    struct err failed; /* code 0: not failed */
};

size_t record_body_whole(const char *data, size_t length, bool *out_closed)
{
    struct record_entry entry = {0};
    struct err ignored = {0};
    size_t position = 0;
    *out_closed = false;
    while (entry_next(data, length, 0, &position, &entry, &ignored) > 0)
        *out_closed = entry.type == ENTRY_CLOSE;
    return position;
}

static const struct schema_field provenance_rows[] = {
    {"version", FIELD_TEXT(struct record_provenance, version)},
    {"date", FIELD_TEXT(struct record_provenance, date), .flags = SCHEMA_NULL},
    {"host", FIELD_TEXT(struct record_provenance, host), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_NODE},
    {"backend", FIELD_TEXT(struct record_provenance, backend)},
    {"command", FIELD_TEXTS(struct record_provenance, command, command_count)},
    {"seed", FIELD_U64(struct record_provenance, seed)},
    {"profile", FIELD_U32(struct record_provenance, profile)},
    {"probes", FIELD_TEXT(struct record_provenance, probes), .flags = SCHEMA_NULL},
    {"measure_busy", FIELD_BOOL(struct record_provenance, measure_busy)},
    {"config", FIELD_TEXT(struct record_provenance, config)},
    {"config_text", FIELD_TEXT(struct record_provenance, config_text)},
    {"ranks", FIELD_U32(struct record_provenance, ranks)},
};
const struct schema record_provenance_schema = {
    .name = "provenance", .size = sizeof(struct record_provenance), SCHEMA_FIELDS(provenance_rows)};

#define FIELD_STATUS(s, member)                                                                    \
    .type = SCHEMA_ENUM, .name_count = GPU_STATUS_COUNT, .offset = offsetof(s, member)
static const struct schema_field gpu_rows[] = {
    {"uuid", FIELD_TEXT(struct record_gpu, gpu.uuid), .privacy = SCHEMA_PRIVATE_GPU},
    {"node", FIELD_TEXT(struct record_gpu, gpu.node), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_NODE},
    {"pci", FIELD_TEXT(struct record_gpu, gpu.pci), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_SLOT},
    {"index", FIELD_I32(struct record_gpu, gpu.index)},
    {"name", FIELD_TEXT(struct record_gpu, gpu.name), .flags = SCHEMA_NULL},
    {"model_key", FIELD_TEXT(struct record_gpu, gpu.model_key), .flags = SCHEMA_NULL},
    {"rank", FIELD_I32(struct record_gpu, gpu.rank)},
    {"status", FIELD_STATUS(struct record_gpu, gpu.status)},
    {"reason", FIELD_TEXT(struct record_gpu, gpu.reason), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    {"first_status", FIELD_STATUS(struct record_gpu, gpu.run.first_status)},
    {"first_reason", FIELD_TEXT(struct record_gpu, gpu.run.first_reason), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    {"gpus_allocated", FIELD_U32(struct record_gpu, gpu.run.gpus_allocated)},
    {"closed", FIELD_BOOL(struct record_gpu, closed)},
    {"body_bytes", FIELD_U64(struct record_gpu, body_bytes)},
};
const struct schema record_gpu_schema = {
    .name = "gpu", .size = sizeof(struct record_gpu), SCHEMA_FIELDS(gpu_rows)};

static const struct schema_field unknown_rows[] = {
    {"node", FIELD_TEXT(struct gpu_result, node), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_NODE},
    {"rank", FIELD_I32(struct gpu_result, rank)},
    {"status", FIELD_STATUS(struct gpu_result, status)},
    {"reason", FIELD_TEXT(struct gpu_result, reason), .flags = SCHEMA_NULL,
     .privacy = SCHEMA_PRIVATE_TEXT},
    {"gpus_allocated", FIELD_U32(struct gpu_result, run.gpus_allocated)},
};
static const struct schema unknown_schema = {
    .name = "unknown", .size = sizeof(struct gpu_result), SCHEMA_FIELDS(unknown_rows)};
static const struct schema_field survey_rows[] = {
    {"nodes", FIELD_U32(struct record_survey, nodes)},
    {"lost_ranks", FIELD_U32(struct record_survey, lost_ranks)},
    {"bare_nodes", FIELD_TEXTS(struct record_survey, bare_nodes, bare_count),
     .privacy = SCHEMA_PRIVATE_NODE},
    {"unknown",
     FIELD_LIST(struct record_survey, unknown, unknown_count, struct gpu_result, &unknown_schema)},
};
const struct schema record_survey_schema = {
    .name = "survey", .size = sizeof(struct record_survey), SCHEMA_FIELDS(survey_rows)};

void record_provenance_fini(struct record_provenance *provenance)
{
    schema_fini(&record_provenance_schema, provenance);
}

void record_survey_fini(struct record_survey *survey)
{
    schema_fini(&record_survey_schema, survey);
}

static void put_part(struct strbuf *buffer, enum entry_type type, const struct schema *schema,
                     const void *part)
{
    struct strbuf payload = {0};
    schema_encode(schema, part, &payload);
    entry_write(buffer, type, &payload);
    strbuf_fini(&payload);
}

void record_put_gpu(struct strbuf *buffer, const struct gpu_result *gpu, uint32_t session,
                    const char *body, size_t body_bytes, bool closed)
{
    const struct record_gpu head = {.gpu = *gpu, .closed = closed, .body_bytes = body_bytes};
    put_part(buffer, session ? ENTRY_GPU_AGAIN : ENTRY_GPU, &record_gpu_schema, &head);
    strbuf_append(buffer, body, body_bytes);
}

int record_file_append(struct record_file *file, const char *part, size_t length, struct err *err)
{
    if (!file->failed.code && new_file_append(&file->file, part, length, &file->failed) == 0) {
        file->written += length;
        return 0;
    }
    *err = file->failed;
    return err->code;
}

static int file_append(struct record_file *file, struct strbuf *bytes, struct err *err)
{
    int rc = record_file_append(file, bytes->data, bytes->length, err);
    strbuf_fini(bytes);
    return rc;
}

int record_file_create(const char *path, const struct record_provenance *provenance,
                       struct record_file **out_file, struct err *err)
{
    struct record_file *file = mem_array(1, sizeof *file);
    struct strbuf head = {0};
    int rc = new_file_create(path, &file->file, err);
    if (rc) {
        free(file);
        return rc;
    }
    strbuf_append(&head, record_magic, sizeof record_magic);
    wire_put_u32(&head, RECORD_VERSION);
    put_part(&head, ENTRY_PROVENANCE, &record_provenance_schema, provenance);
    rc = file_append(file, &head, err);
    if (rc)
        record_file_destroy(file);
    else
        *out_file = file;
    return rc;
}

int record_file_finish(struct record_file *file, const struct record_survey *survey,
                       struct err *err)
{
    struct strbuf tail = {0}, end = {0};
    put_part(&tail, ENTRY_SURVEY, &record_survey_schema, survey);
    wire_put_u64(&end, file->written + tail.length); /* bytes before it */
    entry_write(&tail, ENTRY_END, &end);
    strbuf_fini(&end);
    int rc = file_append(file, &tail, err);
    return rc ? rc : new_file_finish(&file->file, err);
}

void record_file_destroy(struct record_file *file)
{
    if (file)
        new_file_fini(&file->file);
    free(file);
}
