/* Makes traces from text. */
#ifndef GPUMEMTOPO_PREDICT_TRACE_CONVERT_H
#define GPUMEMTOPO_PREDICT_TRACE_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "predict/trace/head.h"
#include "predict/trace/sorter.h"

enum opcode_space {
    OPCODE_GLOBAL, /* through the caches */
    OPCODE_COPY,   /* global to shared memory: two addresses per lane, printed apart */
    OPCODE_SHARED,
    OPCODE_LOCAL,
    OPCODE_OTHER,
    OPCODE_SPACES
};

struct opcode {
    enum opcode_space space;
    uint32_t store; /* an atomic counts as one */
    uint32_t bytes; /* of a lane */
};

/* "LDG.E.128", "ATOMG.E.ADD.F64.RN.STRONG.GPU", ... */
struct opcode opcode_read(const char *name);

const char *opcode_space_name(enum opcode_space space);

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

struct convert_request {
    const char *in, *out; /* in: "-" is the standard input */
    bool has_launch;
    uint64_t launch;     /* of several: this one, from 0 */
    size_t sort_bytes;   /* 0: TRACE_SORTER_BYTES */
    uint32_t page_bytes; /* 0: TRACE_PAGE_BYTES */
};

struct convert_result {
    struct trace_head head;
    struct trace_totals totals;
    uint64_t skipped[OPCODE_SPACES]; /* accesses that do not go through the caches */
    uint64_t other_launches;         /* accesses of them */
};

/* -EINVAL, with file, line and column, for what is wrong in the text. */
int convert_nvbit(const struct convert_request *request, struct convert_result *out_result,
                  struct err *err);
int convert_csv(const struct convert_request *request, struct convert_result *out_result,
                struct err *err);

/* Writes what was sorted. ranked: numbers of warps are any; those of a block become 0, 1, ... in
 * their order. */
int convert_write(const struct convert_request *request, struct trace_sorter *sorter, bool ranked,
                  struct convert_result *result, struct err *err);

#endif
