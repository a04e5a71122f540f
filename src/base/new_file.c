/* A file that appears whole or not at all. */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

/* Writing through a symbolic link replaces what it points to, not the link. */
static char *resolve(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        char *target = realpath(path, NULL);
        if (target)
            return target;
        if (errno == ENOMEM)
            mem_exhausted(0);
    }
    return str_copy(path);
}

/* Temporary files that a signal removes. The signals are blocked while this or a file's name
 * changes. */
enum { PENDING_MAX = 4 };
static char *pending[PENDING_MAX];
static const int fatal[] = {SIGINT, SIGTERM, SIGHUP};

static void block_signals(sigset_t *out_before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < COUNT_OF(fatal); i++)
        sigaddset(&set, fatal[i]);
    pthread_sigmask(SIG_BLOCK, &set, out_before);
}

static void unblock_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void replace_pending(char *from, char *to)
{
    for (int i = 0; i < PENDING_MAX; i++) {
        if (pending[i] == from) {
            pending[i] = to;
            return;
        }
    }
}

/* With SA_RESETHAND: the second time the signal does what it does by default. */
static void remove_pending(int number)
{
    for (int i = 0; i < PENDING_MAX; i++)
        if (pending[i])
            unlink(pending[i]);
    raise(number);
}

void new_file_remove_on_signals(void)
{
    struct sigaction action = {.sa_handler = remove_pending, .sa_flags = (int)SA_RESETHAND}, was;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < COUNT_OF(fatal); i++)
        if (sigaction(fatal[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN) /* nohup */
            sigaction(fatal[i], &action, NULL);
}

/* Creates the file under an unused name in the same folder: rename works only inside one file
 * system. The name contains the final name and the process id, in case a crash leaves it behind. */
static int create_beside(struct new_file *file, struct err *err)
{
    enum { ATTEMPTS = 100 };
    for (int i = 0; i < ATTEMPTS; i++) {
        file->name = str_format("%s.tmp.%ld.%d", file->path, (long)getpid(), i);
        file->fd = open(file->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            return 0;
        int code = -errno;
        free(file->name);
        file->name = NULL;
        if (code != -EEXIST)
            return err_set_at(err, code, file->path, 0, 0, "cannot create a file in its folder: %s",
                              strerror(-code));
    }
    return err_set_at(err, -EEXIST, file->path, 0, 0,
                      "cannot find a free temporary name beside it");
}

int new_file_create(const char *path, struct new_file *out_file, struct err *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return err_set_at(err, S_ISDIR(info.st_mode) ? -EISDIR : -EINVAL, path, 0, 0,
                          "is a %s, which a new file would replace; name a file",
                          S_ISDIR(info.st_mode) ? "folder" : "pipe or device");
    struct new_file file = {.path = resolve(path)};
    sigset_t before;
    block_signals(&before);
    int rc = create_beside(&file, err);
    if (!rc)
        replace_pending(NULL, file.name);
    unblock_signals(&before);
    if (rc)
        free(file.path);
    else
        *out_file = file;
    return rc;
}

int new_file_append(struct new_file *file, const char *data, size_t length, struct err *err)
{
    int rc = io_write_all(file->fd, data, length);
    if (rc)
        err_set_at(err, rc, file->path, 0, 0, "cannot write: %s", strerror(-rc));
    return rc;
}

/* The rename must survive a crash too. Some file systems refuse to sync a folder; that is no
 * failure, since the file is complete and renamed. The path is cut in place, because allocating a
 * copy could fail. */
static void sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    char first = slash ? slash[1] : '\0';
    if (slash)
        slash[1] = '\0';
    int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash)
        slash[1] = first;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

int new_file_finish(struct new_file *file, struct err *err)
{
    int rc = fsync(file->fd) ? -errno : 0;
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) && !rc)
        rc = -errno;
    if (rc)
        return err_set_at(err, rc, file->path, 0, 0, "cannot write: %s", strerror(-rc));
    sigset_t before;
    block_signals(&before);
    rc = rename(file->name, file->path) ? -errno : 0;
    if (!rc)
        replace_pending(file->name, NULL);
    unblock_signals(&before);
    if (rc)
        return err_set_at(err, rc, file->path, 0, 0, "cannot put the new file in its place: %s",
                          strerror(-rc));
    free(file->name);
    file->name = NULL;
    sync_folder(file->path);
    return 0;
}

void new_file_fini(struct new_file *file)
{
    if (file->name) {
        sigset_t before;
        block_signals(&before);
        if (file->fd >= 0)
            close(file->fd);
        unlink(file->name);
        replace_pending(file->name, NULL);
        unblock_signals(&before);
    }
    free(file->name);
    free(file->path);
    *file = (struct new_file){0};
}
