/* Records of surveys. */
#include "device/replay/record_read.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record *record = NULL;
    struct err err = {0};
    if (record_open(fuzz_file(data, size), &record, &err) == 0)
        record_close(record);
    return 0;
}
