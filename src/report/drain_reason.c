/* The reason why a node is drained. */
#include "report/drain_reason.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { UUID_CHARS = 48, CAUSE_CHARS = 96 };

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Keeps letters, digits and a few harmless signs. ": " becomes ", " and any other ':' '-', because
 * ':' separates fields. Everything else becomes '_', also characters that a shell interprets inside
 * double quotes ($ ` \ " !). */
static char safe_char(const char *at)
{
    static const char signs[] = " .,;/+-_()%=";
    if (*at == ':')
        return at[1] == ' ' ? ',' : '-';
    return is_word_char(*at) || strchr(signs, *at) ? *at : '_';
}

/* Apostrophes, and the rest of a character of several bytes. */
static bool is_left_out(char c)
{
    return c == '\'' || ((unsigned char)c & 0xc0) == 0x80;
}

/* The number of bytes to keep of `length`: up to the last whole word if there are several. */
static size_t cut_at_word(const char *text, size_t length, size_t room)
{
    size_t end = room;
    if (length <= room)
        return length;
    while (end && text[end] != ' ')
        end--;
    while (end && !is_word_char(text[end - 1]) && text[end - 1] != ')' && text[end - 1] != '%')
        end--;
    return end ? end : room;
}

static void put_field(struct strbuf *out, const char *text, size_t chars_max)
{
    static const char cut[] = "...";
    char safe[CAUSE_CHARS * 2];
    size_t length = 0;
    strbuf_puts(out, ":");
    for (; text && *text && length < sizeof safe; text++)
        if (!is_left_out(*text))
            safe[length++] = safe_char(text);
    if (length <= chars_max) {
        strbuf_append(out, length ? safe : "-", length ? length : 1);
        return;
    }
    strbuf_append(out, safe, cut_at_word(safe, length, chars_max - (sizeof cut - 1)));
    strbuf_puts(out, cut);
}

void drain_reason_put(struct strbuf *out, const struct drain_reason *reason)
{
    strbuf_printf(out, "gpumemtopo:%s", inventory_kind_name(reason->kind));
    put_field(out, reason->uuid, UUID_CHARS);
    put_field(out, reason->cause, CAUSE_CHARS);
    put_field(out, reason->metric, DRAIN_METRIC_CHARS);
    if (fabs(reason->deviation) < 1000) /* false for NaN */
        strbuf_printf(out, ":%+.1f%%", 100 * reason->deviation);
    else
        strbuf_puts(out, ":-");
    if (reason->more_gpus)
        strbuf_printf(out, ":+%zu GPU%s", reason->more_gpus, reason->more_gpus == 1 ? "" : "s");
    else if (reason->more_findings)
        strbuf_printf(out, ":+%zu finding%s", reason->more_findings,
                      reason->more_findings == 1 ? "" : "s");
}

/* A metric: letters, digits, '.' and '_', with at least one '.'. */
static size_t metric_length(const char *text)
{
    size_t length = 0;
    bool dotted = false;
    for (; is_word_char(text[length]) || text[length] == '_' || text[length] == '.'; length++)
        dotted |= text[length] == '.';
    return dotted && length <= DRAIN_METRIC_CHARS ? length : 0;
}

void drain_reason_split(const char *text, struct drain_reason *reason, char *out_metric)
{
    const char *scope_end = text ? strstr(text, ": ") : NULL;
    const char *metric = scope_end ? scope_end + 2 : "";
    size_t length = metric_length(metric);
    const char *cause = length ? strstr(metric + length, ": ") : NULL;
    reason->cause = text;
    reason->metric = NULL;
    reason->deviation = NAN;
    if (!cause)
        return;
    memcpy(out_metric, metric, length);
    out_metric[length] = '\0';
    reason->metric = out_metric;
    reason->cause = cause + 2;
    const char *share = strstr(metric + length, " (");
    double percent;
    if (share && share < cause && sscanf(share, " (%lf %%)", &percent) == 1)
        reason->deviation = percent / 100;
}
