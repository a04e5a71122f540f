/* Messages to the user on stderr, with levels. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

static enum log_level threshold = LOG_INFO;
static char prefix[64] = "gpumemtopo";

void log_set_level(enum log_level level)
{
    threshold = level;
}

void log_set_prefix(const char *text)
{
    snprintf(prefix, sizeof prefix, "%s", text);
}

static void write_line(enum log_level level, const char *format, va_list args)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    char line[2048];
    if (level > threshold)
        return;
    int head = snprintf(line, sizeof line, "%s: %s", prefix, names[level]);
    int body = vsnprintf(line + head, sizeof line - (size_t)head, format, args);
    size_t length = strlen(line);
    if (body < 0)
        return;
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)line[i] < 0x20 && line[i] != '\n') || line[i] == 0x7f)
            line[i] = '?';
    if (length == sizeof line - 1)
        length--;
    line[length++] = '\n';
    int rc = io_write_all(STDERR_FILENO, line, length);
    (void)rc; /* stderr failed: there is nowhere else to report it */
}

void log_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_ERROR, format, args);
    va_end(args);
}

void log_warning(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_WARNING, format, args);
    va_end(args);
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_INFO, format, args);
    va_end(args);
}

void log_debug(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(LOG_DEBUG, format, args);
    va_end(args);
}

void log_failure(const struct err *err)
{
    char text[ERR_LINE_MAX];
    log_error("%s", err_format(err, text, sizeof text));
}
