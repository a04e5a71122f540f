/* A folder that keeps inventories by date: locked, and each file written completely or not at all;
 * and which of them are worth keeping. */
#include "report/history/history_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/new_file.h"
#include "base/str.h"
#include "report/history/history.h"

/* "20261117T040215Z-0123456789abcdef.yaml": time and hash of the text. */
static const char store_name_pattern[] = "ddddddddTddddddZ-hhhhhhhhhhhhhhhh.yaml";

/* Length of the beginning of `name` that is like the pattern. */
static size_t store_name_length(const char *name)
{
    size_t i = 0;
    for (; store_name_pattern[i] && name[i]; i++) {
        const char *allowed = store_name_pattern[i] == 'd'   ? "0123456789"
                              : store_name_pattern[i] == 'h' ? "0123456789abcdef"
                                                             : NULL;
        if (allowed ? !strchr(allowed, name[i]) : name[i] != store_name_pattern[i])
            break;
    }
    return i;
}

static bool is_store_name(const char *name)
{
    return strlen(name) == sizeof store_name_pattern - 1 &&
           store_name_length(name) == sizeof store_name_pattern - 1;
}

/* What new_file makes before it renames the file. */
static bool is_store_left_over(const char *name)
{
    return store_name_length(name) == sizeof store_name_pattern - 1 &&
           strncmp(name + sizeof store_name_pattern - 1, ".tmp.", 5) == 0;
}

