/* A folder that keeps inventories by date: locked, and each file written completely or not at all.
 */
#include "report/history/history_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/new_file.h"
#include "base/str.h"

/* "20261117T040215Z-0123456789abcdef.yaml": time and hash of the text. */
static const char pattern[] = "ddddddddTddddddZ-hhhhhhhhhhhhhhhh.yaml";

/* Length of the beginning of `name` that is like the pattern. */
static size_t like_pattern(const char *name)
{
    size_t i = 0;
    for (; pattern[i] && name[i]; i++) {
        const char *allowed = pattern[i] == 'd'   ? "0123456789"
                              : pattern[i] == 'h' ? "0123456789abcdef"
                                                  : NULL;
        if (allowed ? !strchr(allowed, name[i]) : name[i] != pattern[i])
            break;
    }
    return i;
}

static bool is_of_store(const char *name)
{
    return strlen(name) == sizeof pattern - 1 && like_pattern(name) == sizeof pattern - 1;
}

/* What new_file makes before it renames the file. */
static bool is_left_over(const char *name)
{
    return like_pattern(name) == sizeof pattern - 1 &&
           strncmp(name + sizeof pattern - 1, ".tmp.", 5) == 0;
}

static int lock(const struct history_store *store, int command)
{
    struct flock range = {.l_type = store->writes ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
    int rc;
    do
        rc = fcntl(store->fd, command, &range) ? -errno : 0;
    while (rc == -EINTR);
    return rc;
}

/* The kernel releases the lock of a process that ends, so waiting needs no limit. */
static int wait_for_lock(const struct history_store *store, struct err *err)
{
    int rc = lock(store, F_OFD_SETLK);
    if (rc == -EAGAIN || rc == -EACCES) {
        log_warning("%s is in use by another process: waiting for it", store->folder);
        rc = lock(store, F_OFD_SETLKW);
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
    if (!path)
        return err_no_memory(err);
    store.fd = open(path, (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0666);
    int rc = store.fd < 0 && (writes || errno != ENOENT) ? -errno : 0;
    free(path);
    if (rc)
        return err_set_at(err, rc, folder, 0, 0, "its lock cannot be opened: %s", strerror(-rc));
    if (store.fd >= 0)
        rc = wait_for_lock(&store, err);
    if (rc)
        close(store.fd);
    else
        *out_store = store;
    return rc;
}

/* NULL: out of memory. generated is a valid stamp: "2026-11-17T04:02:15Z". */
static char *path_of(const struct history_store *store, const char *generated, const char *text,
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
    char *path = path_of(store, generated, text, length);
    if (!path)
        return err_no_memory(err);
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

static void forget_files(struct history_store *store)
{
    for (size_t i = 0; i < store->file_count; i++)
        free(store->files[i]);
    free(store->files);
    store->files = NULL;
    store->file_count = store->others = 0;
}

static int take_entry(struct history_store *store, const char *name)
{
    if (is_of_store(name)) {
        char *path = str_format("%s/%s", store->folder, name);
        if (!path)
            return -ENOMEM;
        store->files[store->file_count++] = path;
    } else if (is_left_over(name) && store->writes) {
        char *path = str_format("%s/%s", store->folder, name);
        if (!path)
            return -ENOMEM;
        unlink(path); /* if it stays, it only takes room */
        free(path);
    } else if (name[0] != '.')
        store->others++;
    return 0;
}

int history_store_list(struct history_store *store, struct err *err)
{
    struct dirent **entries = NULL;
    forget_files(store);
    int count = scandir(store->folder, &entries, NULL, alphasort);
    if (count < 0)
        return err_set_at(err, -errno, store->folder, 0, 0, "cannot be read: %s", strerror(errno));
    store->files = mem_array((size_t)count, sizeof *store->files);
    int rc = store->files ? 0 : err_no_memory(err);
    for (int i = 0; i < count; i++) {
        if (!rc && take_entry(store, entries[i]->d_name))
            rc = err_no_memory(err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int history_store_remove(const char *path, struct err *err)
{
    if (unlink(path) && errno != ENOENT)
        return err_set_at(err, -errno, path, 0, 0, "cannot be removed: %s", strerror(errno));
    return 0;
}

void history_store_close(struct history_store *store)
{
    forget_files(store);
    if (store->folder && store->fd >= 0)
        close(store->fd);
    *store = (struct history_store){0};
}
