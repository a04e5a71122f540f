/* A text, line by line, in bounded memory. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_TEXT_LINES_H
#define GPUMEMTOPO_PREDICT_TRACE_TEXT_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { TEXT_LINE_MAX = 64 << 10 };

struct text_lines {
    const char *name; /* for messages */
    int fd;
    char *buffer;
    size_t used, length;
    int line; /* number of the last one */
    bool ended;
};

/* "-" is the standard input. */
int text_lines_open(struct text_lines *lines, const char *path, struct err *err);
void text_lines_close(struct text_lines *lines);

/* The next line without its end, with a NUL behind it; a NUL within it becomes '?'. Of a line that
 * is longer than TEXT_LINE_MAX only the beginning. 1; 0: there is none; -EIO. Valid until the next
 * call. */
int text_lines_next(struct text_lines *lines, char **out_line, struct err *err);

/* -EINVAL at this place of the last line; `at` points into it. */
int text_lines_blame(const struct text_lines *lines, const char *line, const char *at,
                     struct err *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
