/* Spool files: names, writing, reading. A file is a line of text, then two frames: its origin, and
 * its content. */
#include "inventory/wire/spool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/yaml.h"
#include "inventory/wire/frame.h"
#include "schema/schema.h"

static const char gpu_prefix[] = "gpu-";
static const char suffix[] = ".spool";
static const char survey_prefix[] = "survey-";
static const char rank_infix[] = "-rank-"; /* in the name of the plan of one rank */
static const char magic[] = "gpumemtopo spool ";

enum spool_frame { FRAME_ORIGIN = 1, FRAME_GPU, FRAME_SURVEY };

/* A file with more ranks is refused: they would only cost time and memory. */
enum { RANKS_MAX = 1 << 20 };

static const struct schema_field origin_fields[] = {
    {"survey", FIELD_TEXT(struct spool_origin, survey)},
    {"version", FIELD_TEXT(struct spool_origin, version)},
    {"backend", FIELD_TEXT(struct spool_origin, backend)},
    {"seed", FIELD_U64(struct spool_origin, seed)},
    {"time_ms", FIELD_U64(struct spool_origin, time_ms)},
};
const struct schema spool_origin_schema = {
    .name = "origin", .size = sizeof(struct spool_origin), SCHEMA_FIELDS(origin_fields)};

static const struct schema_field plan_fields[] = {
    {"command", FIELD_TEXTS(struct spool_survey, command, command_count)},
    {"config_name", FIELD_TEXT(struct spool_survey, config_name)},
    {"config_text", FIELD_TEXT(struct spool_survey, config_text)},
    {"ranks", FIELD_U32(struct spool_survey, ranks)},
    {"nodes", FIELD_U32(struct spool_survey, nodes)},
    {"lost_ranks", FIELD_U32(struct spool_survey, lost_ranks)},
    {"bare_nodes", FIELD_TEXTS(struct spool_survey, bare_nodes, bare_count)},
    {"expected", FIELD_LIST(struct spool_survey, expected, expected_count, struct gpu_result,
                            &gpu_plan_schema)},
    {"unknown",
     FIELD_LIST(struct spool_survey, unknown, unknown_count, struct gpu_result, &gpu_plan_schema)},
    {"apart", FIELD_BOOL(struct spool_survey, apart)},
    {"rank", FIELD_U32(struct spool_survey, rank)},
};

static bool plan_is_sound(const void *object)
{
    const struct spool_survey *plan = object;
    for (size_t i = 0; i < plan->expected_count; i++)
        if (!plan->expected[i].uuid)
            return false;
    for (size_t i = 0; i < plan->unknown_count; i++)
        if (plan->unknown[i].uuid)
            return false;
    return plan->ranks <= RANKS_MAX && (!plan->apart || plan->rank < plan->ranks);
}

const struct schema spool_plan_schema = {.name = "survey",
                                         .size = sizeof(struct spool_survey),
                                         SCHEMA_FIELDS(plan_fields),
                                         .sound = plan_is_sound};

static bool plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

void spool_plain_name(char *name)
{
    for (; *name; name++)
        *name = plain(*name) ? *name : '-';
}

/* Any `of` gives a valid file name, and different ones give different names. */
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
        return str_format("%s/%s%s-%016llx%s", folder, prefix, name,
                          (unsigned long long)str_hash(of), suffix);
    return str_format("%s/%s%s%s", folder, prefix, name, suffix);
}

char *spool_gpu_path(const char *folder, const char *uuid)
{
    return path_of(folder, gpu_prefix, uuid);
}

char *spool_survey_path(const char *folder, const char *survey)
{
    return path_of(folder, survey_prefix, survey);
}

/* The same for the plan of one rank. */
static char *spool_rank_path(const char *folder, const char *survey, uint32_t rank)
{
    char *name = str_format("%s%s%u", survey, rank_infix, rank);
    char *path = path_of(folder, survey_prefix, name);
    free(name);
    return path;
}

/* A umask that lets a group write would let it change results. Where modes cannot be changed, they
 * mean nothing. */
static void spool_keep_from_others(int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_mode & (S_IWGRP | S_IWOTH))
        (void)fchmod(fd, info.st_mode & 07777 & ~(mode_t)(S_IWGRP | S_IWOTH));
}

/* Writes the origin and the content, which is released. */
static int spool_write_file(const char *path, const struct spool_origin *origin,
                            enum spool_frame type, struct strbuf *content, struct err *err)
{
    struct new_file file = {0};
    struct strbuf bytes = {0}, payload = {0};
    strbuf_printf(&bytes, "%s%d\n", magic, SPOOL_SCHEMA);
    schema_encode_versioned(&spool_origin_schema, origin, &payload);
    frame_write(&bytes, FRAME_ORIGIN, payload.data, payload.length);
    frame_write(&bytes, type, content->data, content->length);
    int rc = bytes.failed || payload.failed || content->failed
                 ? err_set(err, -EFBIG, "%s: too large for a spool file", path)
                 : new_file_create(path, &file, err);
    if (rc)
        goto out;
    spool_keep_from_others(file.fd);
    rc = new_file_append(&file, bytes.data, bytes.length, err);
    if (rc)
        goto out;
    rc = new_file_finish(&file, err);
out:
    new_file_fini(&file);
    strbuf_fini(&bytes);
    strbuf_fini(&payload);
    strbuf_fini(content);
    return rc;
}

