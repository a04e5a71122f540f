/* Writes JSON piece by piece. */
#ifndef GPUMEMTOPO_REPORT_JSON_TEXT_H
#define GPUMEMTOPO_REPORT_JSON_TEXT_H

#include <stdbool.h>

#include "base/str.h"

enum { JSON_DEPTH_MAX = 40 };

/* A document being written, indented by two spaces per level. Zero-initialised except `out`. */
struct json_text {
    struct strbuf *out;
    int depth;
    bool begun[JSON_DEPTH_MAX]; /* the object or array at this depth is not empty */
};

/* Each appends a key (NULL in an array and at the top) and a value. */
void json_open(struct json_text *json, const char *key, char bracket);     /* '{' or '[' */
void json_close(struct json_text *json, char bracket);                     /* '}' or ']' */
void json_text(struct json_text *json, const char *key, const char *text); /* NULL: null */
void json_number(struct json_text *json, const char *key, double value);   /* NaN: null */
void json_bool(struct json_text *json, const char *key, bool value);
void json_raw(struct json_text *json, const char *key, const char *value); /* value is JSON */

#endif
