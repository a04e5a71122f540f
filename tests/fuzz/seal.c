/* Sums of damaged bytes put right, so that a fuzz run comes past them. */
#include <stdlib.h>
#include <string.h>

#include "device/record/entry.h"
#include "fuzz.h"
#include "inventory/wire/frame.h"
#include "predict/trace/page.h"

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

/* The number of pages, in the last page, is put right, too. */
void fuzz_seal_trace(uint8_t *data, size_t size)
{
    enum { PAGE_BYTES_AT = 20, KIND_AT = 8, USED_AT = 10, PAGES_AT = 72 };
    uint32_t bytes = size >= TRACE_PAGE_BYTES_MIN ? trace_page_u32(data + PAGE_BYTES_AT) : 0;
    if (bytes < TRACE_PAGE_BYTES_MIN || bytes > TRACE_PAGE_BYTES_MAX || bytes & (bytes - 1))
        return;
    for (uint32_t number = 0; number < size / bytes; number++) {
        uint8_t *page = data + (size_t)number * bytes;
        uint32_t used = page[USED_AT] | (uint32_t)page[USED_AT + 1] << 8;
        used = used < TRACE_PAGE_HEADER || used > bytes ? bytes : used;
        if (page[KIND_AT] == TRACE_PAGE_TOTALS)
            trace_page_put_u32(page + PAGES_AT, (uint32_t)(size / bytes));
        trace_page_seal(page, bytes,
                        (struct trace_page){(enum trace_page_kind)page[KIND_AT], number, used});
    }
}
