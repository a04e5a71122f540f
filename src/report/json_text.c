/* Writes JSON piece by piece. */
#include "report/json_text.h"

#include "inventory/utf8.h"
#include "inventory/yaml/scalar.h"

/* Bytes that are not UTF-8 become U+FFFD; "<" is escaped so that the text can be embedded in
 * HTML. */
static void put_string(struct strbuf *out, const char *text)
{
    strbuf_puts(out, "\"");
    while (*text) {
        uint32_t code = 0;
        size_t length = utf8_decode(text, &code);
        if (!length)
            strbuf_puts(out, "\xef\xbf\xbd");
        else if (code == '"' || code == '\\')
            strbuf_printf(out, "\\%c", (int)code);
        else if (code < 0x20 || code == '<' || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
                 code == 0x2029)
            strbuf_printf(out, "\\u%04x", (unsigned)code);
        else
            strbuf_append(out, text, length);
        text += length ? length : 1;
    }
    strbuf_puts(out, "\"");
}

static void begin(struct json_text *json, const char *key)
{
    if (json->depth)
        strbuf_printf(json->out, "%s\n%*s", json->begun[json->depth] ? "," : "", 2 * json->depth,
                      "");
    json->begun[json->depth] = true;
    if (!key)
        return;
    put_string(json->out, key);
    strbuf_puts(json->out, ": ");
}

void json_open(struct json_text *json, const char *key, char bracket)
{
    begin(json, key);
    strbuf_append(json->out, &bracket, 1);
    if (json->depth + 1 == JSON_DEPTH_MAX)
        json->out->failed = true;
    else
        json->begun[++json->depth] = false;
}

void json_close(struct json_text *json, char bracket)
{
    bool begun = json->begun[json->depth];
    if (json->depth)
        json->depth--;
    if (begun)
        strbuf_printf(json->out, "\n%*s", 2 * json->depth, "");
    strbuf_append(json->out, &bracket, 1);
    if (!json->depth)
        strbuf_puts(json->out, "\n");
}

void json_text(struct json_text *json, const char *key, const char *text)
{
    begin(json, key);
    if (text)
        put_string(json->out, text);
    else
        strbuf_puts(json->out, "null");
}

void json_number(struct json_text *json, const char *key, double value)
{
    begin(json, key);
    scalar_put_number(json->out, value);
}

void json_bool(struct json_text *json, const char *key, bool value)
{
    json_raw(json, key, value ? "true" : "false");
}

void json_raw(struct json_text *json, const char *key, const char *value)
{
    begin(json, key);
    strbuf_puts(json->out, value);
}