int spool_write_gpu(const char *folder, const struct spool_origin *origin,
                    const struct gpu_result *gpu, struct err *err)
{
    struct strbuf content = {0};
    char *path = spool_gpu_path(folder, gpu->uuid);
    gpu_result_encode(gpu, &content);
    int rc = spool_write_file(path, origin, FRAME_GPU, &content, err);
    free(path);
    return rc;
}

int spool_write_survey(const char *folder, const struct spool_origin *origin,
                       const struct spool_survey *survey, struct err *err)
{
    struct strbuf content = {0};
    char *path = survey->apart ? spool_rank_path(folder, origin->survey, survey->rank)
                               : spool_survey_path(folder, origin->survey);
    schema_encode_versioned(&spool_plan_schema, survey, &content);
    int rc = spool_write_file(path, origin, FRAME_SURVEY, &content, err);
    free(path);
    return rc;
}

bool spool_is_name(const char *name)
{
    size_t length = strlen(name), tail = sizeof suffix - 1;
    bool known = strncmp(name, gpu_prefix, sizeof gpu_prefix - 1) == 0 ||
                 strncmp(name, survey_prefix, sizeof survey_prefix - 1) == 0;
    return known && length > tail && strcmp(name + length - tail, suffix) == 0;
}

/* Calls `see` with the name of each spool file until it returns false. */
static int each_name(const char *path, bool (*see)(void *user, DIR *folder, const char *name),
                     void *user)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? 0 : -errno;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (spool_is_name(entry->d_name) && !see(user, folder, entry->d_name))
            break;
    closedir(folder);
    return 0;
}

static bool see_any(void *user, DIR *folder, const char *name)
{
    (void)folder, (void)name;
    *(bool *)user = true;
    return false;
}

bool spool_has_files(const char *folder)
{
    bool found = false;
    each_name(folder, see_any, &found);
    return found;
}

static bool remove_name(void *user, DIR *folder, const char *name)
{
    (void)user;
    unlinkat(dirfd(folder), name, 0);
    return true;
}

void spool_remove_files(const char *folder)
{
    each_name(folder, remove_name, NULL);
}

bool spool_begins(const void *data, size_t length)
{
    return length >= sizeof magic - 1 && memcmp(data, magic, sizeof magic - 1) == 0;
}

