/* Text for people: cleaning, width, wrapping. */
#include "markup/text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "schema/utf8.h"

/* Direction marks and overrides can make a name look like another one (CVE-2021-42574). */
static bool is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code & 0xfffe) == 0xfffe;
}

/* Scripts that terminals draw two columns wide begin at Hangul Jamo. A guess that is too wide does
 * no harm; one that is too narrow breaks the line. */
static unsigned code_columns(uint32_t code)
{
    return code >= 0x1100 ? 2 : 1;
}

static size_t next_clean(const char *text, const char **out_bytes, size_t *out_length,
                         unsigned *out_columns)
{
    uint32_t code = 0;
    size_t length = utf8_decode(text, &code);
    bool keep = length && !is_unsafe(code);
    *out_bytes = keep ? text : "?";
    *out_length = keep ? length : 1;
    *out_columns = keep ? code_columns(code) : 1;
    return length ? length : 1;
}

unsigned text_columns(const char *text, unsigned limit)
{
    unsigned total = 0;
    while (*text && total <= limit) {
        const char *bytes;
        size_t length;
        unsigned columns;
        text += next_clean(text, &bytes, &length, &columns);
        total += columns;
    }
    return total;
}

unsigned text_put_clean(struct strbuf *buffer, const char *text, unsigned columns_max)
{
    text = text ? text : "-";
    bool cut = text_columns(text, columns_max) > columns_max;
    unsigned room = cut && columns_max > 3 ? columns_max - 3 : columns_max, used = 0;
    while (*text) {
        const char *bytes;
        size_t length;
        unsigned columns;
        size_t step = next_clean(text, &bytes, &length, &columns);
        if (used + columns > room)
            break;
        strbuf_append(buffer, bytes, length);
        used += columns;
        text += step;
    }
    if (cut && columns_max > 3) {
        strbuf_puts(buffer, "...");
        used += 3;
    }
    return used;
}

void text_put_parts(struct strbuf *buffer, const char *text, unsigned columns_max)
{
    static const char between[] = "; ";
    const size_t start = buffer->length;
    size_t breaks = 0;
    text_put_clean(buffer, text, columns_max);
    if (buffer->length == start)
        return;
    for (const char *at = buffer->data + start; (at = strstr(at, between)); at++)
        breaks++;
    for (char *at = buffer->data + start; breaks > 1 && (at = strstr(at, between)); at++)
        at[1] = '\n';
}

void text_put_column(struct strbuf *buffer, const char *text, unsigned columns)
{
    unsigned used = text_put_clean(buffer, text, columns);
    strbuf_printf(buffer, "%*s", (int)(columns - used), "");
}

/* Bytes of the word at `text`, up to a blank or a line break, that fit into `room` columns. */
static size_t text_word_length(const char *text, unsigned room, unsigned *out_columns)
{
    size_t at = 0;
    unsigned used = 0;
    while (text[at] && text[at] != ' ' && text[at] != '\n') {
        const char *bytes;
        size_t length;
        unsigned columns;
        size_t step = next_clean(text + at, &bytes, &length, &columns);
        if (used + columns > room)
            break;
        used += columns;
        at += step;
    }
    *out_columns = used;
    return at;
}

void text_put_wrapped(struct strbuf *buffer, const char *text, unsigned first, unsigned indent,
                      unsigned width)
{
    unsigned column = first;
    bool line_empty = *text != ' ';
    while (*text) {
        unsigned columns;
        text += strspn(text, " ");
        bool begin = *text == '\n';
        text += begin;
        size_t length = text_word_length(text, width - indent, &columns);
        if (!length)
            break;
        unsigned blank = line_empty ? 0 : 1;
        if (begin || column + blank + columns > width) {
            strbuf_printf(buffer, "\n%*s", (int)indent, "");
            column = indent;
            blank = 0;
        }
        strbuf_append(buffer, " ", blank);
        strbuf_append(buffer, text, length);
        column += blank + columns;
        line_empty = false;
        text += length;
    }
    strbuf_puts(buffer, "\n");
}

double text_percent(double share)
{
    return trunc(1000 * share + copysign(1e-6, share)) / 10;
}

void text_put_quantity(struct strbuf *buffer, double value, const char *unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    enum { UNIT_COUNT = COUNT_OF(units) };
    if (!isfinite(value)) {
        strbuf_puts(buffer, "-");
        return;
    }
    size_t scale = 0;
    if (unit && strcmp(unit, "B") == 0) {
        for (; fabs(value) >= 1024 && scale + 1 < UNIT_COUNT; scale++)
            value /= 1024;
        unit = units[scale];
    }
    bool whole = fabs(value) >= 1000 && fabs(value) < 1e15;
    strbuf_printf(buffer, whole ? "%.0f" : "%.4g", value);
    if (unit && *unit && strcmp(unit, "id") != 0) {
        strbuf_puts(buffer, " ");
        text_put_clean(buffer, unit, 20);
    }
}
