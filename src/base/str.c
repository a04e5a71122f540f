/* Strings: copies, a growing buffer, parsers. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

char *str_copy_n(const char *text, size_t length)
{
    if (!text)
        return NULL;
    char *copy = mem_bytes(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *str_copy(const char *text)
{
    return text ? str_copy_n(text, strlen(text)) : NULL;
}

char *str_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) /* longer than INT_MAX: no text here is */
        mem_exhausted(0);
    char *text = mem_bytes((size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

bool str_equal(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

int str_order(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

int str_item_order(const void *a, const void *b)
{
    return str_order(*(const char *const *)a, *(const char *const *)b);
}

bool str_list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, word, length) == 0 && (!list[length] || list[length] == ','))
            return true;
    }
    return false;
}

const char *str_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The end of the text, with room for `extra` bytes and a NUL. */
static char *strbuf_reserve(struct strbuf *buf, size_t extra)
{
    if (extra >= SIZE_MAX - buf->length - 1)
        mem_exhausted(extra);
    size_t needed = buf->length + extra + 1, wanted = buf->capacity < 8 ? 8 : buf->capacity;
    if (buf->data && needed <= buf->capacity)
        return buf->data + buf->length;
    while (wanted < needed)
        wanted = wanted > SIZE_MAX / 2 ? needed : 2 * wanted;
    /* Not zeroed as mem_grow would: that touches all memory of a text of which half may be used. */
    buf->data = mem_resize(buf->data, wanted, wanted, 1);
    buf->capacity = wanted;
    return buf->data + buf->length;
}

void strbuf_append(struct strbuf *buf, const char *data, size_t length)
{
    char *end = strbuf_reserve(buf, length);
    if (length)
        memcpy(end, data, length);
    end[length] = '\0';
    buf->length += length;
}

void strbuf_puts(struct strbuf *buf, const char *text)
{
    strbuf_append(buf, text, strlen(text));
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        mem_exhausted(0);
    char *end = strbuf_reserve(buf, (size_t)length);
    va_start(args, format);
    vsnprintf(end, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}

void strbuf_fini(struct strbuf *buf)
{
    free(buf->data);
    memset(buf, 0, sizeof *buf);
}

/* A decimal number of up to 15 digits without an exponent: its digits and the power of ten are
 * exact as doubles, so their quotient is rounded once, as strtod would. False: leave it to strtod,
 * which takes several times as long. */
static bool parse_short(const char *text, double *out_value)
{
    static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = *text == '-';
    const char *at = text + negative, *point = NULL;
    uint64_t digits = 0;
    size_t count = 0;
    for (; count <= 15; at++) {
        if (*at >= '0' && *at <= '9')
            digits = 10 * digits + (uint64_t)(*at - '0'), count++;
        else if (*at == '.' && !point)
            point = at;
        else
            break;
    }
    if (*at || !count || count > 15)
        return false;
    double value = (double)digits / powers[point ? at - point - 1 : 0];
    *out_value = negative ? -value : value;
    return true;
}

int str_parse_f64(const char *text, double *out_value)
{
    if (text && parse_short(text, out_value))
        return 0;
    if (!text || !(isdigit((unsigned char)*text) || strchr("+-.", *text)) || !*text)
        return -EINVAL;
    if (strpbrk(text, "xXpPnN"))
        return -EINVAL;
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end)
        return -EINVAL;
    if (!isfinite(value))
        return -ERANGE;
    *out_value = value;
    return 0;
}

int str_parse_u64(const char *text, uint64_t *out_value)
{
    if (!text || !isdigit((unsigned char)*text))
        return -EINVAL;
    int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, base);
    if (end == text || *end)
        return -EINVAL;
    if (errno == ERANGE)
        return -ERANGE;
    *out_value = value;
    return 0;
}

/* The factor of "", "K", "KiB", "MiB", ...; 0 if it is none of them. All are binary: memories are
 * built in powers of two, and "32K" of cache always means 32 KiB. */
static double unit_factor(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
    double factor = 1;
    if (letter) {
        for (const char *at = letters; at <= letter; at++)
            factor *= 1024;
        unit++;
        if (*unit == 'i')
            unit++;
    }
    if (*unit == 'B')
        unit++;
    return *unit ? 0 : factor;
}

int str_parse_bytes(const char *text, uint64_t *out_bytes)
{
    char number[32];
    size_t length = text ? strspn(text, "0123456789.") : 0;
    if (!length || length >= sizeof number)
        return -EINVAL;
    memcpy(number, text, length);
    number[length] = '\0';
    const char *unit = text + length;
    while (*unit == ' ')
        unit++;
    double factor = unit_factor(unit);
    if (factor == 0)
        return -EINVAL;
    uint64_t whole = 0;
    if (factor == 1 && !strchr(number, '.'))
        return str_parse_u64(number, out_bytes);
    double value = 0;
    if (!strchr(number, '.') && str_parse_u64(number, &whole) == 0)
        value = (double)whole;
    else if (str_parse_f64(number, &value))
        return -EINVAL;
    value *= factor;
    if (value >= 9.2e18)
        return -ERANGE;
    if (value != floor(value))
        return -EINVAL;
    *out_bytes = (uint64_t)value;
    return 0;
}

static size_t edit_distance(const char *a, const char *b)
{
    enum { WORD_MAX = 64 };
    size_t row[WORD_MAX + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > WORD_MAX || b_length > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < best_distance || (!best && distance == best_distance)) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

uint64_t str_hash_bytes(const char *bytes, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

uint64_t str_hash(const char *text)
{
    return str_hash_bytes(text, strlen(text));
}
