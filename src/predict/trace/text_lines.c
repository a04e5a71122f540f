/* Reads a text line by line. */
#include "predict/trace/text_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

int text_lines_open(struct text_lines *lines, const char *path, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    *lines = (struct text_lines){.name = standard ? "(standard input)" : path};
    lines->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (lines->fd < 0)
        return err_set_at(err, -errno, path, 0, 0, "cannot open: %s", strerror(errno));
    lines->buffer = mem_array(1, TEXT_LINE_MAX + 1);
    if (lines->buffer)
        return 0;
    text_lines_close(lines);
    return err_no_memory(err);
}

void text_lines_close(struct text_lines *lines)
{
    if (lines->fd > STDERR_FILENO)
        close(lines->fd);
    free(lines->buffer);
    *lines = (struct text_lines){.fd = -1};
}

static int refill(struct text_lines *lines, struct err *err)
{
    memmove(lines->buffer, lines->buffer + lines->used, lines->length - lines->used);
    lines->length -= lines->used;
    lines->used = 0;
    for (;;) {
        ssize_t got = read(lines->fd, lines->buffer + lines->length, TEXT_LINE_MAX - lines->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_at(err, -EIO, lines->name, 0, 0, "cannot read: %s", strerror(errno));
        lines->ended = got == 0;
        lines->length += (size_t)got;
        return 0;
    }
}

/* Leaves out the rest of a line of which the beginning fills the buffer. */
static int skip_rest(struct text_lines *lines, struct err *err)
{
    static const size_t kept = TEXT_LINE_MAX / 2;
    for (;;) {
        char *end = memchr(lines->buffer + kept, '\n', lines->length - kept);
        if (end || lines->ended) {
            size_t next = end ? (size_t)(end - lines->buffer) : lines->length;
            size_t left = lines->length - next;
            memmove(lines->buffer + kept, lines->buffer + next, left);
            lines->length = kept + left;
            lines->used = 0;
            return 0;
        }
        lines->length = kept;
        ssize_t got = read(lines->fd, lines->buffer + kept, TEXT_LINE_MAX - kept);
        if (got < 0 && errno != EINTR)
            return err_set_at(err, -EIO, lines->name, 0, 0, "cannot read: %s", strerror(errno));
        lines->ended = got == 0;
        lines->length += got > 0 ? (size_t)got : 0;
    }
}

static char *find_end(const struct text_lines *lines)
{
    return lines->length > lines->used
               ? memchr(lines->buffer + lines->used, '\n', lines->length - lines->used)
               : NULL;
}

int text_lines_next(struct text_lines *lines, char **out_line, struct err *err)
{
    char *end;
    while (!(end = find_end(lines)) && !lines->ended) {
        bool full = lines->length - lines->used == TEXT_LINE_MAX;
        int rc = full ? skip_rest(lines, err) : refill(lines, err);
        if (rc)
            return rc;
    }
    if (!end && lines->used == lines->length)
        return 0;
    char *line = lines->buffer + lines->used;
    if (!lines->line && lines->length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3; /* the mark that editors of Windows put before UTF-8 */
    char *stop = end ? end : lines->buffer + lines->length;
    lines->used = (size_t)(stop - lines->buffer) + (end != NULL);
    for (char *at = line; (at = memchr(at, '\0', (size_t)(stop - at))); at++)
        *at = '?';
    *stop = '\0';
    if (stop > line && stop[-1] == '\r')
        stop[-1] = '\0';
    lines->line += lines->line < INT_MAX;
    *out_line = line;
    return 1;
}

int text_lines_blame(const struct text_lines *lines, const char *line, const char *at,
                     struct err *err, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return err_set_at(err, -EINVAL, lines->name, lines->line, (int)(at - line) + 1, "%s", text);
}
