/* Framed messages on a byte stream or in an MPI message: magic, version, type, length, CRC-32.
 * Used between worker and rank and between rank and rank 0. Little-endian. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_FRAME_H
#define GPUMEMTOPO_INVENTORY_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "schema/wire.h"

enum { FRAME_VERSION = 1, FRAME_HEADER_BYTES = 20, FRAME_PAYLOAD_MAX = 64 * 1024 * 1024 };

struct frame {
    uint32_t type;       /* defined by the caller */
    const char *payload; /* points into the reader's buffer, valid until the next call on it */
    size_t length;
};

/* Appends one frame. Errors, also a payload above FRAME_PAYLOAD_MAX, only set buffer->failed. */
void frame_write(struct strbuf *buffer, uint32_t type, const void *payload, size_t length);

/* Collects bytes as they arrive and returns whole frames. Zero-initialised is empty. */
struct frame_reader {
    struct strbuf buffer;
    size_t consumed;
};
void frame_reader_add(struct frame_reader *reader, const void *data, size_t length);

/* 1: a frame; 0: not enough bytes yet; -EBADMSG: this stream is garbage (wrong magic, version,
 * length or checksum), and every later call returns -EBADMSG too. */
int frame_reader_next(struct frame_reader *reader, struct frame *out_frame, struct err *err);

/* Number of bytes that have arrived but do not form a whole frame yet. */
size_t frame_reader_pending(const struct frame_reader *reader);
void frame_reader_fini(struct frame_reader *reader);

/* A reader for the values of the payload; valid as long as the frame. */
struct wire_reader frame_values(const struct frame *frame);

/* CRC-32 of IEEE 802.3, as zlib computes it. */
uint32_t frame_crc32(const void *data, size_t length);

#endif
