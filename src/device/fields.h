/* Requests and answers of device calls are described once, by a table with a row for each member.
 * Their release, their binary form in a record, their comparison and their text are derived from
 * it.
 *
 * Binary form of a struct: which of its numbers differ from what is expected (a bit each, as one
 * varint), these numbers, then its structs, arrays, lists and facts, all in the order of the rows.
 * What is expected is 0, unless the reader and the writer agree on something else. So a row that is
 * added at the end of a table is 0 in older records. docs/records.md describes it. */
#ifndef GPUMEMTOPO_DEVICE_FIELDS_H
#define GPUMEMTOPO_DEVICE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"
#include "schema/wire.h"

enum field_type {
    FIELD_BOOL,
    FIELD_U16,
    FIELD_U32,
    FIELD_I32,
    FIELD_U64,
    FIELD_ENUM, /* an index into `names` */
    FIELD_WORD, /* uint32_t: an index into `word`; a record has the hash of the word */
    FIELD_F64,
    FIELD_STRUCT,
    FIELD_FACTS, /* struct facts: a reader sets those that are recorded */
};

enum field_place {
    FIELD_SINGLE, /* the member is the value */
    FIELD_FIXED,  /* an array of `length` values in the struct */
    FIELD_ARRAY,  /* the same, of which another member says how many are used; the row of that
                     member comes first, here and for lists */
    FIELD_LIST,   /* a pointer to owned memory; another member says how many */
};

/* How a number is written inside an array or list. */
enum field_form {
    FIELD_PLAIN,
    FIELD_SAME, /* expected to be that of the element before */
    FIELD_NEAR, /* likewise, and written as the difference from it */
    FIELD_RISES /* likewise, and always larger than it */
};

struct field {
    const char *key;
    enum field_type type;
    enum field_place place;
    enum field_form form;
    size_t offset;
    size_t length; /* FIELD_FIXED, FIELD_ARRAY */
    size_t count_offset, count_bytes;
    uint32_t lag;             /* FIELD_NEAR in a list: the element before is so many back; 0: 1 */
    const struct fields *of;  /* FIELD_STRUCT */
    const char *const *names; /* FIELD_ENUM */
    uint32_t name_count;      /* FIELD_ENUM */
    const char *(*word)(uint32_t index); /* FIELD_WORD; NULL behind the last one */
};

struct fields {
    size_t size; /* of the struct */
    const struct field *rows;
    size_t count;
    bool whole; /* all numbers are written, without bits: for short structs of long lists */
};

#define FIELDS(type, table) .size = sizeof(type), .rows = table, .count = COUNT_OF(table)

/* Rows: {FIELD(struct x, bytes, U64), .form = FIELD_SAME}. The type of the member is checked. */
#define FIELD_C_BOOL bool
#define FIELD_C_U16 uint16_t
#define FIELD_C_U32 uint32_t
#define FIELD_C_I32 int32_t
#define FIELD_C_U64 uint64_t
#define FIELD_C_F64 double
#define FIELD_C_FACTS struct facts
#define FIELD_AT(s, m, type) (offsetof(s, m) + 0 * sizeof((type *)0 == &((s *)0)->m))
#define FIELD(s, m, kind) .key = #m, .type = FIELD_##kind, .offset = FIELD_AT(s, m, FIELD_C_##kind)
#define FIELD_CHOICE(s, m, words)                                                                  \
    .key = #m, .type = FIELD_ENUM, .offset = offsetof(s, m), .names = words,                       \
    .name_count = COUNT_OF(words)
#define FIELD_INSIDE(s, m, fields)                                                                 \
    .key = #m, .type = FIELD_STRUCT, .offset = offsetof(s, m), .of = fields
#define FIELD_ALL(s, m, kind)                                                                      \
    .key = #m, .type = FIELD_##kind, .place = FIELD_FIXED, .length = COUNT_OF(((s *)0)->m),        \
    .offset = FIELD_AT(s, m[0], FIELD_C_##kind)
#define FIELD_COUNTED(s, n) .count_offset = offsetof(s, n), .count_bytes = sizeof((s *)0)->n
#define FIELD_FIRST(s, m, n, fields)                                                               \
    .key = #m, .type = FIELD_STRUCT, .place = FIELD_ARRAY, .length = COUNT_OF(((s *)0)->m),        \
    .offset = offsetof(s, m), .of = fields, FIELD_COUNTED(s, n)
#define FIELD_STRUCT_LIST(s, m, n, fields)                                                         \
    .key = #m, .type = FIELD_STRUCT, .place = FIELD_LIST, .offset = offsetof(s, m), .of = fields,  \
    FIELD_COUNTED(s, n)
#define FIELD_NUMBER_LIST(s, m, n, kind)                                                           \
    .key = #m, .type = FIELD_##kind, .place = FIELD_LIST,                                          \
    .offset = FIELD_AT(s, m, FIELD_C_##kind *), FIELD_COUNTED(s, n)
/* The row of a count, whatever its type. */
#define FIELD_COUNT(s, m)                                                                          \
    .key = #m, .type = sizeof((s *)0)->m == sizeof(uint64_t) ? FIELD_U64 : FIELD_U32,              \
    .offset = offsetof(s, m)

/* Releases lists and facts, and sets everything to 0. */
void fields_fini(const struct fields *fields, void *object);

/* Writes the struct. expected: NULL for zeros; its lists may be NULL. */
void fields_put(const struct fields *fields, const void *object, const void *expected,
                struct strbuf *buffer);

/* Reads it into `object`, which holds what is expected, its lists NULL. Counts are checked before
 * anything is allocated; reader->bad says that something was wrong. What was read before that is
 * released by fields_fini. */
void fields_get(const struct fields *fields, struct wire_reader *reader, void *object);

/* A struct of numbers only, without lists, as a row of numbers: elements of an array beyond its
 * count are 0. */
enum { FIELDS_NUMBERS_MAX = 96 };
size_t fields_number_count(const struct fields *fields);
void fields_to_numbers(const struct fields *fields, const void *object, uint64_t *numbers);

/* The inverse. False for a number that the type does not hold. */
bool fields_from_numbers(const struct fields *fields, const uint64_t *numbers, void *object);

/* "kind read, path global_cg, footprint_bytes 64 KiB": what is not 0. */
void fields_describe(const struct fields *fields, const void *object, struct strbuf *out_text);

/* One line of a table for each row, for docs/records.md. */
void fields_document(const struct fields *fields, struct strbuf *out_text);

/* Calls `visit` for each member that is a struct facts. */
struct facts;
void fields_visit_facts(const struct fields *fields, void *object,
                        void (*visit)(struct facts *facts, void *user), void *user);

#endif