static int store_lock(const struct history_store *store, int command)
{
    struct flock range = {.l_type = store->writes ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    int rc;
    do
        rc = fcntl(store->fd, command, &range) ? -errno : 0;
    while (rc == -EINTR);
    return rc;
}

/* The kernel releases the lock of a process that ends, so waiting needs no limit. */
static int store_wait_for_lock(const struct history_store *store, struct err *err)
{
    int rc = store_lock(store, F_OFD_SETLK);
    if (rc == -EAGAIN || rc == -EACCES) {
        log_warning("%s is in use by another process: waiting for it", store->folder);
        rc = store_lock(store, F_OFD_SETLKW);
    }
    return rc ? err_set_at(err, rc, store->folder, 0, 0, "cannot be locked: %s", strerror(-rc)) : 0;
}

int history_store_open(const char *folder, bool writes, struct history_store *out_store,
                       struct err *err)
{
    struct history_store store = {.folder = folder, .writes = writes};
    struct stat info;
    if (writes && mkdir(folder, 0777) && errno != EEXIST)
        return err_set_at(err, -errno, folder, 0, 0, "cannot be made: %s", strerror(errno));
    if (stat(folder, &info))
        return err_set_at(err, -errno, folder, 0, 0, "cannot be read: %s", strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return err_set_at(err, -ENOTDIR, folder, 0, 0, "is not a folder");
    char *path = str_format("%s/.lock", folder);
    store.fd = open(path, (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0666);
    int rc = store.fd < 0 && (writes || errno != ENOENT) ? -errno : 0;
    free(path);
    if (rc)
        return err_set_at(err, rc, folder, 0, 0, "its lock cannot be opened: %s", strerror(-rc));
    if (store.fd >= 0)
        rc = store_wait_for_lock(&store, err);
    if (rc)
        close(store.fd);
    else
        *out_store = store;
    return rc;
}

/* generated is a valid stamp: "2026-11-17T04:02:15Z". */
static char *store_path(const struct history_store *store, const char *generated, const char *text,
                        size_t length)
{
    char stamp[CLOCK_STAMP_MAX];
    size_t count = 0;
    for (const char *at = generated; *at && count < sizeof stamp - 1; at++)
        if (*at != '-' && *at != ':')
            stamp[count++] = *at;
    stamp[count] = '\0';
    return str_format("%s/%s-%016" PRIx64 ".yaml", store->folder, stamp,
                      str_hash_bytes(text, length));
}

int history_store_add(struct history_store *store, const char *generated, const char *text,
                      size_t length, bool *out_is_new, struct err *err)
{
    struct new_file file = {0};
    int64_t time_s;
    if (clock_parse_stamp(generated, &time_s))
        return err_set(err, -EINVAL, "gpumemtopo.generated is not a time in UTC");
    char *path = store_path(store, generated, text, length);
    const bool is_new = access(path, F_OK) != 0;
    int rc = is_new ? new_file_create(path, &file, err) : 0;
    if (is_new && !rc) {
        rc = new_file_append(&file, text, length, err);
        if (!rc)
            rc = new_file_finish(&file, err);
        new_file_fini(&file);
    }
    free(path);
    if (!rc)
        *out_is_new = is_new;
    return rc;
}

static void store_forget_files(struct history_store *store)
{
    for (size_t i = 0; i < store->file_count; i++)
        free(store->files[i]);
    free(store->files);
    store->files = NULL;
    store->file_count = store->others = 0;
}

int history_store_list(struct history_store *store, struct err *err)
{
    struct dirent **entries = NULL;
    store_forget_files(store);
    int count = scandir(store->folder, &entries, NULL, alphasort);
    if (count < 0)
        return err_set_at(err, -errno, store->folder, 0, 0, "cannot be read: %s", strerror(errno));
    store->files = mem_array((size_t)count, sizeof *store->files);
    for (int i = 0; i < count; i++) {
        if (is_store_name(entries[i]->d_name))
            store->files[store->file_count++] =
                str_format("%s/%s", store->folder, entries[i]->d_name);
        else if (is_store_left_over(entries[i]->d_name) && store->writes) {
            char *path = str_format("%s/%s", store->folder, entries[i]->d_name);
            unlink(path); /* if it stays, it only takes room */
            free(path);
        } else if (entries[i]->d_name[0] != '.')
            store->others++;
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int history_store_remove(const char *path, struct err *err)
{
    if (unlink(path) && errno != ENOENT)
        return err_set_at(err, -errno, path, 0, 0, "cannot be removed: %s", strerror(errno));
    return 0;
}

void history_store_close(struct history_store *store)
{
    store_forget_files(store);
    if (store->folder && store->fd >= 0)
        close(store->fd);
    *store = (struct history_store){0};
}

static const int64_t day_s = 86400;

/* Of a GPU in a survey: whether something is wrong with it, and what. */
static int sighting_trouble(const struct history_sighting *sighting)
{
    return sighting->state == HISTORY_OUTLIER      ? 1 + (int)sighting->verdict
           : sighting->state == HISTORY_UNMEASURED ? -1
                                                   : 0;
}

/* A result that was only repeated has the trouble of the one before it. */
static void thin_keep_troubles(const struct history *history, bool *keep)
{
    for (size_t g = 0; g < history->gpu_count; g++) {
        const struct history_gpu *gpu = &history->gpus[g];
        int last = sighting_trouble(&gpu->sightings[0]);
        for (size_t i = 1; i < gpu->count; i++) {
            if (gpu->sightings[i].state == HISTORY_SAME)
                continue;
            int now = sighting_trouble(&gpu->sightings[i]);
            if (now != last)
                keep[gpu->sightings[i - 1].survey] = keep[gpu->sightings[i].survey] = true;
            last = now;
        }
    }
}

/* Surveys with the same number are of the same week, or month. */
static int64_t week_number(int64_t time_s)
{
    return (time_s / day_s + 3) / 7; /* 1970-01-01 was a Thursday */
}

static int64_t month_number(int64_t time_s)
{
    struct tm parts = {0};
    const time_t time = (time_t)time_s;
    gmtime_r(&time, &parts);
    return (int64_t)parts.tm_year * 12 + parts.tm_mon;
}

void history_thin(const struct history *history, bool *out_keep)
{
    const size_t count = history->survey_count;
    int64_t week = INT64_MIN, month = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        const int64_t time_s = history->surveys[i].time_s;
        const int64_t age_s = history->surveys[count - 1].time_s - time_s;
        const bool recent = age_s <= HISTORY_THIN_DAYS * day_s;
        const bool weekly = age_s <= (HISTORY_THIN_DAYS + 7 * HISTORY_THIN_WEEKS) * day_s;
        const bool begins = weekly ? week_number(time_s) != week : month_number(time_s) != month;
        out_keep[i] = !i || i == count - 1 || recent || begins;
        if (out_keep[i]) {
            week = week_number(time_s);
            month = month_number(time_s);
        }
    }
    thin_keep_troubles(history, out_keep);
    for (size_t i = 0; i < history->event_count; i++) {
        const uint32_t survey = history->events[i].survey;
        out_keep[survey] = true;
        if (survey)
            out_keep[survey - 1] = true;
    }
}
