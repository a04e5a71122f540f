/* Looks at owners and modes of a spool. No user can create a file that belongs to another one. So a
 * file of this user, which only this user may write, has this user's results. */
#include "inventory/wire/spool_trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static const mode_t others_write = S_IWGRP | S_IWOTH;

/* The owner of the folder that a path is in. */
static int folder_owner(const char *path, uid_t *out_owner)
{
    struct stat info;
    size_t length = (size_t)(str_last_part(path) - path);
    char *folder = length ? str_copy_n(path, length) : str_copy(".");
    if (!folder)
        return -ENOMEM;
    int rc = stat(folder, &info) ? -errno : 0;
    free(folder);
    if (!rc)
        *out_owner = info.st_uid;
    return rc;
}

int spool_trust_file(const char *path, struct err *err)
{
    struct stat info;
    uid_t owner = 0;
    if (lstat(path, &info))
        return err_set_at(err, -errno, path, 0, 0, "cannot be looked at: %s", strerror(errno));
    int rc = folder_owner(path, &owner);
    if (rc)
        return err_set_at(err, rc, path, 0, 0, "its folder cannot be looked at: %s", strerror(-rc));
    if (!S_ISREG(info.st_mode))
        return err_set_at(err, -EPERM, path, 0, 0,
                          "is a link or a device: a survey writes plain files into its spool");
    if (info.st_uid != geteuid() && info.st_uid != owner)
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
