/* Recognises records by their bytes: the reports do not read them. */
#include "report/record_bytes.h"

#include <stdint.h>
#include <string.h>

/* As in docs/records.md. */
static const char magic[] = "\x89GMR\r\n\x1a\n";

bool report_record_begins(const struct strbuf *bytes)
{
    const size_t length = sizeof magic - 1;
    return bytes->length >= length && memcmp(bytes->data, magic, length) == 0;
}

bool report_record_is_complete(const struct strbuf *record)
{
    enum { END_TYPE = 4, END_LENGTH = 8, END_BYTES = 14 };
    if (record->length < END_BYTES)
        return false;
    size_t start = record->length - END_BYTES;
    const unsigned char *end = (const unsigned char *)record->data + start;
    uint64_t position = 0;
    for (int i = END_LENGTH - 1; i >= 0; i--)
        position = position << 8 | end[2 + i];
    return end[0] == END_TYPE && end[1] == END_LENGTH && position == start;
}
