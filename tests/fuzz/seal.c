/* Sums of damaged bytes put right, so that a fuzz run comes past them. */
#include <stdlib.h>
#include <string.h>

#include "device/replay/entry.h"
#include "device/replay/parts.h"
#include "fuzz.h"
#include "inventory/wire/frame.h"

enum { SUMMED_HEADER = 16, SUM_BYTES = 4, END_BYTES = 1 + 1 + 8 + SUM_BYTES };

uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    return copy;
}

static void put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

/* The sum covers what stands before it and what stands behind it. */
static void seal_frame(uint8_t *frame, size_t length)
{
    uint8_t *summed = malloc(SUMMED_HEADER + length);
    if (!summed)
        abort();
    memcpy(summed, frame, SUMMED_HEADER);
    memcpy(summed + SUMMED_HEADER, frame + FRAME_HEADER_BYTES, length);
    put_u32(frame + SUMMED_HEADER, frame_crc32(summed, SUMMED_HEADER + length));
    free(summed);
}

void fuzz_seal_frames(uint8_t *data, size_t size)
{
    while (size >= FRAME_HEADER_BYTES) {
        struct wire_reader header = {.data = data, .length = size, .position = 12};
        size_t length = wire_get_u32(&header);
        if (length > size - FRAME_HEADER_BYTES)
            return;
        seal_frame(data, length);
        data += FRAME_HEADER_BYTES + length;
        size -= FRAME_HEADER_BYTES + length;
    }
}

void fuzz_seal_record(uint8_t *data, size_t size)
{
    uint64_t span = 0;
    for (size_t at = RECORD_HEAD_BYTES;
         at < size && entry_span((char *)data + at, size - at, &span) > 0 && span <= size - at;
         at += (size_t)span) {
        /* The last entry says where it stands. */
        if (data[at] == ENTRY_END && span == END_BYTES) {
            put_u32(data + at + 2, (uint32_t)at);
            put_u32(data + at + 6, 0);
        }
        put_u32(data + at + span - SUM_BYTES, frame_crc32(data + at, (size_t)span - SUM_BYTES));
    }
}
