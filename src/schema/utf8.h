/* Strict decoding of UTF-8. */
#ifndef GPUMEMTOPO_SCHEMA_UTF8_H
#define GPUMEMTOPO_SCHEMA_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the character at `text` (NUL-terminated, not empty), and its code point. 0 if
 * no valid sequence begins there: overlong forms, surrogates, code points above U+10FFFF. */
size_t utf8_decode(const char *text, uint32_t *out_code);

#endif
