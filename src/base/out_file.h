/* Writes a complete text to a file, a pipe, a device or stdout. */
#ifndef GPUMEMTOPO_BASE_OUT_FILE_H
#define GPUMEMTOPO_BASE_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* "-" is stdout. A pipe or device is written to directly. A file appears complete or not at all; on
 * an error the old file is intact. */
int out_file_write(const char *path, const char *data, size_t length, struct err *err);

/* Checks, before hours of measuring, that out_file_write would succeed: the folder exists and is
 * writable, `path` is not a folder, and a file can be created beside it. flag: the flag that named
 * the file, for the error text. */
int out_file_check(const char *flag, const char *path, struct err *err);

/* Writes the text to a new file in TMPDIR with an unpredictable name that ends in `suffix`. Returns
 * its path, freed with free(); NULL if that failed as well. */
char *out_file_rescue(const char *data, size_t length, const char *suffix);

/* True if `path` is written to directly, without a temporary file and rename. */
bool out_file_in_place(const char *path);

/* True if writing to `path` would replace the file `input`, also if they are named differently. */
bool out_file_replaces(const char *path, const char *input);

/* True if both names lead to one file, which need not exist yet. False for NULL. */
bool out_file_is_same(const char *one, const char *other);

#endif
