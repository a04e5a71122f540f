/* A fuzz target: one reader, fed with bytes that may be anything. */
#ifndef GPUMEMTOPO_TESTS_FUZZ_FUZZ_H
#define GPUMEMTOPO_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file that can be opened by name, for readers that want one; the same each time. */
const char *fuzz_file(const uint8_t *data, size_t size);

#endif
