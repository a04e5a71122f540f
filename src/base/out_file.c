/* Writes a complete text to a file, a pipe, a device or stdout. */
#include "base/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/new_file.h"
#include "base/str.h"

static int write_regular(const char *path, const char *data, size_t length, struct err *err)
{
    struct new_file file = {0};
    int rc = new_file_create(path, &file, err);
    if (rc)
        return rc;
    rc = new_file_append(&file, data, length, err);
    if (!rc)
        rc = new_file_finish(&file, err);
    new_file_fini(&file);
    return rc;
}

/* A pipe or a device (/dev/stdout, /dev/null) cannot be renamed over. */
static int write_special(const char *path, const char *data, size_t length, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    int rc = fd < 0 ? -errno : io_write_all(fd, data, length);
    if (fd >= 0 && close(fd) && !rc)
        rc = -errno;
    if (rc)
        err_set_at(err, rc, path, 0, 0, "cannot write: %s", strerror(-rc));
    return rc;
}

static int write_stdout(const char *data, size_t length, struct err *err)
{
    int rc = io_write_all(STDOUT_FILENO, data, length);
    if (rc)
        err_set(err, rc, "cannot write to standard output: %s", strerror(-rc));
    return rc;
}

/* True if the file is what stdout is redirected to. A new file renamed over it would not be
 * stdout. */
static bool is_stdout(const struct stat *info)
{
    struct stat out;
    return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == info->st_dev &&
           out.st_ino == info->st_ino;
}

bool out_file_in_place(const char *path)
{
    struct stat info;
    return strcmp(path, "-") == 0 ||
           (stat(path, &info) == 0 && (!S_ISREG(info.st_mode) || is_stdout(&info)));
}

int out_file_write(const char *path, const char *data, size_t length, struct err *err)
{
    struct stat info;
    if (!*path)
        return err_set(err, -EINVAL, "the output file's name is empty");
    if (strcmp(path, "-") == 0)
        return write_stdout(data, length, err);
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return err_set_at(err, -EISDIR, path, 0, 0, "is a folder, expected a file to write");
    if (exists && !S_ISREG(info.st_mode))
        return write_special(path, data, length, err);
    if (exists && is_stdout(&info))
        return write_stdout(data, length, err);
    if (exists && access(path, W_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot write: %s", strerror(errno));
    return write_regular(path, data, length, err);
}

/* Creating a file can fail for other reasons than permissions: the name is too long or ends in '/',
 * or a network share does not let root write. */
static int try_create(const char *path, struct err *err)
{
    struct new_file file = {0};
    int rc = new_file_create(path, &file, err);
    new_file_fini(&file);
    return rc;
}

int out_file_check(const char *flag, const char *path, struct err *err)
{
    struct stat info;
    if (strcmp(path, "-") == 0)
        return 0;
    if (strchr(path, '\n'))
        return err_set_at(err, -EINVAL, path, 0, 0, "%s names a file with a line break", flag);
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return err_set_at(err, -EISDIR, path, 0, 0, "is a folder; %s names a file", flag);
    if (exists && access(path, W_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot be written: %s", strerror(errno));
    if (out_file_in_place(path))
        return 0;
    char *copy = str_copy(path);
    const char *folder = dirname(copy);
    int rc = 0;
    if (access(folder, W_OK | X_OK))
        rc = err_set_at(err, -errno, path, 0, 0, "cannot be written: folder %s: %s", folder,
                        strerror(errno));
    free(copy);
    return rc ? rc : try_create(path, err);
}

char *out_file_rescue(const char *data, size_t length, const char *suffix)
{
    const char *folder = getenv("TMPDIR");
    char *path = str_format("%s/gpumemtopo-XXXXXX%s", folder && *folder ? folder : "/tmp", suffix);
    int fd = mkstemps(path, (int)strlen(suffix));
    bool saved = fd >= 0 && io_write_all(fd, data, length) == 0;
    if (fd >= 0)
        saved &= close(fd) == 0;
    if (saved)
        return path;
    if (fd >= 0)
        unlink(path);
    free(path);
    return NULL;
}

bool out_file_replaces(const char *path, const char *input)
{
    struct stat out, in;
    return strcmp(path, "-") != 0 && stat(path, &out) == 0 && stat(input, &in) == 0 &&
           S_ISREG(out.st_mode) && out.st_dev == in.st_dev && out.st_ino == in.st_ino;
}

/* The folder of a path. False: there is none. */
static bool stat_folder(const char *path, const char *name, struct stat *out_info)
{
    char *folder = name == path ? str_copy(".") : str_copy_n(path, (size_t)(name - path));
    bool found = stat(folder, out_info) == 0;
    free(folder);
    return found;
}

bool out_file_is_same(const char *one, const char *other)
{
    struct stat left, right;
    if (!one || !other)
        return false;
    if (strcmp(one, other) == 0 || out_file_replaces(one, other))
        return true;
    const char *one_end = strrchr(one, '/'), *other_end = strrchr(other, '/');
    const char *one_name = one_end ? one_end + 1 : one;
    const char *other_name = other_end ? other_end + 1 : other;
    return strcmp(one_name, other_name) == 0 && stat_folder(one, one_name, &left) &&
           stat_folder(other, other_name, &right) && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}
