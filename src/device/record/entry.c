/* The entries of a record: written whole, read with every bound checked. */
#include "device/record/entry.h"

#include <errno.h>

#include "inventory/wire/frame.h"

enum { SUM_BYTES = 4 };

const char record_magic[RECORD_MAGIC_BYTES] = {'\x89', 'G', 'M', 'R', '\r', '\n', '\x1a', '\n'};

void entry_write(struct strbuf *buffer, enum entry_type type, const struct strbuf *payload)
{
    size_t start = buffer->length;
    wire_put_varint(buffer, type);
    wire_put_varint(buffer, payload->length);
    strbuf_append(buffer, payload->data, payload->length);
    wire_put_u32(buffer, frame_crc32(buffer->data + start, buffer->length - start));
}

/* Reads type and length; true when both are there and valid. */
static bool entry_read_head(struct wire_reader *reader, uint32_t *out_type, size_t *out_length)
{
    uint64_t type = wire_get_varint(reader);
    uint64_t length = wire_get_varint(reader);
    if (reader->bad || type > UINT32_MAX || length > ENTRY_BYTES_MAX)
        return false;
    *out_type = (uint32_t)type;
    *out_length = (size_t)length;
    return true;
}

int entry_span(const char *data, size_t length, uint64_t *out_bytes)
{
    struct wire_reader reader = {.data = (const unsigned char *)data, .length = length};
    uint32_t type = 0;
    size_t payload = 0;
    if (entry_read_head(&reader, &type, &payload)) {
        *out_bytes = reader.position + payload + SUM_BYTES;
        return 1;
    }
    return length < ENTRY_HEAD_MAX ? 0 : -EINVAL;
}

int entry_next(const char *data, size_t length, uint64_t offset, size_t *position,
               struct record_entry *out_entry, struct err *err)
{
    struct wire_reader reader = {
        .data = (const unsigned char *)data, .length = length, .position = *position};
    unsigned long long here = offset + *position;
    uint32_t type = 0;
    size_t payload = 0;
    if (*position == length)
        return 0;
    if (!entry_read_head(&reader, &type, &payload))
        return err_set(err, -EINVAL, "byte %llu: expected type and length of an entry", here);
    if (length - reader.position < payload + SUM_BYTES)
        return err_set(err, -EINVAL, "byte %llu: cut off: expected an entry of %zu bytes", here,
                       payload);
    size_t start = reader.position;
    reader.position += payload;
    uint32_t found = frame_crc32(data + *position, reader.position - *position);
    if (wire_get_u32(&reader) != found)
        return err_set(err, -EINVAL, "byte %llu: damaged: the entry's checksum is wrong", here);
    *out_entry = (struct record_entry){
        .type = type,
        .position = *position,
        .values = {.data = (const unsigned char *)data + start, .length = payload},
    };
    *position = reader.position;
    return 1;
}
