/* Texts from which traces are made: what NVBit's mem_trace prints, and CSV. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "predict/trace/convert.h"
#include "predict/trace/page.h"

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

/* The index of a trace has an entry for each block of the grid. Small pages make one of 286 MB for
 * the largest grid; large ones one of 8 MB. */
static uint32_t page_bytes_of(const uint8_t *data, size_t size)
{
    enum { NEAR = 60, DIGITS_MAX = 6 };
    for (size_t at = 0; at + 4 <= size; at++) {
        size_t digits = 0, end = size - at < NEAR ? size : at + NEAR;
        if (memcmp(data + at, "grid", 4) != 0)
            continue;
        for (size_t i = at + 4; i < end; i++)
            digits += isxdigit(data[i]) != 0;
        if (digits > DIGITS_MAX)
            return TRACE_PAGE_BYTES_MAX;
    }
    return TRACE_PAGE_BYTES_MIN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!path[0]) {
        snprintf(path, sizeof path, "/dev/shm/fuzz-%d.trace", (int)getpid());
        atexit(remove_file);
    }
    struct convert_request request = {.in = fuzz_file(data, size),
                                      .out = path,
                                      .sort_bytes = 1024,
                                      .page_bytes = page_bytes_of(data, size),
                                      .has_launch = size && data[size - 1] == '1',
                                      .launch = 1};
    struct convert_result result;
    struct err err = {0};
    convert_nvbit(&request, &result, &err);
    request.has_launch = false;
    convert_csv(&request, &result, &err);
    return 0;
}
