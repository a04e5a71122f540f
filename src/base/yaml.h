/* Reads YAML into a document that knows the line and column of every value. */
#ifndef GPUMEMTOPO_BASE_YAML_H
#define GPUMEMTOPO_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/str.h"

struct yaml_doc;
struct yaml_node;

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

/* Limits for hostile or mistaken files. Aliases are always refused (an alias bomb needs them, no
 * file of this project does), and so are duplicate keys and a second document. */
struct yaml_limits {
    size_t bytes_max;
    size_t nodes_max;
    int depth_max;
};
extern const struct yaml_limits yaml_limits_config;    /* hand-written files: 1 MiB */
extern const struct yaml_limits yaml_limits_inventory; /* generated files: 1 GiB */
extern const struct yaml_limits yaml_limits_plain;     /* the same, read by yaml_plain.h: 4 GiB */

/* Reads one document. -ENOENT, -EACCES, ... from the system; -EINVAL with line and column if it is
 * not YAML; -EFBIG if it exceeds a limit. Freed with yaml_destroy (which accepts NULL). */
int yaml_read_file(const char *path, const struct yaml_limits *limits, struct yaml_doc **out_doc,
                   struct err *err);
int yaml_read_text(const char *text, size_t length, const char *name,
                   const struct yaml_limits *limits, struct yaml_doc **out_doc, struct err *err);

/* Reads the text of a file without parsing it, for callers that keep the text. Appends to out_text,
 * also on failure. */
int yaml_load_text(const char *path, const struct yaml_limits *limits, struct strbuf *out_text,
                   struct err *err);

/* The same, and what fstat says of the file that was read: a path may name another one later. */
int yaml_load_text_of(const char *path, const struct yaml_limits *limits, struct strbuf *out_text,
                      struct stat *out_info, struct err *err);
void yaml_destroy(struct yaml_doc *doc);

const struct yaml_node *yaml_root(const struct yaml_doc *doc);

enum yaml_kind yaml_kind(const struct yaml_node *node);
size_t yaml_count(const struct yaml_node *node); /* items or pairs; 0 for a scalar */

/* Item i of a sequence, value i of a mapping; i < yaml_count. */
const struct yaml_node *yaml_at(const struct yaml_node *node, size_t i);

/* Key i of a mapping, as a node (for its position) and as text. */
const struct yaml_node *yaml_key_node(const struct yaml_node *node, size_t i);
const char *yaml_key(const struct yaml_node *node, size_t i);

/* Value of a key; NULL if it is absent or the node is not a mapping. */
const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key);

/* The text of a scalar; NULL for other kinds. yaml_plain: NULL also for a quoted scalar, since only
 * an unquoted one may be a number, a bool or null. */
const char *yaml_text(const struct yaml_node *node);
const char *yaml_plain(const struct yaml_node *node);

/* A plain null: `null`, `~` or nothing. */
bool yaml_is_null(const struct yaml_node *node);

/* Sets an error with the file, line and column of the node. Always returns -EINVAL. */
int yaml_error(const struct yaml_node *node, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Typed values. 0, or -EINVAL with the position and what was expected; out untouched on failure. */
int yaml_expect(const struct yaml_node *node, enum yaml_kind kind, struct err *err);
int yaml_as_text(const struct yaml_node *node, const char **out_text, struct err *err);
int yaml_as_bool(const struct yaml_node *node, bool *out_value, struct err *err);
int yaml_as_u64(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *out_value,
                struct err *err);
int yaml_as_f64(const struct yaml_node *node, double min, double max, double *out_value,
                struct err *err);
int yaml_as_bytes(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *out_bytes,
                  struct err *err);

/* Index of the scalar among `words`. */
int yaml_as_word(const struct yaml_node *node, const char *const *words, size_t count,
                 size_t *out_index, struct err *err);

/* Reads a mapping into a struct by a table. Errors with a position: unknown keys
 * (with "did you mean"), missing required keys, wrong types, values out of range. Absent optional
 * keys do not change their field, so callers set defaults before. */
enum yaml_type {
    YAML_BOOL,   /* bool */
    YAML_U32,    /* uint32_t */
    YAML_U64,    /* uint64_t */
    YAML_BYTES,  /* uint64_t, "32 KiB" allowed */
    YAML_F64,    /* double */
    YAML_STRING, /* const char *, valid as long as the document */
    YAML_WORD,   /* int (an enum): index in words */
    YAML_NODE,   /* const struct yaml_node *: any value, for the caller to read */
};
struct yaml_field {
    const char *key;
    enum yaml_type type;
    size_t offset; /* of the field in the struct */
    bool required;
    double min, max;          /* numbers; both 0: any value the type holds (never negative for U) */
    const char *const *words; /* YAML_WORD: NULL-terminated */
};
int yaml_read_fields(const struct yaml_node *mapping, const struct yaml_field *fields, size_t count,
                     void *out_struct, struct err *err);

#endif
