/* A file that appears whole or not at all: written under a temporary name, then renamed. */
#ifndef GPUMEMTOPO_BASE_NEW_FILE_H
#define GPUMEMTOPO_BASE_NEW_FILE_H

#include <stddef.h>

#include "base/err.h"

/* Zero-initialised: none. */
struct new_file {
    char *path; /* where it shall be */
    char *name; /* where it is; NULL when there is none */
    int fd;
};

/* Creates a file beside `path`; through a symbolic link, beside what that points to. */
int new_file_create(const char *path, struct new_file *out_file, struct err *err);

int new_file_append(struct new_file *file, const char *data, size_t length, struct err *err);

/* Puts it in its place, on the disk. An old file of that name is intact until then. */
int new_file_finish(struct new_file *file, struct err *err);

/* Removes what was not finished. */
void new_file_fini(struct new_file *file);

#endif
