/* One error: what went wrong, and for input files where. */
#ifndef GPUMEMTOPO_BASE_ERR_H
#define GPUMEMTOPO_BASE_ERR_H

#include <stddef.h>

/* ERR_LINE_MAX: enough for everything that err_format writes. */
enum { ERR_TEXT_MAX = 512, ERR_FILE_MAX = 256, ERR_LINE_MAX = ERR_TEXT_MAX + ERR_FILE_MAX + 32 };

/* Filled by the function that fails first; untouched on success. line 0: no position known. */
struct err {
    int code; /* negative errno; 0 while nothing has failed */
    int line;
    int column;
    char file[ERR_FILE_MAX]; /* "" when the error is not about an input file */
    char text[ERR_TEXT_MAX];
};

/* All setters accept err == NULL and return `code` (a negative errno), so they can end a function:
 * `return err_set(err, -EINVAL, "...")`. Control characters in the text are replaced by '?'. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with a position in an input file. */
int err_set_at(struct err *err, int code, const char *file, int line, int column,
               const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Puts "prefix: " before the existing text. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Resets the error after it was handled. */
void err_clear(struct err *err);

/* "file:line:column: text", "file: text" or "text", depending on what is known. Returns buffer. */
const char *err_format(const struct err *err, char *buffer, size_t buffer_size);

#endif
