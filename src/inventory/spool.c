/* Spool files: names, writing, reading. A line of text, then two frames: where the file comes from,
 * and what it says. */
#include "inventory/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "inventory/frame.h"
#include "inventory/spool_wire.h"

static const char gpu_prefix[] = "gpu-";
static const char suffix[] = ".spool";
static const char survey_prefix[] = "survey-";
static const char magic[] = "gpumemtopo spool ";

/* Tells the odd names of one folder apart. */
static uint64_t sum_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static bool plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Any `of` gives a name that is fit for a file, and different ones different names. */
static char *path_of(const char *folder, const char *prefix, const char *of)
{
    enum { NAME_MAX_CHARS = 100 };
    char name[NAME_MAX_CHARS + 1];
    size_t length = 0;
    bool odd = false;
    for (const char *c = of; *c && length < NAME_MAX_CHARS; c++) {
        odd |= !plain(*c);
        name[length++] = plain(*c) ? *c : '_';
    }
    name[length] = '\0';
    odd |= length != strlen(of) || !length;
    if (odd)
        return str_format("%s/%s%s-%016llx%s", folder, prefix, name, (unsigned long long)sum_of(of),
                          suffix);
    return str_format("%s/%s%s%s", folder, prefix, name, suffix);
}

char *spool_gpu_path(const char *folder, const char *uuid)
{
    return path_of(folder, gpu_prefix, uuid);
}

static int write_file(const char *path, const struct strbuf *bytes, struct err *err)
{
    struct new_file file = {0};
    char line[sizeof magic + 16];
    int length = snprintf(line, sizeof line, "%s%d\n", magic, SPOOL_SCHEMA);
    int rc = bytes->failed || !path ? err_no_memory(err) : new_file_create(path, &file, err);
    if (rc)
        return rc;
    rc = new_file_append(&file, line, (size_t)length, err);
    if (!rc)
        rc = new_file_append(&file, bytes->data, bytes->length, err);
    if (!rc)
        rc = new_file_finish(&file, err);
    new_file_fini(&file);
    return rc;
}

int spool_write_gpu(const char *folder, const struct spool_origin *origin,
                    const struct gpu_result *gpu, struct err *err)
{
    struct strbuf bytes = {0};
    char *path = spool_gpu_path(folder, gpu->uuid);
    spool_encode_gpu(origin, gpu, &bytes);
    int rc = write_file(path, &bytes, err);
    strbuf_fini(&bytes);
    free(path);
    return rc;
}

int spool_write_survey(const char *folder, const struct spool_origin *origin,
                       const struct spool_survey *survey, struct err *err)
{
    struct strbuf bytes = {0};
    char *path = path_of(folder, survey_prefix, origin->survey);
    spool_encode_survey(origin, survey, &bytes);
    int rc = write_file(path, &bytes, err);
    strbuf_fini(&bytes);
    free(path);
    return rc;
}

static void remove_path(char *path)
{
    if (path)
        unlink(path);
    free(path);
}

void spool_remove_gpu(const char *folder, const char *uuid)
{
    remove_path(spool_gpu_path(folder, uuid));
}

void spool_remove_survey(const char *folder, const char *survey)
{
    remove_path(path_of(folder, survey_prefix, survey));
}

bool spool_is_name(const char *name)
{
    size_t length = strlen(name), tail = sizeof suffix - 1;
    bool known = strncmp(name, gpu_prefix, sizeof gpu_prefix - 1) == 0 ||
                 strncmp(name, survey_prefix, sizeof survey_prefix - 1) == 0;
    return known && length > tail && strcmp(name + length - tail, suffix) == 0;
}

bool spool_begins(const void *data, size_t length)
{
    return length >= sizeof magic - 1 && memcmp(data, magic, sizeof magic - 1) == 0;
}

/* The first line: who it is by, and by which version of the format. Length of the line. */
static int read_line(const char *data, size_t length, size_t *out_length, struct err *err)
{
    const char *number = data + sizeof magic - 1;
    const char *end =
        spool_begins(data, length) ? memchr(number, '\n', length - (size_t)(number - data)) : NULL;
    char *text = end ? str_copy_n(number, (size_t)(end - number)) : NULL;
    uint64_t schema = 0;
    int bad = str_parse_u64(text, &schema);
    free(text);
    if (bad)
        return err_set(err, -EBADMSG, "not a spool file");
    if (schema != SPOOL_SCHEMA)
        return err_set(err, -ENOTSUP,
                       "a spool file of schema %llu, this program knows %d: read it with the "
                       "gpumemtopo that wrote it",
                       (unsigned long long)schema, SPOOL_SCHEMA);
    *out_length = (size_t)(end - data) + 1;
    return 0;
}

static int next_frame(struct frame_reader *reader, struct frame *out_frame, struct err *err)
{
    int rc = frame_reader_next(reader, out_frame, err);
    return rc > 0 ? 0 : rc < 0 ? rc : err_set(err, -EBADMSG, "it is cut off");
}

static int read_frames(struct frame_reader *reader, struct spool_file *file, struct err *err)
{
    struct frame frame;
    int rc = next_frame(reader, &frame, err);
    if (!rc)
        rc = spool_decode_origin(&frame, &file->origin, err);
    if (!rc)
        rc = next_frame(reader, &frame, err);
    if (!rc)
        rc = spool_decode_body(&frame, file, err);
    if (!rc && frame_reader_pending(reader))
        rc = err_set(err, -EBADMSG, "more follows behind its end");
    return rc;
}

int spool_read(const void *data, size_t length, const char *name, struct spool_file *out_file,
               struct err *err)
{
    struct frame_reader reader = {0};
    struct spool_file file = {0};
    size_t line = 0;
    int rc = read_line(data, length, &line, err);
    if (!rc && frame_reader_add(&reader, (const char *)data + line, length - line))
        rc = err_no_memory(err);
    if (!rc)
        rc = read_frames(&reader, &file, err);
    frame_reader_fini(&reader);
    if (rc) {
        spool_file_fini(&file);
        if (rc != -ENOMEM)
            err_prefix(err, "%s", name);
        return rc;
    }
    *out_file = file;
    return 0;
}
