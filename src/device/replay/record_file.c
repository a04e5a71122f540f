/* The file of a record while rank 0 writes it, part by part. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/new_file.h"
#include "device/replay/parts.h"

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

int record_file_append(struct record_file *file, const char *part, size_t length, struct err *err)
{
    if (!file->failed.code && new_file_append(&file->file, part, length, &file->failed) == 0) {
        file->written += length;
        return 0;
    }
    *err = file->failed;
    return err->code;
}

static int append(struct record_file *file, struct strbuf *bytes, struct err *err)
{
    int rc = bytes->failed ? err_no_memory(err)
                           : record_file_append(file, bytes->data, bytes->length, err);
    strbuf_fini(bytes);
    return rc;
}

int record_file_create(const char *path, const struct record_provenance *provenance,
                       struct record_file **out_file, struct err *err)
{
    struct record_file *file = mem_array(1, sizeof *file);
    struct strbuf head = {0};
    int rc = file ? new_file_create(path, &file->file, err) : err_no_memory(err);
    if (rc) {
        free(file);
        return rc;
    }
    strbuf_append(&head, replay_magic, sizeof replay_magic);
    wire_put_u32(&head, RECORD_VERSION);
    parts_put_provenance(&head, provenance);
    rc = append(file, &head, err);
    if (rc)
        record_file_destroy(file);
    else
        *out_file = file;
    return rc;
}

int record_file_finish(struct record_file *file, const struct record_survey *survey,
                       struct err *err)
{
    struct strbuf tail = {0};
    parts_put_survey(&tail, survey);
    parts_put_end(&tail, file->written + tail.length);
    int rc = append(file, &tail, err);
    return rc ? rc : new_file_finish(&file->file, err);
}

void record_file_destroy(struct record_file *file)
{
    if (file)
        new_file_fini(&file->file);
    free(file);
}
