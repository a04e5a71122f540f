/* Values inside a frame's payload: little-endian, every bound checked before use. */
#include "inventory/wire/wire.h"

#include <errno.h>
#include <string.h>

#include "inventory/wire/frame.h"

static const uint32_t TEXT_NULL = UINT32_MAX;

static void put_bytes(struct strbuf *buffer, uint64_t value, size_t count)
{
    char bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(unsigned char)(value >> (8 * i));
    strbuf_append(buffer, bytes, count);
}

void wire_put_u32(struct strbuf *buffer, uint32_t value)
{
    put_bytes(buffer, value, 4);
}

void wire_put_u64(struct strbuf *buffer, uint64_t value)
{
    put_bytes(buffer, value, 8);
}

void wire_put_f64(struct strbuf *buffer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_put_u64(buffer, bits);
}

void wire_put_text(struct strbuf *buffer, const char *text)
{
    if (!text) {
        wire_put_u32(buffer, TEXT_NULL);
        return;
    }
    size_t length = strlen(text);
    if (length > FRAME_PAYLOAD_MAX) {
        buffer->failed = true;
        return;
    }
    wire_put_u32(buffer, (uint32_t)length);
    strbuf_append(buffer, text, length);
}

void wire_put_varint(struct strbuf *buffer, uint64_t value)
{
    char bytes[10];
    size_t count = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[count++] = (char)(unsigned char)(value | 0x80);
    bytes[count++] = (char)value;
    strbuf_append(buffer, bytes, count);
}

void wire_put_signed(struct strbuf *buffer, int64_t value)
{
    wire_put_varint(buffer, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

static uint64_t get_bytes(struct wire_reader *reader, size_t count)
{
    if (reader->bad || reader->length - reader->position < count) {
        reader->bad = true;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)reader->data[reader->position + i] << (8 * i);
    reader->position += count;
    return value;
}

/* The next bytes, or NULL if fewer are left. */
static const unsigned char *take_bytes(struct wire_reader *reader, size_t count)
{
    reader->bad |= reader->length - reader->position < count;
    if (reader->bad)
        return NULL;
    reader->position += count;
    return reader->data + reader->position - count;
}

static uint32_t load_u32(const unsigned char *data)
{
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

uint32_t wire_get_u32(struct wire_reader *reader)
{
    const unsigned char *data = take_bytes(reader, 4);
    return data ? load_u32(data) : 0;
}

uint64_t wire_get_u64(struct wire_reader *reader)
{
    const unsigned char *data = take_bytes(reader, 8);
    return data ? load_u32(data) | (uint64_t)load_u32(data + 4) << 32 : 0;
}

double wire_get_f64(struct wire_reader *reader)
{
    uint64_t bits = wire_get_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Makes room for a NUL behind the text: moves it one byte, over the end of its length. */
static char *text_in_place(struct wire_reader *reader, size_t length)
{
    char *text = (char *)reader->data + reader->position - 1;
    memmove(text, text + 1, length);
    text[length] = '\0';
    reader->position += length;
    return text;
}

char *wire_get_text(struct wire_reader *reader)
{
    uint32_t length = wire_get_u32(reader);
    if (reader->bad || length == TEXT_NULL)
        return NULL;
    const char *start = (const char *)reader->data + reader->position;
    if (reader->length - reader->position < length || memchr(start, '\0', length)) {
        reader->bad = true;
        return NULL;
    }
    if (reader->in_place)
        return text_in_place(reader, length);
    char *text = str_copy_n(start, length);
    if (text)
        reader->position += length;
    else
        wire_no_memory(reader);
    return text;
}

uint64_t wire_get_varint(struct wire_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = get_bytes(reader, 1);
        if (shift == 63 && byte > 1)
            break;
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return reader->bad ? 0 : value;
    }
    reader->bad = true;
    return 0;
}

int64_t wire_get_signed(struct wire_reader *reader)
{
    uint64_t folded = wire_get_varint(reader);
    return (int64_t)((folded >> 1) ^ (folded & 1 ? UINT64_MAX : 0));
}

uint32_t wire_get_count(struct wire_reader *reader, size_t item_bytes)
{
    uint32_t count = wire_get_u32(reader);
    if (!reader->bad && item_bytes && count > (reader->length - reader->position) / item_bytes)
        reader->bad = true;
    return reader->bad ? 0 : count;
}

void wire_no_memory(struct wire_reader *reader)
{
    reader->bad = reader->no_memory = true;
}

int wire_end(const struct wire_reader *reader, const char *what, struct err *err)
{
    if (reader->no_memory)
        return err_no_memory(err);
    if (reader->bad || reader->position != reader->length)
        return err_set(err, -EBADMSG, "malformed %s", what);
    return 0;
}
