/* Requests as numbers, and answers. */
#include "device/record/asked.h"

#include <stdlib.h>
#include <string.h>

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
