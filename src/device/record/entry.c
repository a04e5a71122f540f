/* The entries of a record: written whole, read with every bound checked. Requests as numbers, and
 * answers. */
#include "device/record/entry.h"

#include <errno.h>
#include <stdlib.h>

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

static size_t asked_count(enum device_call call)
{
    const struct fields *fields = device_call_row(call)->asked;
    return fields ? fields_number_count(fields) : 0;
}

struct asked asked_of(enum device_call call, const void *it)
{
    struct asked asked = {0};
    if (device_call_row(call)->asked)
        fields_to_numbers(device_call_row(call)->asked, it, asked.numbers);
    return asked;
}

uint64_t asked_key(enum device_call call, const struct asked *asked)
{
    uint64_t key = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)call + 1);
    for (size_t i = 0, count = asked_count(call); i < count; i++) {
        key = (key ^ asked->numbers[i]) * UINT64_C(0xff51afd7ed558ccd);
        key ^= key >> 32;
    }
    return key;
}

void asked_put(struct strbuf *buffer, enum device_call call, const struct asked *asked,
               struct asked *last)
{
    size_t changed = 0, behind = 0, count = asked_count(call);
    for (size_t i = 0; i < count; i++)
        changed += asked->numbers[i] != last->numbers[i];
    wire_put_varint(buffer, changed);
    for (size_t i = 0; i < count; i++) {
        if (asked->numbers[i] == last->numbers[i])
            continue;
        wire_put_varint(buffer, i - behind);
        wire_put_signed(buffer, (int64_t)(asked->numbers[i] - last->numbers[i]));
        behind = i + 1;
    }
    *last = *asked;
}

void asked_get(struct wire_reader *reader, enum device_call call, struct asked *last)
{
    uint64_t changed = wire_get_varint(reader), at = 0, count = asked_count(call);
    if (changed > count)
        reader->bad = true;
    for (uint64_t i = 0; i < changed && !reader->bad; i++) {
        uint64_t gap = wire_get_varint(reader);
        if (gap >= count - at) {
            reader->bad = true;
            return;
        }
        at += gap;
        last->numbers[at++] += (uint64_t)wire_get_signed(reader);
    }
}

void asked_put_answer(struct strbuf *buffer, enum device_call call, const void *it,
                      const void *answer)
{
    const struct device_call_row *row = device_call_row(call);
    union device_call_room expected = {0};
    if (row->expect)
        row->expect(it, &expected);
    fields_put(row->answer, answer, row->expect ? &expected : NULL, buffer);
}

void asked_get_answer(struct wire_reader *reader, enum device_call call, const void *it,
                      uint32_t sm_count, void *answer)
{
    const struct device_call_row *row = device_call_row(call);
    if (row->expect)
        row->expect(it, answer);
    fields_get(row->answer, reader, answer);
    if (!reader->bad && row->fits && !row->fits(it, answer, sm_count))
        reader->bad = true;
}

void asked_put_err(struct strbuf *buffer, int code, const char *text)
{
    wire_put_signed(buffer, code);
    wire_put_text(buffer, text);
}

int asked_get_err(struct wire_reader *reader, struct err *err)
{
    enum { ERRNO_MAX = 4095 };
    int64_t code = wire_get_signed(reader);
    char *text = wire_get_text(reader);
    if (code >= 0 || code < -ERRNO_MAX || !text)
        reader->bad = true;
    else if (!reader->bad)
        err_set(err, (int)code, "%s", text);
    free(text);
    return reader->bad ? 0 : (int)code;
}
