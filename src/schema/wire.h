/* Values inside a frame's payload, little-endian. The writers append to a strbuf. The reader checks
 * every bound; after an error `bad` stays set, so callers check it once at the end. */
#ifndef GPUMEMTOPO_SCHEMA_WIRE_H
#define GPUMEMTOPO_SCHEMA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "schema/facts.h"

/* A longer text sets buffer->failed. */
enum { WIRE_TEXT_MAX = 64 * 1024 * 1024 };

void wire_put_u32(struct strbuf *buffer, uint32_t value);
void wire_put_u64(struct strbuf *buffer, uint64_t value);
void wire_put_f64(struct strbuf *buffer, double value);
void wire_put_text(struct strbuf *buffer, const char *text); /* NULL is read back as NULL */

/* Seven bits per byte, low bits first: small numbers are short. A signed number is zigzag-encoded
 * first, so that small negative numbers are short too. */
void wire_put_varint(struct strbuf *buffer, uint64_t value);
void wire_put_signed(struct strbuf *buffer, int64_t value);

struct wire_reader {
    const unsigned char *data;
    size_t length;
    size_t position;
    bool bad;
    bool in_place; /* texts are not copied: they stay in the data, which must be writable, and
                      which this changes */
};
uint32_t wire_get_u32(struct wire_reader *reader);
uint64_t wire_get_u64(struct wire_reader *reader);
double wire_get_f64(struct wire_reader *reader);

/* The caller frees it, unless in_place; NULL: NULL was written, or bad. */
char *wire_get_text(struct wire_reader *reader);
uint64_t wire_get_varint(struct wire_reader *reader);
int64_t wire_get_signed(struct wire_reader *reader);

/* A count of items of at least item_bytes each; bad if the remaining bytes cannot hold them. */
uint32_t wire_get_count(struct wire_reader *reader, size_t item_bytes);

/* 0 if everything was read and nothing was bad; else -EBADMSG naming `what`. */
int wire_end(const struct wire_reader *reader, const char *what, struct err *err);

/* A number that is not finite and a text that is NULL are written as unknown. */
void wire_put_facts(struct strbuf *buffer, const struct facts *facts);

/* Fills `facts`, which must be empty. A number that is not finite, a missing text, a repeated key,
 * or more than WIRE_ITEMS_MAX facts set reader->bad. */
void wire_get_facts(struct wire_reader *reader, struct facts *facts);

/* A value below `count`. */
unsigned wire_get_enum(struct wire_reader *reader, unsigned count);

/* A text that is not NULL and short enough for a key. The caller frees it, also if the reader is
 * bad. */
char *wire_get_key(struct wire_reader *reader);

enum { WIRE_ITEMS_MAX = 4096 };

/* True if a key occurs twice; count is at most WIRE_ITEMS_MAX. */
bool wire_repeats(const char *const *keys, size_t count);

/* As wire_get_count, with WIRE_ITEMS_MAX as a further limit. */
uint32_t wire_get_items(struct wire_reader *reader, size_t item_bytes);

#endif
