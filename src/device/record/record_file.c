/* The file of a record: its parts, how rank 0 writes them one by one, and how they are read: magic,
 * version, entries in their order, nothing after the end. */
#include "device/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/new_file.h"
#include "base/sort.h"
#include "device/record/entry.h"
#include "inventory/gpu_result.h"
#include "schema/wire.h"

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

struct record_file {
    struct new_file file;
    uint64_t written;
    struct err failed; /* code 0: not failed */
};

static void record_put_part(struct strbuf *buffer, enum entry_type type,
                            const struct schema *schema, const void *part)
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
    record_put_part(buffer, session ? ENTRY_GPU_AGAIN : ENTRY_GPU, &record_gpu_schema, &head);
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

/* Releases the bytes. */
static int record_file_take(struct record_file *file, struct strbuf *bytes, struct err *err)
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
    record_put_part(&head, ENTRY_PROVENANCE, &record_provenance_schema, provenance);
    rc = record_file_take(file, &head, err);
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
    record_put_part(&tail, ENTRY_SURVEY, &record_survey_schema, survey);
    wire_put_u64(&end, file->written + tail.length); /* bytes before it */
    entry_write(&tail, ENTRY_END, &end);
    strbuf_fini(&end);
    int rc = record_file_take(file, &tail, err);
    return rc ? rc : new_file_finish(&file->file, err);
}

void record_file_destroy(struct record_file *file)
{
    if (file)
        new_file_fini(&file->file);
    free(file);
}

struct record {
    char *path;
    int fd;
    uint64_t file_bytes;
    struct record_provenance provenance;
    struct record_survey survey;
    struct record_gpu *parts; /* GPUs and sessions, in the order of the file */
    size_t part_count, part_capacity;
    const struct record_gpu **gpus; /* the parts of the first session */
    size_t gpu_count;
    const struct record_gpu **sorted; /* all parts, by UUID and session */
};

