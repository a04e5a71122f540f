/* Writes YAML or JSON piece by piece: the same calls give the same document in both.
 *
 * YAML: block style, or flow style ("{a: 1}", on one line) where a map or list is opened so.
 * JSON: every value on a line of its own, indented by two spaces per level. */
#ifndef GPUMEMTOPO_SCHEMA_WRITER_H
#define GPUMEMTOPO_SCHEMA_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum writer_format { WRITER_JSON, WRITER_YAML };
enum writer_style { WRITER_BLOCK, WRITER_FLOW };
enum { WRITER_DEPTH_MAX = 40, WRITER_COLUMNS = 100 };

/* A document being written. Zero-initialised except `out` and `format`. */
struct writer {
    struct strbuf *out;
    enum writer_format format;
    bool next_line; /* the next key begins a line, also in flow style. Set for one key */
    bool known_key; /* the next key is one of a schema: it is written as it is. Set for one key */
    int depth;
    struct writer_level {
        bool list, flow;
        bool begun; /* it has a member already */
        int indent;
    } levels[WRITER_DEPTH_MAX];
    /* If set, called between members with everything written so far; it may empty `out`. */
    void (*flush)(void *user, struct strbuf *out);
    void *user;
};

/* Each appends a key (NULL in a list and at the top) and a value. */
void writer_map(struct writer *writer, const char *key, enum writer_style style);
void writer_list(struct writer *writer, const char *key, enum writer_style style);
void writer_end(struct writer *writer); /* ends the innermost map or list */
void writer_text(struct writer *writer, const char *key, const char *text); /* NULL: null */
void writer_number(struct writer *writer, const char *key, double value);   /* NaN: null */
void writer_i64(struct writer *writer, const char *key, int64_t value);
void writer_u64(struct writer *writer, const char *key, uint64_t value);
void writer_bool(struct writer *writer, const char *key, bool value);
void writer_raw(struct writer *writer, const char *key, const char *value); /* as it is */

/* Lists that are broken into lines of at most WRITER_COLUMNS columns in YAML, and stay on one line
 * in JSON. A list that fits into a line, but not behind what is there, begins one with its key. */
void writer_numbers(struct writer *writer, const char *key, const double *values, size_t count);
/* columns: of each row, which begins a line in YAML; 0: no rows. */
void writer_rows(struct writer *writer, const char *key, const double *values, size_t count,
                 size_t columns);
void writer_texts(struct writer *writer, const char *key, char *const *texts, size_t count);

#endif
