/* Which survey a spool folder belongs to, and whether that survey still runs. */
#include "inventory/wire/spool_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "base/str.h"
#include "inventory/wire/spool.h"

void spool_identity_fini(struct spool_identity *identity)
{
    free(identity->survey);
    free(identity->job);
    free(identity->output);
    free(identity->who);
    memset(identity, 0, sizeof *identity);
}

/* Locks belong to the open file, not to the process, so they survive when the process closes
 * another descriptor of the same file. Going from exclusive to shared is atomic. */
static int owner_lock(int fd, short type, off_t from, off_t count)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = from, .l_len = count};
    return fcntl(fd, F_OFD_SETLK, &range) ? -errno : 0;
}

enum { ALL = 0 }; /* as l_len: to the end of the file, however long it is */

/* Goes from the lock on all bytes to the lock on the own byte; no other process can take all bytes
 * meanwhile. */
static void owner_keep_own(const struct spool_owner *owner)
{
    owner_lock(owner->fd, F_RDLCK, owner->rank, 1);
    if (owner->rank)
        owner_lock(owner->fd, F_UNLCK, 0, owner->rank);
    owner_lock(owner->fd, F_UNLCK, owner->rank + 1, ALL);
}

static bool owner_is_held(int rc)
{
    return rc == -EAGAIN || rc == -EACCES;
}

/* The file has lines "key: value" with these keys. */
static const char *const keys[] = {"survey", "job", "output", "who", "merged", "exit_code"};

static void owner_read_identity(int fd, struct spool_identity *out)
{
    char text[16384];
    struct spool_identity identity = {0};
    char *merged = NULL;
    char *exit_code = NULL;
    char **const values[] = {&identity.survey, &identity.job, &identity.output,
                             &identity.who,    &merged,       &exit_code};
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            size_t n = strlen(keys[i]);
            if (strncmp(line, keys[i], n) == 0 && line[n] == ':' && line[n + 1] == ' ' &&
                !*values[i])
                *values[i] = str_copy(line + n + 2);
        }
    identity.merged = merged ? strtoul(merged, NULL, 10) : 0;
    identity.exit_code = exit_code ? (int)strtol(exit_code, NULL, 10) : 0;
    free(merged);
    free(exit_code);
    *out = identity;
}

static int owner_write_identity(int fd, const struct spool_identity *identity)
{
    struct strbuf text = {0};
    strbuf_printf(&text, "survey: %s\njob: %s\noutput: %s\nwho: %s\nmerged: %zu\nexit_code: %d\n",
                  identity->survey, identity->job, identity->output, identity->who,
                  identity->merged, identity->exit_code);
    int rc = lseek(fd, 0, SEEK_SET) ? -errno : io_write_all(fd, text.data, text.length);
    if (!rc && ftruncate(fd, (off_t)text.length))
        rc = -errno;
    strbuf_fini(&text);
    return rc;
}

