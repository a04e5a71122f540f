/* Texts from which traces are made: what NVBit's mem_trace prints, and CSV. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "predict/trace/convert.h"

static char path[64];

static void remove_file(void)
{
    unlink(path);
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
                                      .page_bytes = 512,
                                      .has_launch = size && data[size - 1] == '1',
                                      .launch = 1};
    struct convert_result result;
    struct err err = {0};
    convert_nvbit(&request, &result, &err);
    request.has_launch = false;
    convert_csv(&request, &result, &err);
    return 0;
}
