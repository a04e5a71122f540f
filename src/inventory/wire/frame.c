/* Frames on a byte stream: writing, and reading as bytes arrive. */
#include "inventory/wire/frame.h"

#include <errno.h>
#include <string.h>

enum { MAGIC = 0x544d4d47, CHECKED_BYTES = 16 }; /* "GMMT" on the wire */

enum { SLICES = 16 };

/* crc_tables[k][b]: effect of a byte b that is followed by k more bytes. */
static uint32_t crc_tables[SLICES][256];

/* The reflected polynomial 0xedb88320 of IEEE 802.3. Every call writes the same values, so two
 * threads may run this at once. */
static void crc_init(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320 : 0);
        crc_tables[0][b] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (uint32_t b = 0; b < 256; b++)
            crc_tables[k][b] =
                (crc_tables[k - 1][b] >> 8) ^ crc_tables[0][crc_tables[k - 1][b] & 255];
}

static uint32_t crc_load(const unsigned char *data)
{
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

/* Sixteen bytes at a time, because rank 0 sums every byte of every result twice. */
static uint32_t crc_update(uint32_t crc, const unsigned char *data, size_t length)
{
    const uint32_t(*t)[256] = (const uint32_t(*)[256])crc_tables;
    if (!t[0][1])
        crc_init();
    for (; length >= SLICES; data += SLICES, length -= SLICES) {
        uint32_t a = crc ^ crc_load(data), b = crc_load(data + 4);
        uint32_t c = crc_load(data + 8), d = crc_load(data + 12);
        crc = t[15][a & 255] ^ t[14][a >> 8 & 255] ^ t[13][a >> 16 & 255] ^ t[12][a >> 24] ^
              t[11][b & 255] ^ t[10][b >> 8 & 255] ^ t[9][b >> 16 & 255] ^ t[8][b >> 24] ^
              t[7][c & 255] ^ t[6][c >> 8 & 255] ^ t[5][c >> 16 & 255] ^ t[4][c >> 24] ^
              t[3][d & 255] ^ t[2][d >> 8 & 255] ^ t[1][d >> 16 & 255] ^ t[0][d >> 24];
    }
    for (size_t i = 0; i < length; i++)
        crc = t[0][(crc ^ data[i]) & 255] ^ (crc >> 8);
    return crc;
}

uint32_t frame_crc32(const void *data, size_t length)
{
    return ~crc_update(~0u, data, length);
}

/* The checksum covers the header, so that a damaged type is noticed too. */
static uint32_t frame_sum(const void *header, const void *payload, size_t length)
{
    uint32_t crc = crc_update(~0u, header, CHECKED_BYTES);
    return ~crc_update(crc, payload, length);
}

void frame_write(struct strbuf *buffer, uint32_t type, const void *payload, size_t length)
{
    if (length > FRAME_PAYLOAD_MAX) {
        buffer->failed = true;
        return;
    }
    size_t start = buffer->length;
    wire_put_u32(buffer, MAGIC);
    wire_put_u32(buffer, FRAME_VERSION);
    wire_put_u32(buffer, type);
    wire_put_u32(buffer, (uint32_t)length);
    wire_put_u32(buffer, frame_sum(buffer->data + start, payload, length));
    strbuf_append(buffer, payload, length);
}

void frame_reader_add(struct frame_reader *reader, const void *data, size_t length)
{
    struct strbuf *buffer = &reader->buffer;
    /* Move only when half of the buffer is consumed: each byte then moves about once. */
    if (reader->consumed && reader->consumed >= buffer->length / 2) {
        buffer->length -= reader->consumed;
        memmove(buffer->data, buffer->data + reader->consumed, buffer->length);
        reader->consumed = 0;
    }
    strbuf_append(buffer, data, length);
}

int frame_reader_next(struct frame_reader *reader, struct frame *out_frame, struct err *err)
{
    size_t available = frame_reader_pending(reader);
    if (!available)
        return 0;
    const char *start = reader->buffer.data + reader->consumed;
    struct wire_reader header = {.data = (const unsigned char *)start, .length = available};
    uint32_t magic = wire_get_u32(&header);
    if (!header.bad && magic != MAGIC)
        return err_set(err, -EBADMSG, "not a stream of frames");
    uint32_t version = wire_get_u32(&header);
    if (!header.bad && version != FRAME_VERSION)
        return err_set(err, -EBADMSG, "frame version %u, expected %d", version, FRAME_VERSION);
    uint32_t type = wire_get_u32(&header);
    uint32_t length = wire_get_u32(&header);
    if (!header.bad && length > FRAME_PAYLOAD_MAX)
        return err_set(err, -EBADMSG, "a frame of %u bytes exceeds the limit", length);
    uint32_t sum = wire_get_u32(&header);
    if (header.bad || available - FRAME_HEADER_BYTES < length)
        return 0;
    const char *payload = start + FRAME_HEADER_BYTES;
    if (sum != frame_sum(start, payload, length))
        return err_set(err, -EBADMSG, "a frame's checksum is wrong");
    reader->consumed += FRAME_HEADER_BYTES + (size_t)length;
    *out_frame = (struct frame){.type = type, .payload = payload, .length = length};
    return 1;
}

size_t frame_reader_pending(const struct frame_reader *reader)
{
    return reader->buffer.length - reader->consumed;
}

void frame_reader_fini(struct frame_reader *reader)
{
    strbuf_fini(&reader->buffer);
    reader->consumed = 0;
}

struct wire_reader frame_values(const struct frame *frame)
{
    return (struct wire_reader){.data = (const unsigned char *)frame->payload,
                                .length = frame->length};
}
