/* Writing an inventory so that a reader never sees half a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "inventory/inventory.h"

/* Creates a file of a name that nobody has, beside `path`: rename works only inside one file
 * system. The name says whose it is, in case a crash leaves it behind. */
static int create_beside(const char *path, char **out_name, struct err *err)
{
    enum { ATTEMPTS = 100 };
    for (int i = 0; i < ATTEMPTS; i++) {
        char *name = str_format("%s.tmp.%ld.%d", path, (long)getpid(), i);
        if (!name)
            return err_no_memory(err);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            *out_name = name;
            return fd;
        }
        int code = -errno;
        free(name);
        if (code != -EEXIST)
            return err_set_at(err, code, path, 0, 0, "cannot create a file in its folder: %s",
                              strerror(-code));
    }
    return err_set_at(err, -EEXIST, path, 0, 0, "cannot find a free temporary name beside it");
}

/* The rename itself must survive a crash too. Some file systems refuse to sync a folder: the
 * inventory is complete and in its place then, so that is no failure. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? str_copy_n(path, (size_t)(slash - path) + 1) : str_copy(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

/* Writing through a symbolic link replaces what it points to, not the link. */
static char *resolve(const char *path)
{
    struct stat info;
    char *target = NULL;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        target = realpath(path, NULL);
    return target ? target : str_copy(path);
}

static int write_regular(const char *path, const struct strbuf *text, struct err *err)
{
    char *name = NULL;
    int fd = create_beside(path, &name, err);
    if (fd < 0)
        return fd;
    int rc = io_write_all(fd, text->data, text->length);
    if (!rc && fsync(fd))
        rc = -errno;
    if (close(fd) && !rc)
        rc = -errno;
    if (rc)
        err_set_at(err, rc, path, 0, 0, "cannot write: %s", strerror(-rc));
    else if (rename(name, path)) {
        rc = -errno;
        err_set_at(err, rc, path, 0, 0, "cannot put the new file in its place: %s", strerror(-rc));
    }
    if (rc)
        unlink(name);
    else
        sync_folder(path);
    free(name);
    return rc;
}

/* A pipe or a device (/dev/stdout, /dev/null) cannot be renamed over. */
static int write_special(const char *path, const struct strbuf *text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    int rc = fd < 0 ? -errno : io_write_all(fd, text->data, text->length);
    if (fd >= 0 && close(fd) && !rc)
        rc = -errno;
    if (rc)
        err_set_at(err, rc, path, 0, 0, "cannot write: %s", strerror(-rc));
    return rc;
}

static int write_path(const char *path, const struct strbuf *text, struct err *err)
{
    struct stat info;
    if (!*path)
        return err_set(err, -EINVAL, "the output file's name is empty");
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return err_set_at(err, -EISDIR, path, 0, 0, "is a folder, expected a file to write");
    if (exists && !S_ISREG(info.st_mode))
        return write_special(path, text, err);
    if (exists && access(path, W_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot write: %s", strerror(errno));
    char *target = resolve(path);
    if (!target)
        return err_no_memory(err);
    int rc = write_regular(target, text, err);
    free(target);
    return rc;
}

int inventory_write_file(const struct inventory *inventory, const char *path, struct err *err)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc;
    if (text.failed)
        rc = err_no_memory(err);
    else if (strcmp(path, "-") == 0) {
        rc = io_write_all(STDOUT_FILENO, text.data, text.length);
        if (rc)
            err_set(err, rc, "cannot write to standard output: %s", strerror(-rc));
    } else
        rc = write_path(path, &text, err);
    strbuf_fini(&text);
    return rc;
}
