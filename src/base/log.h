/* Messages to the user on stderr, with levels. Programs use it; libraries return struct err
 * instead. */
#ifndef GPUMEMTOPO_BASE_LOG_H
#define GPUMEMTOPO_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Messages above this level are dropped; the default is LOG_INFO. */
void log_set_level(enum log_level level);

/* Printed before each message, e.g. "gpumemtopo-survey" or "gpumemtopo-survey[3]". */
void log_set_prefix(const char *prefix);

/* Each message is one write, so lines of several processes do not mix. Control characters other
 * than a newline are replaced, so that a hostile name cannot send commands to the terminal. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Logs an error like log_error, with its position if it is about an input file. */
void log_failure(const struct err *err);

#endif
