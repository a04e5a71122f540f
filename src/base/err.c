/* Errors as values: set, prefixed and printed. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void err_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static void err_fill(struct err *err, int code, const char *file, int line, int column,
                     const char *format, va_list args)
{
    if (!err)
        return;
    *err = (struct err){.code = code, .line = line, .column = column};
    snprintf(err->file, sizeof err->file, "%s", file ? file : "");
    vsnprintf(err->text, sizeof err->text, format, args);
    err_clean(err->file);
    err_clean(err->text);
}

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_fill(err, code, NULL, 0, 0, format, args);
    va_end(args);
    return code;
}

int err_set_at(struct err *err, int code, const char *file, int line, int column,
               const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_fill(err, code, file, line, column, format, args);
    va_end(args);
    return code;
}

void err_prefix(struct err *err, const char *format, ...)
{
    if (!err)
        return;
    char old[ERR_TEXT_MAX];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int length = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (length < 0)
        length = 0;
    if ((size_t)length < sizeof err->text)
        snprintf(err->text + length, sizeof err->text - (size_t)length, ": %s", old);
    err_clean(err->text);
}

void err_clear(struct err *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

const char *err_format(const struct err *err, char *buffer, size_t buffer_size)
{
    if (err->file[0] && err->line > 0)
        snprintf(buffer, buffer_size, "%s:%d:%d: %s", err->file, err->line, err->column, err->text);
    else if (err->file[0])
        snprintf(buffer, buffer_size, "%s: %s", err->file, err->text);
    else
        snprintf(buffer, buffer_size, "%s", err->text);
    return buffer;
}
