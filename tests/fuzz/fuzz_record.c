/* Records of surveys, as they are and with their sums put right: all that their GPUs answered. */
#include <stdlib.h>

#include "device/record/replay.h"
#include "fuzz.h"

static void read_all(const uint8_t *data, size_t size)
{
    struct device_source *source = NULL;
    struct err err = {0};
    if (device_source_replay(fuzz_file(data, size), 0, 1, &source, &err) == 0) {
        replay_check(source, &err);
        for (size_t i = 0; i < device_source_count(source); i++) {
            struct device_look look = {0};
            struct device *device = NULL;
            device_source_look(source, i, true, &look, &err);
            device_look_fini(&look);
            if (device_source_open(source, i, &device, &err) == 0)
                device_destroy(device);
        }
    }
    device_source_destroy(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size);
    uint8_t *sealed = fuzz_copy(data, size);
    fuzz_seal_record(sealed, size);
    read_all(sealed, size);
    free(sealed);
    return 0;
}