static int owner_make_folder(const char *path, struct err *err)
{
    struct stat info;
    if (mkdir(path, 0755) && errno != EEXIST)
        return err_set_at(err, -errno, path, 0, 0, "cannot create the spool folder: %s",
                          strerror(errno));
    if (stat(path, &info) || !S_ISDIR(info.st_mode))
        return err_set_at(err, -ENOTDIR, path, 0, 0, "is not a folder; --spool needs one");
    if (access(path, W_OK | X_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot be written: %s", strerror(errno));
    return 0;
}

/* A folder for one survey has one owner. A folder named by the user (--spool) has one owner per
 * output; several surveys may write to the same pipe or device, so these are told apart by job. */
static char *owner_path(const struct spool_candidate *candidate)
{
    const char *of = candidate->output;
    if (candidate->exclusive)
        return str_format("%s/.owner", candidate->folder);
    if (out_file_in_place(of))
        of = *candidate->job ? candidate->job : candidate->survey;
    return str_format("%s/.owner-%016" PRIx64, candidate->folder, str_hash(of));
}

/* False if another process has removed the file, or moved the folder, since it was opened. */
static bool owner_is_in_place(const struct spool_owner *owner)
{
    struct stat opened, named;
    return fstat(owner->fd, &opened) == 0 && stat(owner->path, &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

static int owner_set_aside(const char *folder, char **out_aside, struct err *err)
{
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(1, stamp);
    char *aside = str_format("%s.before-%s", folder, stamp);
    if (rename(folder, aside)) {
        int rc = err_set_at(err, -errno, folder, 0, 0,
                            "has results of an earlier survey and cannot be moved to %s: %s", aside,
                            strerror(errno));
        free(aside);
        return rc;
    }
    free(*out_aside);
    *out_aside = aside;
    return 0;
}

/* Writes the identity of the candidate to the file. */
static int become_owner(const struct spool_candidate *candidate, struct spool_owner *owner,
                        struct err *err)
{
    spool_identity_fini(&owner->identity);
    owner->identity = (struct spool_identity){.survey = str_copy(candidate->survey),
                                              .job = str_copy(candidate->job),
                                              .output = str_copy(candidate->output),
                                              .who = str_copy(candidate->who)};
    int rc = owner_write_identity(owner->fd, &owner->identity);
    if (!rc)
        return 0;
    unlink(owner->path);
    rmdir(candidate->folder); /* fails if it is not empty */
    return err_set_at(err, rc, owner->path, 0, 0, "cannot be written: %s", strerror(-rc));
}

/* 0: all bytes are locked, or the file system has no locks. 1: the own byte is locked. -EAGAIN:
 * neither is possible now, because another process is just joining, or leaving as the last one. */
static int lock_any(struct spool_owner *owner)
{
    int rc = owner_lock(owner->fd, F_WRLCK, 0, ALL);
    owner->unlocked = rc && !owner_is_held(rc);
    if (!owner_is_held(rc))
        return 0;
    return owner_lock(owner->fd, F_RDLCK, owner->rank, 1) ? -EAGAIN : 1;
}

static int owner_refuse(const struct spool_candidate *candidate, const struct spool_owner *owner,
                        struct err *err)
{
    const char *who = owner->identity.who;
    return err_set_at(err, -EBUSY, candidate->output, 0, 0,
                      "another survey is running with this output (%.200s): wait for its end, or "
                      "name another output",
                      who ? who : "unknown");
}

/* Tries once. -EAGAIN: the lock was not available, or the file or folder has changed meanwhile. */
static int try_join(const struct spool_candidate *candidate, struct spool_owner *owner,
                    char **out_aside, struct err *err)
{
    owner->fd = open(owner->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (owner->fd < 0)
        return errno == ENOENT ? -EAGAIN
                               : err_set_at(err, -errno, owner->path, 0, 0, "cannot create: %s",
                                            strerror(errno));
    int locked = lock_any(owner);
    if (locked < 0 || !owner_is_in_place(owner))
        return -EAGAIN;
    spool_identity_fini(&owner->identity);
    owner_read_identity(owner->fd, &owner->identity);
    bool ours = *candidate->job && str_equal(owner->identity.job, candidate->job) &&
                owner->identity.survey && owner->identity.output;
    if (locked)
        return ours ? 0 : owner_refuse(candidate, owner, err);
    struct spool_count left = {0};
    int rc = ours ? 0 : spool_count(candidate->folder, "", &left);
    if (rc)
        return err_set_at(err, rc, candidate->folder, 0, 0, "cannot be read: %s", strerror(-rc));
    if (left.files && candidate->exclusive) {
        rc = owner_set_aside(candidate->folder, out_aside, err);
        return rc ? rc : -EAGAIN;
    }
    owner->mixed = left.files != 0;
    rc = ours ? 0 : become_owner(candidate, owner, err);
    owner_keep_own(owner);
    return rc;
}

int spool_owner_join(const struct spool_candidate *candidate, struct spool_owner *out_owner,
                     char **out_aside, struct err *err)
{
    enum { TRIES = 6000 };
    const struct timespec pause = {.tv_nsec = 10000000};
    struct spool_owner owner = {.fd = -1, .rank = candidate->rank, .path = owner_path(candidate)};
    int rc = -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
        if (i)
            nanosleep(&pause, NULL);
        rc = owner_make_folder(candidate->folder, err);
        if (!rc)
            rc = try_join(candidate, &owner, out_aside, err);
        if (rc && owner.fd >= 0) {
            close(owner.fd);
            owner.fd = -1;
        }
    }
    if (rc == -EAGAIN)
        rc = owner_refuse(candidate, &owner, err);
    if (rc)
        spool_owner_fini(&owner);
    else
        *out_owner = owner;
    return rc;
}

int spool_owner_open(const char *path, int rank, struct spool_owner *out_owner, struct err *err)
{
    struct spool_owner owner = {.path = str_copy(path), .rank = rank};
    owner.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (owner.fd < 0) {
        int rc = -errno;
        spool_owner_fini(&owner);
        return err_set_at(err, rc, path, 0, 0, "cannot open: %s", strerror(-rc));
    }
    owner_read_identity(owner.fd, &owner.identity);
    int locked = owner_lock(owner.fd, F_RDLCK, rank, 1);
    owner.unlocked = locked && !owner_is_held(locked);
    *out_owner = owner;
    return 0;
}

enum spool_others spool_owner_leave(struct spool_owner *owner)
{
    if (!owner->path || owner->unlocked)
        return SPOOL_OTHERS;
    owner_lock(owner->fd, F_UNLCK, 0, ALL);
    enum spool_others others = SPOOL_OTHERS;
    /* Rank 0's byte comes last: if two processes leave at once, the one that has locked the other
     * bytes is the last. */
    if (!owner_lock(owner->fd, F_WRLCK, 1, ALL))
        others = owner_lock(owner->fd, F_WRLCK, 0, 1) ? SPOOL_RANK_0 : SPOOL_NOBODY;
    if (!owner_is_in_place(owner))
        return SPOOL_GONE;
    if (others == SPOOL_OTHERS)
        return SPOOL_OTHERS;
    spool_identity_fini(&owner->identity);
    owner_read_identity(owner->fd, &owner->identity);
    return others;
}

void spool_owner_set_merged(struct spool_owner *owner, size_t files, int exit_code)
{
    if (!owner->path || !owner->identity.survey)
        return; /* this process does not own the spool */
    owner->identity.merged = files;
    owner->identity.exit_code = exit_code;
    owner_write_identity(owner->fd, &owner->identity);
}

enum spool_life spool_owner_life(const char *path)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct spool_identity identity = {0};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? SPOOL_OVER : SPOOL_LIVES;
    bool held = fcntl(fd, F_OFD_GETLK, &any) || any.l_type != F_UNLCK;
    owner_read_identity(fd, &identity);
    close(fd);
    bool made = identity.merged || identity.exit_code;
    spool_identity_fini(&identity);
    return held ? SPOOL_LIVES : made ? SPOOL_OVER : SPOOL_FREE;
}

void spool_owner_remove(const struct spool_owner *owner)
{
    if (owner->path)
        unlink(owner->path);
}

void spool_owner_fini(struct spool_owner *owner)
{
    if (owner->path && owner->fd >= 0)
        close(owner->fd);
    free(owner->path);
    spool_identity_fini(&owner->identity);
    *owner = (struct spool_owner){.fd = -1};
}
