/* Strings: copies, a growing buffer, and parsers. */
#ifndef GPUMEMTOPO_BASE_STR_H
#define GPUMEMTOPO_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies; NULL is copied as NULL. Freed with free(). */
char *str_copy(const char *text);
char *str_copy_n(const char *text, size_t length);

/* printf into fresh memory. Freed with free(). */
char *str_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool str_equal(const char *a, const char *b); /* NULL equals only NULL */
int str_order(const char *a, const char *b);  /* as strcmp; NULL counts as "" */

/* The same for sort_stable and bsearch: a and b point to items of a list of texts. */
int str_item_order(const void *a, const void *b);

/* Whether the comma-separated list has the word. NULL is an empty list. */
bool str_list_has(const char *list, const char *word);

/* The part after the last '/'. Files record programs and files by name only, without the paths of a
 * site. */
const char *str_last_part(const char *path);

/* A growing text. Zero-initialised is empty. */
struct strbuf {
    char *data; /* NUL-terminated, NULL while empty */
    size_t length;
    size_t capacity;
    bool failed; /* something was longer than its format allows (wire.h, frame.h) */
};
void strbuf_append(struct strbuf *buf, const char *data, size_t length);
void strbuf_puts(struct strbuf *buf, const char *text);
void strbuf_printf(struct strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void strbuf_fini(struct strbuf *buf);

/* "131072", "128 KiB", "128K", "1.5 MiB", "40GiB": bytes. Also accepts a trailing "B".
 * 0 or -EINVAL (syntax, negative) or -ERANGE; out_bytes untouched on failure. */
int str_parse_bytes(const char *text, uint64_t *out_bytes);

/* A whole number, decimal or 0x, and nothing else. 0, -EINVAL (also for NULL) or -ERANGE. */
int str_parse_u64(const char *text, uint64_t *out_value);

/* A finite decimal number and nothing else, independent of the locale. 0, -EINVAL or -ERANGE. */
int str_parse_f64(const char *text, double *out_value);

/* A 64-bit hash (FNV-1a). */
uint64_t str_hash(const char *text);
uint64_t str_hash_bytes(const char *bytes, size_t length);

/* The candidate nearest to `word` (edit distance at most a third of its length), for "did you
 * mean"; NULL if none is near. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

#endif
