/* A file that appears whole or not at all: written under a temporary name, then renamed. */
#ifndef GPUMEMTOPO_BASE_NEW_FILE_H
#define GPUMEMTOPO_BASE_NEW_FILE_H

#include <stddef.h>

#include "base/err.h"

/* Zero-initialised: no file. */
struct new_file {
    char *path; /* final path */
    char *name; /* temporary path; NULL: no file */
    int fd;
};

/* Creates a temporary file beside `path`; if that is a symbolic link, beside its target.
 * -EINVAL, -EISDIR: `path` is a pipe, a device or a folder; the rename would replace it. */
int new_file_create(const char *path, struct new_file *out_file, struct err *err);

int new_file_append(struct new_file *file, const char *data, size_t length, struct err *err);

/* Writes the file to disk and renames it to its path. Until then an old file of that name is
 * intact. */
int new_file_finish(struct new_file *file, struct err *err);

/* Removes the file if it was not finished. */
void new_file_fini(struct new_file *file);

/* From now on SIGINT, SIGTERM and SIGHUP remove files that are not finished, then end the process
 * as they would have. For programs with one thread that writes files. */
void new_file_remove_on_signals(void);

#endif
