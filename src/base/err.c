/* Errors as values: set, prefixed and printed. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static void fill(struct err *err, int code, const char *format, va_list args)
{
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    clean(err->text);
}

int err_set(struct err *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    fill(err, code, format, args);
    va_end(args);
    err->file[0] = '\0';
    err->line = err->column = 0;
    return code;
}

int err_set_at(struct err *err, int code, const char *file, int line, int column,
               const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    fill(err, code, format, args);
    va_end(args);
    snprintf(err->file, sizeof err->file, "%s", file ? file : "");
    clean(err->file);
    err->line = line;
    err->column = column;
    return code;
}

int err_no_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
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
    clean(err->text);
}

void err_clear(struct err *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

const char *err_format(const struct err *err, char *buffer, unsigned long buffer_size)
{
    if (err->file[0] && err->line > 0)
        snprintf(buffer, buffer_size, "%s:%d:%d: %s", err->file, err->line, err->column, err->text);
    else if (err->file[0])
        snprintf(buffer, buffer_size, "%s: %s", err->file, err->text);
    else
        snprintf(buffer, buffer_size, "%s", err->text);
    return buffer;
}
