/* Single values as YAML text. */
#include "inventory/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Words that YAML 1.1 takes for a boolean or null, in any case. */
static bool is_reserved(const char *text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 0.1.0, 550.54.14: two dots make it neither a number nor a time to any reader. */
static bool is_version(const char *text)
{
    size_t dots = 0, i = 0;
    for (; is_digit(text[i]) || (text[i] == '.' && is_digit(text[i + 1])); i++)
        dots += text[i] == '.';
    return !text[i] && is_digit(text[0]) && dots >= 2;
}

/* A narrow rule on purpose: a word too many in quotes costs nothing. */
static bool is_plain(const char *text)
{
    if (!is_letter(*text) && *text != '_' && *text != '/')
        return is_version(text);
    size_t i = 1;
    while (is_letter(text[i]) || is_digit(text[i]) || (text[i] && strchr("_-./+()= ", text[i])))
        i++;
    return !text[i] && text[i - 1] != ' ' && !is_reserved(text);
}

/* Length of the UTF-8 sequence at `text` and its code point; 0 when it is none. */
static size_t decode(const unsigned char *text, uint32_t *out_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (!length || text[0] >= 0xf8)
        return 0;
    uint32_t code = text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out_code = code;
    return length;
}

/* C1 controls, line separators, the byte order mark and non-characters must not stand bare. */
static bool needs_escape(uint32_t code)
{
    return code < 0xa0 || code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe ||
           code == 0xffff;
}

/* Appends what begins at `text` and returns how many bytes of it were taken. */
static size_t put_wide(struct strbuf *buffer, const char *text)
{
    uint32_t code;
    size_t length = decode((const unsigned char *)text, &code);
    if (!length) {
        strbuf_puts(buffer, "\xef\xbf\xbd");
        return 1;
    }
    if (needs_escape(code))
        strbuf_printf(buffer, "\\u%04" PRIX32, code);
    else
        strbuf_append(buffer, text, length);
    return length;
}

static void put_narrow(struct strbuf *buffer, char c)
{
    switch (c) {
    case '\n':
        strbuf_puts(buffer, "\\n");
        break;
    case '\t':
        strbuf_puts(buffer, "\\t");
        break;
    case '\r':
        strbuf_puts(buffer, "\\r");
        break;
    case '"':
        strbuf_puts(buffer, "\\\"");
        break;
    case '\\':
        strbuf_puts(buffer, "\\\\");
        break;
    default:
        strbuf_printf(buffer, "\\x%02X", (unsigned)c);
    }
}

static bool is_bare(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void put_quoted(struct strbuf *buffer, const char *text)
{
    strbuf_puts(buffer, "\"");
    while (*text) {
        size_t run = 0;
        while (is_bare(text[run]))
            run++;
        strbuf_append(buffer, text, run);
        text += run;
        if (!*text)
            break;
        if ((unsigned char)*text < 0x80)
            put_narrow(buffer, *text++);
        else
            text += put_wide(buffer, text);
    }
    strbuf_puts(buffer, "\"");
}

void scalar_put_text(struct strbuf *buffer, const char *text)
{
    if (!text)
        strbuf_puts(buffer, "null");
    else if (is_plain(text))
        strbuf_puts(buffer, text);
    else
        put_quoted(buffer, text);
}

static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* True when `value` is the double nearest to a decimal with that many places. Whole numbers below
 * 2^53 and these powers of ten are exact, so the division rounds once, as a reader would. */
static bool has_places(double value, unsigned places, int64_t *out_digits)
{
    double scaled = value * powers[places];
    if (scaled >= 0x1p53)
        return false;
    *out_digits = llround(scaled);
    return (double)*out_digits / powers[places] == value;
}

static void append_decimal(struct strbuf *buffer, bool negative, int64_t digits, unsigned places)
{
    char text[40];
    size_t at = sizeof text;
    for (unsigned i = 0; digits || i <= places; i++) {
        if (places && i == places)
            text[--at] = '.';
        text[--at] = (char)('0' + digits % 10);
        digits /= 10;
    }
    if (negative)
        text[--at] = '-';
    strbuf_append(buffer, text + at, sizeof text - at);
}

/* The fast way, for what fits: printf and strtod would cost a large fleet's file seconds. */
static bool put_decimal(struct strbuf *buffer, double value)
{
    double size = fabs(value);
    if (size != 0 && (size < 1e-5 || size >= 0x1p53))
        return false;
    unsigned high = 15;
    while (high > 0 && size * powers[high] >= 0x1p53)
        high--;
    int64_t digits = 0;
    if (!has_places(size, high, &digits))
        return false;
    /* Who has k places has k + 1 as well: search for the fewest. */
    unsigned low = 0;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (has_places(size, middle, &digits))
            high = middle;
        else
            low = middle + 1;
    }
    has_places(size, low, &digits);
    append_decimal(buffer, value < 0, digits, low);
    return true;
}

void scalar_put_number(struct strbuf *buffer, double value)
{
    if (!isfinite(value)) {
        strbuf_puts(buffer, "null");
        return;
    }
    if (put_decimal(buffer, value))
        return;
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (digits == 17 || strtod(text, NULL) == value)
            break;
    }
    /* YAML 1.1 wants a point in a number with an exponent. */
    char *exponent = strchr(text, 'e');
    if (exponent && !strchr(text, '.')) {
        memmove(exponent + 2, exponent, strlen(exponent) + 1);
        memcpy(exponent, ".0", 2);
    }
    strbuf_puts(buffer, text);
}
