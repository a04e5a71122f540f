/* A struct of the data model is described once, by a table with a row for each member. Release,
 * copy, comparison, YAML, JSON, the binary form, anonymising, the JSON Schema and the tables of the
 * documentation are derived from it. */
#ifndef GPUMEMTOPO_SCHEMA_SCHEMA_H
#define GPUMEMTOPO_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/yaml.h"
#include "schema/facts.h"
#include "schema/wire.h"
#include "schema/writer.h"

enum schema_type {
    SCHEMA_TEXT,     /* char *, owned */
    SCHEMA_BOOL,     /* bool */
    SCHEMA_U32,      /* uint32_t */
    SCHEMA_I32,      /* int32_t or int; with SCHEMA_NULL not negative, and -1 is null */
    SCHEMA_U64,      /* uint64_t */
    SCHEMA_F64,      /* double; with SCHEMA_NULL NaN is null */
    SCHEMA_ENUM,     /* an enum: index into `names` */
    SCHEMA_STRUCT,   /* a struct that `of` describes */
    SCHEMA_FACTS,    /* struct facts; `of`, if set, describes the only keys that it may have */
    SCHEMA_FACT,     /* the fact named `key` of the struct facts that another row describes */
    SCHEMA_CONSTANT, /* no member: the number `max` */
};

enum schema_flag {
    SCHEMA_OPTIONAL = 1 << 0, /* left out of files when it is 0, NULL or empty */
    SCHEMA_NULL = 1 << 1,     /* null is allowed */
    SCHEMA_PRESENT = 1 << 2,  /* null unless a bool, another member, is true */
    SCHEMA_WIRE_ONLY = 1 << 3,
    SCHEMA_FILE_ONLY = 1 << 4,
    SCHEMA_ANY = 1 << 9,   /* a double: any in the binary form, where `sound` checks it */
    SCHEMA_KEY = 1 << 5,   /* a text that is short, and occurs only once in a list of its structs */
    SCHEMA_REST = 1 << 6,  /* facts: without those that rows of type SCHEMA_FACT name */
    SCHEMA_LISTS = 1 << 7, /* facts: values may be lists */
    SCHEMA_LATER = 1 << 10, /* files in the binary form that end before this member: it is 0 */
    SCHEMA_INLINE = 1 << 8, /* facts: among the keys of the struct, for all that no row names */
};

/* What an anonymous copy has in place of a text. */
enum schema_privacy {
    SCHEMA_PUBLIC,
    SCHEMA_PRIVATE_NODE, /* a pseudonym */
    SCHEMA_PRIVATE_SLOT,
    SCHEMA_PRIVATE_GPU,
    SCHEMA_PRIVATE_TEXT, /* a text or facts for people: names in them are replaced */
};

/* How the value of a member is written if its type does not say it. */
struct schema_form {
    void (*print)(struct writer *writer, const char *key, const void *object);
    int (*read)(const struct yaml_node *node, void *object, struct err *err);
};

struct schema_field {
    const char *key;
    enum schema_type type;
    unsigned flags;
    size_t offset;
    bool list;                /* a pointer to an array */
    bool grows;               /* of a list: the member behind the count is its capacity */
    size_t count_offset;      /* of a list: of the count, a size_t; SCHEMA_PRESENT: of the bool */
    const struct schema *of;  /* SCHEMA_STRUCT, SCHEMA_FACTS */
    const char *const *names; /* SCHEMA_ENUM */
    size_t name_count;
    double min, max; /* numbers, and indices of names; both 0: what the type holds. Lists: the
                        largest count in the binary form */
    enum schema_privacy privacy;
    const struct schema_form *form; /* NULL: derived from the type */
    const char *unit;
    const char *words;       /* for the documentation: one sentence */
    const char *pattern;     /* texts: a regular expression, for the JSON Schema only */
    const char *json_schema; /* members of its JSON Schema, if they do not follow from the type */
};

struct schema {
    const char *name;
    size_t size;
    const struct schema_field *fields;
    size_t count;
    const char *words;
    enum writer_style style; /* in YAML */
    const char *rules;       /* further members of its JSON Schema */
    /* Whether a member is written to files; NULL: all but optional ones that are absent. */
    bool (*shows)(const void *object, const struct schema_field *field);
    /* Files: whether members fit together; 0 or -EINVAL with a message. NULL: they always do. */
    int (*check)(const void *object, struct err *err);
    /* Binary form. repair: makes the members of a shallow copy valid before they are written (texts
     * may be set to constants); sound: whether what was read is valid. Either may be NULL. */
    void (*repair)(void *object);
    bool (*sound)(const void *object);
};

/* Rows. Each checks the type of the member: {"node", FIELD_TEXT(struct x, node), ...}. */
#define SCHEMA_OFFSET(s, member, type)                                                             \
    (offsetof(s, member) + 0 * sizeof(char[_Generic(((s *)0)->member, type : 1)]))
#define FIELD_TEXT(s, member) .type = SCHEMA_TEXT, .offset = SCHEMA_OFFSET(s, member, char *)
#define FIELD_BOOL(s, member) .type = SCHEMA_BOOL, .offset = SCHEMA_OFFSET(s, member, bool)
#define FIELD_U32(s, member) .type = SCHEMA_U32, .offset = SCHEMA_OFFSET(s, member, uint32_t)
#define FIELD_I32(s, member) .type = SCHEMA_I32, .offset = SCHEMA_OFFSET(s, member, int32_t)
#define FIELD_U64(s, member) .type = SCHEMA_U64, .offset = SCHEMA_OFFSET(s, member, uint64_t)
#define FIELD_F64(s, member) .type = SCHEMA_F64, .offset = SCHEMA_OFFSET(s, member, double)
#define FIELD_FACTS(s, member)                                                                     \
    .type = SCHEMA_FACTS, .offset = SCHEMA_OFFSET(s, member, struct facts)
