/* Single values as YAML text. */
#include "schema/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "schema/utf8.h"

/* Words that YAML 1.1 reads as a boolean or null, in any case. */
static bool is_reserved(const char *text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    if (!strchr("yYnNoOtTfF", *text)) /* saves the comparisons for most texts */
        return false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
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

/* 0.1.0, 550.54.14: with two dots no reader takes it for a number or a time. */
static bool is_version(const char *text)
{
    size_t dots = 0, i = 0;
    for (; is_digit(text[i]) || (text[i] == '.' && is_digit(text[i + 1])); i++)
        dots += text[i] == '.';
    return !text[i] && is_digit(text[0]) && dots >= 2;
}

/* Deliberately narrow: unnecessary quotes do no harm. */
static bool scalar_is_plain(const char *text)
{
    if (!is_letter(*text) && *text != '_' && *text != '/')
        return is_version(text);
    size_t i = 1;
    while (is_letter(text[i]) || is_digit(text[i]) || (text[i] && strchr("_-./+()= ", text[i])))
        i++;
    return !text[i] && text[i - 1] != ' ' && !is_reserved(text);
}

/* C1 controls, line separators, the byte order mark and non-characters must be escaped. */
static bool needs_escape(uint32_t code)
{
    return code < 0xa0 || code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe ||
           code == 0xffff;
}

/* Appends the character at `text` and returns its length in bytes. */
static size_t put_wide(struct strbuf *buffer, const char *text)
{
    uint32_t code;
    size_t length = utf8_decode(text, &code);
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

static void scalar_put_quoted(struct strbuf *buffer, const char *text)
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
    else if (scalar_is_plain(text))
        strbuf_puts(buffer, text);
    else
        scalar_put_quoted(buffer, text);
}

enum { PLACES_MAX = 21 };

/* value = mantissa * 2^-shift, with all 53 bits of the mantissa used. */
struct binary {
    uint64_t mantissa;
    unsigned shift;
};

/* True if the nearest decimal with that many places reads back as the number: it lies less than
 * half a unit in the last place away (a quarter below a power of two). Exact: below 10^21 * 2^53
 * every product fits into 128 bits. */
static bool reads_back(const struct binary *number, unsigned __int128 power, int64_t *out_digits)
{
    unsigned __int128 exact = number->mantissa * power;
    unsigned __int128 half = (unsigned __int128)1 << (number->shift - 1);
    unsigned __int128 digits = (exact + half) >> number->shift;
    unsigned __int128 rounded = digits << number->shift;
    unsigned __int128 distance = rounded > exact ? rounded - exact : exact - rounded;
    unsigned factor = number->mantissa == (uint64_t)1 << 52 ? 4 : 2;
    *out_digits = (int64_t)digits;
    return distance * factor < power;
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

static unsigned __int128 power_of_ten(unsigned exponent)
{
    static const uint64_t low[] = {1,       10,       100,       1000,       10000,      100000,
                                   1000000, 10000000, 100000000, 1000000000, 10000000000};
    return exponent <= 10 ? low[exponent]
                          : (unsigned __int128)low[10] * power_of_ten(exponent - 10);
}

/* Prints numbers of usual size without printf and strtod, which would cost seconds for the file of
 * a large fleet. False if the number is not of that size. */
static bool put_decimal(struct strbuf *buffer, double value)
{
    int exponent;
    double size = fabs(value), fraction = frexp(size, &exponent);
    if (size == 0) {
        strbuf_puts(buffer, "0");
        return true;
    }
    if (size < 1e-5 || size >= 0x1p52)
        return false;
    struct binary number = {(uint64_t)(fraction * 0x1p53), (unsigned)(53 - exponent)};
    int64_t digits;
    /* If k places read back, so do k + 1: search for the fewest. */
    unsigned low = 0, high = PLACES_MAX;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (reads_back(&number, power_of_ten(middle), &digits))
            high = middle;
        else
            low = middle + 1;
    }
    reads_back(&number, power_of_ten(low), &digits);
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
    /* YAML 1.1 requires a point in a number with an exponent. */
    char *exponent = strchr(text, 'e');
    if (exponent && !strchr(text, '.')) {
        memmove(exponent + 2, exponent, strlen(exponent) + 1);
        memcpy(exponent, ".0", 2);
    }
    strbuf_puts(buffer, text);
}
