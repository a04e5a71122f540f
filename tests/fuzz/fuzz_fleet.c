/* Simulated fleets and models. */
#include "device/sim/sim.h"
#include "device/source.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct device_source *source = NULL;
    struct sim_model *model = NULL;
    struct err err = {0};
    if (sim_model_read_text((const char *)data, size, "fuzz", &model, &err) == 0)
        sim_model_destroy(model);
    if (device_source_sim(fuzz_file(data, size), 1, 0, 1, &source, &err) == 0)
        device_source_destroy(source);
    return 0;
}