#define FIELD_FACT(s, member) .type = SCHEMA_FACT, .offset = SCHEMA_OFFSET(s, member, struct facts)
/* words: an array of names that ends with NULL. */
#define FIELD_ENUM(s, member, words)                                                               \
    .type = SCHEMA_ENUM, .names = (words), .name_count = sizeof(words) / sizeof *(words)-1,        \
    .offset =                                                                                      \
        offsetof(s, member) + 0 * sizeof(char[sizeof((s *)0)->member == sizeof(int) ? 1 : -1])
#define FIELD_STRUCT(s, member, schema)                                                            \
    .type = SCHEMA_STRUCT, .of = (schema), .offset = offsetof(s, member)
/* Some members of the same struct under a key of their own. */
#define FIELD_PART(schema) .type = SCHEMA_STRUCT, .of = (schema), .offset = 0
#define SCHEMA_ITEMS(s, member, count, item)                                                       \
    .offset = SCHEMA_OFFSET(s, member, item *), .count_offset = SCHEMA_OFFSET(s, count, size_t)
#define FIELD_LIST(s, member, count, item, schema)                                                 \
    .type = SCHEMA_STRUCT, .of = (schema), .list = true, SCHEMA_ITEMS(s, member, count, item)
#define FIELD_TEXTS(s, member, count)                                                              \
    .type = SCHEMA_TEXT, .list = true, SCHEMA_ITEMS(s, member, count, char *)
#define FIELD_U32S(s, member, count)                                                               \
    .type = SCHEMA_U32, .list = true, SCHEMA_ITEMS(s, member, count, uint32_t)
#define FIELD_NUMBERS(s, member, count)                                                            \
    .type = SCHEMA_F64, .list = true, SCHEMA_ITEMS(s, member, count, double)
#define SCHEMA_FIELDS(rows) .fields = (rows), .count = sizeof(rows) / sizeof *(rows)

/* Releases all described members and sets them to 0. schema_fini_lists: the texts lie elsewhere and
 * stay. */
void schema_fini(const struct schema *schema, void *object);
void schema_fini_lists(const struct schema *schema, void *object);

/* *to, of schema->size bytes, becomes a copy that owns its memory. What it was is not released. */
void schema_copy(const struct schema *schema, void *to, const void *from);

/* Compares all described members. NaN equals NaN; facts compare as fact_equal says. */
bool schema_equal(const struct schema *schema, const void *a, const void *b);

/* Writes the struct as a map. */
void schema_print(const struct schema *schema, struct writer *writer, const char *key,
                  const void *object);
void schema_print_facts(struct writer *writer, const char *key, const struct facts *facts);
void schema_print_fact(struct writer *writer, const struct fact *fact);

/* Reads a map into a zeroed struct: every key is known, none but the optional ones is missing,
 * every value has its type. 0 or -EINVAL with position. What was read before a failure stays in the
 * struct, to be released. */
int schema_read(const struct schema *schema, const struct yaml_node *node, void *object,
                struct err *err);

/* Parts of it, for forms. A number: null is NaN. A text: NULL for null, if that is allowed. A fact:
 * how the value is written determines its kind; lists: whether it may be a list. */
int schema_read_number(const struct yaml_node *node, double *out_value, struct err *err);
int schema_read_text(const struct yaml_node *node, bool nullable, char **out_text, struct err *err);
int schema_read_texts(const struct yaml_node *node, char ***out_texts, size_t *out_count,
                      struct err *err);
int schema_read_fact(const char *key, const struct yaml_node *node, bool lists, struct facts *facts,
                     struct err *err);

/* The binary form: members in the order of the rows. Counts are checked against the bytes that are
 * left before anything is allocated; reader->bad says that something was wrong. *object is zeroed;
 * what was read before a failure stays there, to be released (with schema_fini_lists if the reader
 * is in_place). */
void schema_encode(const struct schema *schema, const void *object, struct strbuf *buffer);
void schema_decode(const struct schema *schema, struct wire_reader *reader, void *object);

/* Differs between tables whose binary forms differ: by the keys, types and order of the rows. */
uint32_t schema_wire_version(const struct schema *schema);

/* The binary form behind its version, for files and messages that another version of the program
 * may have written. Reading: -EBADMSG for another version or if nothing is there, *object is empty
 * then; what else is wrong is in reader->bad. */
void schema_encode_versioned(const struct schema *schema, const void *object,
                             struct strbuf *buffer);
int schema_decode_versioned(const struct schema *schema, struct wire_reader *reader, void *object,
                            struct err *err);

/* Calls the visitor for every text and all facts that are not public. */
struct schema_visitor {
    void (*text)(void *user, enum schema_privacy privacy, char **text);
    void (*facts)(void *user, struct facts *facts);
    void *user;
};
void schema_visit(const struct schema *schema, void *object, const struct schema_visitor *visitor);

/* A JSON Schema (draft 2020-12) of the files. named: structs, ending with NULL, that become members
 * of "$defs"; definitions: further such members, as JSON text. */
void schema_print_json_schema(const struct schema *schema, const char *title,
                              const struct schema *const *named, const char *definitions,
                              struct strbuf *out_text);

/* A section for the documentation: a table of the members, then a section for each struct in it. */
void schema_print_markdown(const struct schema *schema, struct strbuf *out_text);

#endif