/* Checks the first line: the magic word and the version of the format. *out_length: its length. */
static int spool_read_line(const char *data, size_t length, size_t *out_length, struct err *err)
{
    const char *number = data + sizeof magic - 1;
    const char *end =
        spool_begins(data, length) ? memchr(number, '\n', length - (size_t)(number - data)) : NULL;
    size_t digits = end ? (size_t)(end - number) : 0;
    char text[32] = "";
    uint64_t schema = 0;
    if (digits < sizeof text)
        memcpy(text, number, digits);
    if (str_parse_u64(text, &schema))
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

static int decode_frame(const struct frame *frame, const struct schema *schema, void *object,
                        struct err *err)
{
    struct wire_reader reader = frame_values(frame);
    int rc = schema_decode_versioned(schema, &reader, object, err);
    return rc ? rc : wire_end(&reader, schema->name, err);
}

static int spool_read_content(const struct frame *frame, struct spool_file *file, struct err *err)
{
    if (frame->type == FRAME_SURVEY) {
        file->kind = SPOOL_SURVEY;
        return decode_frame(frame, &spool_plan_schema, &file->survey, err);
    }
    if (frame->type != FRAME_GPU)
        return err_set(err, -EBADMSG, "contains neither a GPU nor a survey");
    file->kind = SPOOL_GPU;
    int rc = gpu_result_decode(frame->payload, frame->length, &file->gpu, err);
    if (!rc && !file->gpu.uuid)
        rc = err_set(err, -EBADMSG, "its GPU has no UUID");
    return rc;
}

static int spool_read_frames(struct frame_reader *reader, struct spool_file *file, struct err *err)
{
    struct frame frame;
    int rc = next_frame(reader, &frame, err);
    if (rc)
        return rc;
    if (frame.type != FRAME_ORIGIN)
        return err_set(err, -EBADMSG, "it does not say which survey it belongs to");
    rc = decode_frame(&frame, &spool_origin_schema, &file->origin, err);
    if (rc)
        return rc;
    rc = next_frame(reader, &frame, err);
    if (rc)
        return rc;
    rc = spool_read_content(&frame, file, err);
    if (rc)
        return rc;
    if (frame_reader_pending(reader))
        return err_set(err, -EBADMSG, "has bytes after its end");
    return 0;
}

int spool_read(const void *data, size_t length, const char *name, struct spool_file *out_file,
               struct err *err)
{
    struct frame_reader reader = {0};
    struct spool_file file = {0};
    size_t line = 0;
    int rc = spool_read_line(data, length, &line, err);
    if (!rc) {
        frame_reader_add(&reader, (const char *)data + line, length - line);
        rc = spool_read_frames(&reader, &file, err);
    }
    frame_reader_fini(&reader);
    if (rc) {
        spool_file_fini(&file);
        err_prefix(err, "%s", name);
        return rc;
    }
    *out_file = file;
    return 0;
}

void spool_file_fini(struct spool_file *file)
{
    schema_fini(&spool_origin_schema, &file->origin);
    gpu_result_fini(&file->gpu);
    schema_fini(&spool_plan_schema, &file->survey);
    memset(file, 0, sizeof *file);
}

int spool_read_gpu(const char *folder, const char *survey, const char *uuid,
                   struct gpu_result *out_gpu)
{
    struct strbuf bytes = {0};
    struct spool_file file = {0};
    struct err ignored = {0};
    char *path = spool_gpu_path(folder, uuid);
    struct stat info;
    int rc = yaml_load_text_of(path, &yaml_limits_inventory, &bytes, &info, &ignored);
    if (rc)
        goto out;
    rc = spool_trust_file(path, &info, &ignored);
    if (rc)
        goto out;
    rc = spool_read(bytes.data, bytes.length, path, &file, &ignored);
    if (rc)
        goto out;
    if (file.kind != SPOOL_GPU || !str_equal(file.origin.survey, survey)) {
        rc = -ENOENT;
        goto out;
    }
    *out_gpu = file.gpu;
    memset(&file.gpu, 0, sizeof file.gpu);
out:
    spool_file_fini(&file);
    strbuf_fini(&bytes);
    free(path);
    return rc;
}

struct counting {
    char *plans; /* prefix of the names of plans */
    struct spool_count count;
};

static bool spool_count_name(void *user, DIR *folder, const char *name)
{
    (void)folder;
    struct counting *counting = user;
    counting->count.files++;
    counting->count.plans += strncmp(name, counting->plans, strlen(counting->plans)) == 0;
    return true;
}

int spool_count(const char *folder, const char *survey, struct spool_count *out_count)
{
    struct counting counting = {.plans = str_format("%s%s%s", survey_prefix, survey, rank_infix)};
    int rc = each_name(folder, spool_count_name, &counting);
    free(counting.plans);
    if (!rc)
        *out_count = counting.count;
    return rc;
}

bool spool_has_plan(const char *folder, const char *survey, uint32_t rank)
{
    char *path = spool_rank_path(folder, survey, rank);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

static const mode_t others_write = S_IWGRP | S_IWOTH;

int spool_trust_file(const char *path, const struct stat *read_info, struct err *err)
{
    struct stat info, folder_info;
    if (lstat(path, &info))
        return err_set_at(err, -errno, path, 0, 0, "cannot be looked at: %s", strerror(errno));
    size_t length = (size_t)(str_last_part(path) - path);
    char *folder = length ? str_copy_n(path, length) : str_copy(".");
    int rc = stat(folder, &folder_info) ? -errno : 0;
    free(folder);
    if (rc)
        return err_set_at(err, rc, path, 0, 0, "its folder cannot be looked at: %s", strerror(-rc));
    if (!S_ISREG(info.st_mode))
        return err_set_at(err, -EPERM, path, 0, 0,
                          "is a link or a device: a survey writes plain files into its spool");
    if (info.st_ino != read_info->st_ino || info.st_dev != read_info->st_dev)
        return err_set_at(err, -EPERM, path, 0, 0, "was replaced while it was read");
    info = *read_info;
    if (info.st_uid != geteuid() && info.st_uid != folder_info.st_uid)
        return err_set_at(
            err, -EPERM, path, 0, 0,
            "belongs to user %lu, who is neither you nor the owner of the spool; copy "
            "the file if you trust it",
            (unsigned long)info.st_uid);
    if (info.st_mode & others_write)
        return err_set_at(
            err, -EPERM, path, 0, 0,
            "may be written by other users (mode %04o); copy the file if you trust it",
            (unsigned)(info.st_mode & 07777));
    return 0;
}

int spool_trust_folder(const char *path, struct err *err)
{
    struct stat info;
    if (stat(path, &info))
        return err_set_at(err, -errno, path, 0, 0, "cannot be looked at: %s", strerror(errno));
    if (info.st_uid != geteuid() && info.st_uid)
        return err_set_at(err, -EPERM, path, 0, 0, "belongs to user %lu, who can replace results",
                          (unsigned long)info.st_uid);
    if (info.st_mode & others_write && !(info.st_mode & S_ISVTX))
        return err_set_at(err, -EPERM, path, 0, 0,
                          "may be written by other users, who can remove results (mode %04o)",
                          (unsigned)(info.st_mode & 07777));
    return 0;
}
