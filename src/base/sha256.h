/* SHA-256 (FIPS 180-4), to name a file by its content. */
#ifndef GPUMEMTOPO_BASE_SHA256_H
#define GPUMEMTOPO_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_TEXT = 65 };

/* The digest as 64 hexadecimal digits, as sha256sum prints it. */
void sha256_text(const char *bytes, size_t length, char out_text[SHA256_TEXT]);

#endif
