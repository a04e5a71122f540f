/* Spool files, as they are and with their sums put right, which damage would else be caught by. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inventory/wire/frame.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_wire.h"

static void read_whole(const uint8_t *data, size_t size)
{
    struct spool_file file = {0};
    struct err err = {0};
    if (spool_read(data, size, "fuzz", &file, &err) == 0)
        spool_file_fini(&file);
}

/* The second frame's payload begins behind the first line, two headers and the first payload. */
static void read_body(const uint8_t *data, size_t size, uint32_t type)
{
    const struct frame frame = {.type = type, .payload = (const char *)data, .length = size};
    struct spool_file file = {0};
    struct err err = {0};
    spool_decode_origin(&frame, &file.origin, &err);
    spool_file_fini(&file);
    spool_decode_body(&frame, &file, &err);
    spool_file_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_whole(data, size);
    const uint8_t *line_end = memchr(data, '\n', size);
    if (line_end) {
        size_t first = (size_t)(line_end + 1 - data);
        uint8_t *copy = fuzz_copy(data, size);
        fuzz_seal_frames(copy + first, size - first);
        read_whole(copy, size);
        free(copy);
    }
    for (uint32_t type = 1; type <= 3; type++)
        read_body(data, size, type);
    struct gpu_result result = {0};
    struct err err = {0};
    uint8_t *sealed = malloc(size + 8);
    uint32_t sum = frame_crc32(data, size), version = 3;
    memcpy(sealed, &version, 4);
    memcpy(sealed + 4, &sum, 4);
    memcpy(sealed + 8, data, size);
    if (gpu_result_decode(sealed, size + 8, &result, &err) == 0)
        gpu_result_fini(&result);
    free(sealed);
    return 0;
}
