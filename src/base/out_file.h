/* A whole text to where a user wants it: a file, a pipe or device, or stdout. */
#ifndef GPUMEMTOPO_BASE_OUT_FILE_H
#define GPUMEMTOPO_BASE_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* "-" is stdout; a pipe or device is written to; anything else appears whole or not at all, and on
 * an error the old file is intact. */
int out_file_write(const char *path, const char *data, size_t length, struct err *err);

/* Whether that would succeed: its folder is there and writable, `path` is no folder itself, and a
 * file can be created beside it. flag: that named it, for the text. To be known before hours of
 * measuring, not after. */
int out_file_check(const char *flag, const char *path, struct err *err);

/* Puts the text into a new file in TMPDIR, whose name nobody can foresee and ends in `suffix`. Its
 * path, freed with free(); NULL: that failed as well. */
char *out_file_rescue(const char *data, size_t length, const char *suffix);

/* Whether `path` is written to where it is, and no new file put in its place. */
bool out_file_in_place(const char *path);

/* Whether writing to `path` would replace the file `input`, by whatever name. */
bool out_file_replaces(const char *path, const char *input);

#endif