/* Appends `length` bytes from `offset` on. The caller has checked that the file has them. */
static int record_read_at(const struct record *record, uint64_t offset, size_t length,
                          struct strbuf *out_bytes, struct err *err)
{
    char *block = mem_array(length + 1, 1);
    size_t have = 0;
    int rc = 0;
    while (have < length) {
        ssize_t n = pread(record->fd, block + have, length - have, (off_t)(offset + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = err_set(err, -errno, "cannot read: %s", strerror(errno));
            goto out;
        }
        if (n == 0) {
            rc = err_set(err, -EINVAL, "byte %llu: the file became shorter while it was read",
                         (unsigned long long)(offset + have));
            goto out;
        }
        have += (size_t)n;
    }
    strbuf_append(out_bytes, block, length);
out:
    free(block);
    return rc;
}

static uint64_t record_rest(const struct record *record, uint64_t offset)
{
    return record->file_bytes - offset;
}

/* Reads the entry at *offset into `buffer` and moves *offset behind it. */
static int record_read_entry(const struct record *record, uint64_t *offset, struct strbuf *buffer,
                             struct record_entry *out_entry, struct err *err)
{
    unsigned long long here = *offset;
    uint64_t span = 0, left = record_rest(record, *offset);
    size_t position = 0;
    buffer->length = 0;
    int rc = record_read_at(record, *offset, left < ENTRY_HEAD_MAX ? (size_t)left : ENTRY_HEAD_MAX,
                            buffer, err);
    if (rc)
        return rc;
    rc = entry_span(buffer->data ? buffer->data : "", buffer->length, &span);
    if (rc < 0)
        return err_set(err, -EINVAL, "byte %llu: damaged: expected type and length of an entry",
                       here);
    if (rc == 0 || span > left)
        return err_set(err, -EINVAL,
                       "byte %llu: cut off: expected an entry, the file has %llu bytes", here,
                       (unsigned long long)record->file_bytes);
    buffer->length = 0;
    rc = record_read_at(record, *offset, (size_t)span, buffer, err);
    if (rc)
        return rc;
    if (entry_next(buffer->data, buffer->length, *offset, &position, out_entry, err) < 0)
        return -EINVAL;
    *offset += span;
    return 0;
}

static int record_misplaced(uint64_t offset, const char *expected, const struct record_entry *entry,
                            struct err *err)
{
    return err_set(err, -EINVAL, "byte %llu: expected %s, found an entry of type %u",
                   (unsigned long long)offset, expected, entry->type);
}

/* Call after reading an entry: 0 if all of it was read and valid, else -EINVAL. */
static int record_check_values(const struct record_entry *entry, uint64_t offset, const char *what,
                               struct err *err)
{
    if (wire_end(&entry->values, what, NULL))
        return err_set(err, -EINVAL, "byte %llu: malformed %s", (unsigned long long)offset, what);
    return 0;
}

static int record_check_head(const struct strbuf *head, struct err *err)
{
    if (memcmp(head->data, record_magic, RECORD_MAGIC_BYTES) != 0)
        return err_set(err, -EINVAL,
                       "byte 0: not a record: the first %d bytes are not those of a record",
                       RECORD_MAGIC_BYTES);
    struct wire_reader reader = {.data = (const unsigned char *)head->data,
                                 .length = head->length,
                                 .position = RECORD_MAGIC_BYTES};
    uint32_t version = wire_get_u32(&reader);
    if (version != RECORD_VERSION)
        return err_set(err, -EINVAL,
                       "byte %d: a record of version %u, expected %d: another version of the "
                       "program wrote it",
                       RECORD_MAGIC_BYTES, version, RECORD_VERSION);
    return 0;
}

static int record_read_head(const struct record *record, struct err *err)
{
    struct strbuf head = {0};
    if (record->file_bytes < RECORD_HEAD_BYTES)
        return err_set(err, -EINVAL, "byte 0: not a record: %llu bytes, expected at least %d",
                       (unsigned long long)record->file_bytes, RECORD_HEAD_BYTES);
    int rc = record_read_at(record, 0, RECORD_HEAD_BYTES, &head, err);
    if (!rc)
        rc = record_check_head(&head, err);
    strbuf_fini(&head);
    return rc;
}

static int record_take_gpu(struct record *record, struct record_entry *entry, uint64_t here,
                           uint64_t *offset, struct err *err)
{
    record->parts = mem_grow(record->parts, &record->part_capacity, record->part_count + 1,
                             sizeof *record->parts);
    struct record_gpu *gpu = &record->parts[record->part_count++];
    *gpu = (struct record_gpu){.session = entry->type == ENTRY_GPU_AGAIN};
    schema_decode(&record_gpu_schema, &entry->values, gpu);
    entry->values.bad |= gpu->body_bytes > RECORD_BODY_MAX;
    int rc = record_check_values(entry, here, "head of a GPU", err);
    if (rc)
        return rc;
    if (gpu->body_bytes > record_rest(record, *offset))
        return err_set(err, -EINVAL, "byte %llu: cut off: expected %llu bytes of %s",
                       (unsigned long long)*offset, (unsigned long long)gpu->body_bytes,
                       gpu->gpu.uuid);
    gpu->body_offset = *offset;
    *offset += gpu->body_bytes;
    return 0;
}

static int record_take_end(const struct record *record, struct record_entry *entry, uint64_t here,
                           uint64_t offset, struct err *err)
{
    uint64_t said = wire_get_u64(&entry->values);
    if (entry->type != ENTRY_END)
        return record_misplaced(here, "the end", entry, err);
    entry->values.bad |= said != here;
    int rc = record_check_values(entry, here, "end: something is missing before it", err);
    if (rc)
        return rc;
    if (offset != record->file_bytes)
        return err_set(err, -EINVAL, "byte %llu: expected nothing behind the end",
                       (unsigned long long)offset);
    return 0;
}

static int record_read_parts(struct record *record, struct strbuf *buffer, struct err *err)
{
    struct record_entry entry = {0};
    uint64_t offset = RECORD_HEAD_BYTES, here = offset;
    int rc = record_read_entry(record, &offset, buffer, &entry, err);
    if (rc)
        return rc;
    if (entry.type != ENTRY_PROVENANCE)
        return record_misplaced(here, "the provenance", &entry, err);
    schema_decode(&record_provenance_schema, &entry.values, &record->provenance);
    rc = record_check_values(&entry, here, "provenance", err);
    if (rc)
        return rc;
    for (;;) {
        here = offset;
        rc = record_read_entry(record, &offset, buffer, &entry, err);
        if (rc)
            return rc;
        if (entry.type != ENTRY_GPU && entry.type != ENTRY_GPU_AGAIN)
            break;
        rc = record_take_gpu(record, &entry, here, &offset, err);
        if (rc)
            return rc;
    }
    if (entry.type != ENTRY_SURVEY)
        return record_misplaced(here, "a GPU or the survey", &entry, err);
    schema_decode(&record_survey_schema, &entry.values, &record->survey);
    for (size_t i = 0; i < record->survey.unknown_count; i++)
        record->survey.unknown[i].index = -1;
    rc = record_check_values(&entry, here, "survey", err);
    if (rc)
        return rc;
    here = offset;
    rc = record_read_entry(record, &offset, buffer, &entry, err);
    if (rc)
        return rc;
    return record_take_end(record, &entry, here, offset, err);
}

static int by_uuid_and_session(const void *a, const void *b)
{
    const struct record_gpu *left = *(const struct record_gpu *const *)a;
    const struct record_gpu *right = *(const struct record_gpu *const *)b;
    int order = strcmp(left->gpu.uuid, right->gpu.uuid);
    return order ? order : (left->session > right->session) - (left->session < right->session);
}

static int record_sort_gpus(struct record *record, struct err *err)
{
    size_t count = record->part_count;
    record->gpus = mem_array(count, sizeof *record->gpus);
    record->sorted = mem_array(count, sizeof *record->sorted);
    for (size_t i = 0; i < count; i++) {
        const struct record_gpu *part = record->sorted[i] = &record->parts[i];
        if (!part->session)
            record->gpus[record->gpu_count++] = part;
    }
    sort_stable(record->sorted, count, sizeof *record->sorted, by_uuid_and_session);
    for (size_t i = 1; i < count; i++)
        if (by_uuid_and_session(&record->sorted[i - 1], &record->sorted[i]) == 0)
            return err_set(err, -EINVAL, "byte %llu: %s is in the file twice",
                           (unsigned long long)record->sorted[i]->body_offset,
                           record->sorted[i]->gpu.uuid);
    return 0;
}

static int record_open_file(struct record *record, struct err *err)
{
    struct stat info;
    record->fd = open(record->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO does not block */
    if (record->fd < 0 || fstat(record->fd, &info))
        return err_set(err, -errno, "cannot open: %s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return err_set(err, -EINVAL, "is no regular file");
    record->file_bytes = (uint64_t)info.st_size;
    return 0;
}

int record_open(const char *path, struct record **out_record, struct err *err)
{
    struct strbuf buffer = {0};
    struct record *record = mem_array(1, sizeof *record);
    record->fd = -1;
    record->path = str_copy(path);
    int rc = record_open_file(record, err);
    if (rc)
        goto failed;
    rc = record_read_head(record, err);
    if (rc)
        goto failed;
    rc = record_read_parts(record, &buffer, err);
    if (rc)
        goto failed;
    rc = record_sort_gpus(record, err);
    if (rc)
        goto failed;
    strbuf_fini(&buffer);
    *out_record = record;
    return 0;
failed:
    strbuf_fini(&buffer);
    record_blame(record, err);
    record_close(record);
    return rc;
}

const struct record_provenance *record_provenance(const struct record *record)
{
    return &record->provenance;
}

const struct record_survey *record_survey(const struct record *record)
{
    return &record->survey;
}

size_t record_gpu_count(const struct record *record)
{
    return record->gpu_count;
}

const struct record_gpu *record_gpu(const struct record *record, size_t i)
{
    return record->gpus[i];
}

bool record_has_repeats(const struct record *record)
{
    return record->part_count > record->gpu_count;
}

const struct record_gpu *record_find_gpu(const struct record *record, const char *uuid,
                                         uint32_t session)
{
    const struct record_gpu wanted = {.gpu = {.uuid = (char *)uuid}, .session = session};
    const struct record_gpu *key = &wanted;
    const struct record_gpu **found =
        bsearch(&key, record->sorted, record->part_count, sizeof key, by_uuid_and_session);
    return found ? *found : NULL;
}

int record_read_body(const struct record *record, const struct record_gpu *gpu,
                     struct strbuf *out_body, struct err *err)
{
    int rc = record_read_at(record, gpu->body_offset, (size_t)gpu->body_bytes, out_body, err);
    return rc ? record_blame(record, err) : 0;
}

int record_blame(const struct record *record, struct err *err)
{
    const struct err said = *err;
    return err_set_at(err, said.code, record->path, 0, 0, "%s", said.text);
}

void record_close(struct record *record)
{
    if (!record)
        return;
    if (record->fd >= 0)
        close(record->fd);
    record_provenance_fini(&record->provenance);
    record_survey_fini(&record->survey);
    for (size_t i = 0; i < record->part_count; i++)
        schema_fini(&record_gpu_schema, &record->parts[i]);
    free(record->parts);
    free(record->gpus);
    free(record->sorted);
    free(record->path);
    free(record);
}
