/* Simulated fleets and models. A fleet finds a good model as /proc/self/fd/100. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/sim/sim.h"
#include "device/source.h"
#include "fuzz.h"

enum { MODEL_FD = 100 };

static void offer_model(void)
{
    if (fcntl(MODEL_FD, F_GETFD) >= 0)
        return;
    int fd = open(FUZZ_MODEL, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || dup2(fd, MODEL_FD) < 0)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct device_source *source = NULL;
    struct sim_model *model = NULL;
    struct err err = {0};
    offer_model();
    if (sim_model_read_text((const char *)data, size, "fuzz", &model, &err) == 0)
        sim_model_destroy(model);
    if (device_source_sim(fuzz_file(data, size), 1, 0, 1, &source, &err) == 0) {
        struct device *device = NULL;
        if (device_source_count(source) && device_source_open(source, 0, &device, &err) == 0)
            device_destroy(device);
        device_source_destroy(source);
    }
    return 0;
}
