/* Writing an inventory so that a reader never sees half a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/new_file.h"
#include "inventory/inventory.h"

static int write_regular(const char *path, const struct strbuf *text, struct err *err)
{
    struct new_file file = {0};
    int rc = new_file_create(path, &file, err);
    if (!rc)
        rc = new_file_append(&file, text->data, text->length, err);
    if (!rc)
        rc = new_file_finish(&file, err);
    new_file_fini(&file);
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
    return write_regular(path, text, err);
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
