/* Framed messages on a byte stream or in an MPI message: magic, version, type, length, CRC-32.
 * Used between worker and rank and between rank and rank 0. Little-endian. */
#ifndef GPUMEMTOPO_INVENTORY_FRAME_H
#define GPUMEMTOPO_INVENTORY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { FRAME_VERSION = 1, FRAME_HEADER_BYTES = 20, FRAME_PAYLOAD_MAX = 64 * 1024 * 1024 };

struct frame {
    uint32_t type;       /* meaning is the user's */
    const char *payload; /* points into the reader's buffer, valid until the next call on it */
    size_t length;
};

/* Appends one frame. */
void frame_write(struct strbuf *buffer, uint32_t type, const void *payload, size_t length);

/* Collects bytes as they come and gives out whole frames. Zero-initialised is empty. */
struct frame_reader {
    struct strbuf buffer;
    size_t consumed;
};
int frame_reader_add(struct frame_reader *reader, const void *data, size_t length);

/* 1: a frame; 0: not enough bytes yet; -EBADMSG: this stream is garbage (wrong magic, version,
 * length or checksum) and stays so. */
int frame_reader_next(struct frame_reader *reader, struct frame *out_frame, struct err *err);

/* Bytes that came but belong to no whole frame yet. */
size_t frame_reader_pending(const struct frame_reader *reader);
void frame_reader_fini(struct frame_reader *reader);

/* Values inside a payload. The writers append to a strbuf; the reader checks every bound and
 * latches `bad`, so that callers check once at the end. */
void wire_put_u32(struct strbuf *buffer, uint32_t value);
void wire_put_u64(struct strbuf *buffer, uint64_t value);
void wire_put_f64(struct strbuf *buffer, double value);
void wire_put_text(struct strbuf *buffer, const char *text); /* NULL stays NULL */

struct wire_reader {
    const unsigned char *data;
    size_t length;
    size_t position;
    bool bad;
};
uint32_t wire_get_u32(struct wire_reader *reader);
uint64_t wire_get_u64(struct wire_reader *reader);
double wire_get_f64(struct wire_reader *reader);
char *wire_get_text(struct wire_reader *reader); /* fresh memory, or NULL (also when bad) */

/* A count of things that take at least item_bytes each: bad when the rest could not hold them. */
uint32_t wire_get_count(struct wire_reader *reader, size_t item_bytes);

uint32_t frame_crc32(const void *data, size_t length);

#endif
