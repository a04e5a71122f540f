/* Leveled messages for people, on stderr. Programs use it; libraries return struct err instead. */
#ifndef GPUMEMTOPO_BASE_LOG_H
#define GPUMEMTOPO_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Messages above this level are dropped; LOG_INFO at start. */
void log_set_level(enum log_level level);

/* What stands before each message, e.g. "gpumemtopo-survey" or "gpumemtopo-survey[3]". */
void log_set_prefix(const char *prefix);

/* One line, one write: lines of several processes do not mix. Control characters other than a
 * newline are replaced, so that a hostile name cannot drive the terminal. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An error as log_error would say it, with its place in an input file where it has one. */
void log_failure(const struct err *err);

#endif
