/* A fuzz target: one reader, fed with bytes that may be anything. */
#ifndef GPUMEMTOPO_TESTS_FUZZ_FUZZ_H
#define GPUMEMTOPO_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file that can be opened by name, for readers that want one; the same each time. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* A copy to be freed. */
uint8_t *fuzz_copy(const uint8_t *data, size_t size);

/* Puts the sums right of frames that follow each other, of a record's entries or of a trace's
 * pages, as far as their lengths make sense. */
void fuzz_seal_frames(uint8_t *data, size_t size);
void fuzz_seal_record(uint8_t *data, size_t size);
void fuzz_seal_trace(uint8_t *data, size_t size);

#endif
