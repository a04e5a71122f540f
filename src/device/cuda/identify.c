/* What driver and NVML tell of a GPU; each fact with its own validity. */
#include <stdio.h>

#include "device/cuda/gpu.h"

struct attribute_fact {
    const char *key;
    CUdevice_attribute attribute;
    int divisor; /* kHz to MHz */
};

/* Thesis, section 4.1. */
static const struct attribute_fact attribute_facts[] = {
    {"sms", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
    {"memory_bus_bits", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1},
    {"l2_bytes", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1},
    {"constant_bytes", CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 1},
    {"shared_per_block_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1},
    {"shared_per_sm_bytes", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 1},
    {"shared_reserved_bytes", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1},
    {"registers_per_block", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 1},
    {"registers_per_sm", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 1},
    {"threads_per_block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1},
    {"threads_per_sm", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1},
    {"blocks_per_sm", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 1},
    {"warp_size", CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1},
    {"sm_clock_max_mhz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000},
    {"memory_clock_max_mhz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000},
    {"copy_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
};

static const char *architecture_name(int major, int minor)
{
    switch (major) {
    case 7:
        return minor < 5 ? "volta" : "turing";
    case 8:
        return minor < 9 ? "ampere" : "ada";
    case 9:
        return "hopper";
    case 10:
    case 11:
    case 12:
        return "blackwell";
    default:
        return major < 7 ? "older than volta" : "newer than blackwell";
    }
}

static int tell_capability(const struct cuda_gpu *gpu, struct facts *facts, struct err *err)
{
    int major, minor;
    char text[32];
    int rc = cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, err);
    if (!rc)
        rc = cuda_attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, err);
    if (rc)
        return rc;
    snprintf(text, sizeof text, "%d.%d", major, minor);
    rc = facts_set_text(facts, "architecture", architecture_name(major, minor));
    if (!rc)
        rc = facts_set_text(facts, "compute_capability", text);
    return rc ? err_no_memory(err) : 0;
}

static int tell_attributes(const struct cuda_gpu *gpu, struct facts *facts)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof attribute_facts / sizeof *attribute_facts; i++) {
        const struct attribute_fact *fact = &attribute_facts[i];
        struct err why = {0};
        int value;
        if (cuda_attribute(gpu, fact->attribute, &value, &why))
            rc = facts_set_unknown(facts, fact->key, why.text);
        else
            rc = facts_set_int(facts, fact->key, value / fact->divisor);
    }
    size_t bytes;
    if (!rc && gpu->driver->cuDeviceTotalMem(&bytes, gpu->device) == CUDA_SUCCESS)
        rc = facts_set_int(facts, "memory_bytes", (int64_t)bytes);
    else if (!rc)
        rc = facts_set_unknown(facts, "memory_bytes", "the driver does not say");
    return rc;
}

static const char *no_nvml(const struct cuda_gpu *gpu)
{
    return gpu->nvml->library ? "NVML does not know this GPU" : gpu->nvml->missing;
}

static int tell_number(const struct cuda_gpu *gpu, struct facts *facts, const char *key,
                       nvml_get_number *get, unsigned divisor)
{
    unsigned value;
    if (!gpu->handle)
        return facts_set_unknown(facts, key, no_nvml(gpu));
    int result = get ? get(gpu->handle, &value) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return facts_set_unknown(facts, key, nvml_reason(gpu->nvml, result));
    return facts_set_int(facts, key, value / divisor);
}

static int tell_text(const struct cuda_gpu *gpu, struct facts *facts, const char *key,
                     nvml_get_text *get)
{
    char text[NVML_TEXT_MAX];
    if (!gpu->handle)
        return facts_set_unknown(facts, key, no_nvml(gpu));
    int result = get ? get(gpu->handle, text, sizeof text) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return facts_set_unknown(facts, key, nvml_reason(gpu->nvml, result));
    return facts_set_text(facts, key, text);
}

static int tell_clock(const struct cuda_gpu *gpu, struct facts *facts, const char *key,
                      nvml_get_clock *get, enum nvml_clock clock)
{
    unsigned mhz;
    if (!gpu->handle)
        return facts_set_unknown(facts, key, no_nvml(gpu));
    int result = get ? get(gpu->handle, clock, &mhz) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return facts_set_unknown(facts, key, nvml_reason(gpu->nvml, result));
    return facts_set_int(facts, key, mhz);
}

/* A mode that is on or off, now and (pending_key) after the next reset. */
static int tell_mode(const struct cuda_gpu *gpu, struct facts *facts, const char *key,
                     const char *pending_key, nvml_get_pair *get)
{
    unsigned current, pending;
    const char *reason = NULL;
    if (!gpu->handle) {
        reason = no_nvml(gpu);
    } else {
        int result = get ? get(gpu->handle, &current, &pending) : NVML_FUNCTION_NOT_FOUND;
        if (result != NVML_OK)
            reason = nvml_reason(gpu->nvml, result);
    }
    int rc =
        reason ? facts_set_unknown(facts, key, reason) : facts_set_bool(facts, key, current != 0);
    if (!rc)
        rc = reason ? facts_set_unknown(facts, pending_key, reason)
                    : facts_set_bool(facts, pending_key, pending != 0);
    return rc;
}

static int tell_compute_mode(const struct cuda_gpu *gpu, struct facts *facts)
{
    static const char *const names[] = {"default", "exclusive_thread", "prohibited",
                                        "exclusive_process"};
    nvml_get_number *get = gpu->nvml->compute_mode;
    unsigned mode;
    if (!gpu->handle)
        return facts_set_unknown(facts, "compute_mode", no_nvml(gpu));
    int result = get ? get(gpu->handle, &mode) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return facts_set_unknown(facts, "compute_mode", nvml_reason(gpu->nvml, result));
    if (mode >= sizeof names / sizeof *names)
        return facts_set_unknown(facts, "compute_mode", "a mode this program does not know");
    return facts_set_text(facts, "compute_mode", names[mode]);
}

static int tell_persistence(const struct cuda_gpu *gpu, struct facts *facts)
{
    nvml_get_number *get = gpu->nvml->persistence_mode;
    unsigned on;
    if (!gpu->handle)
        return facts_set_unknown(facts, "persistence", no_nvml(gpu));
    int result = get ? get(gpu->handle, &on) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return facts_set_unknown(facts, "persistence", nvml_reason(gpu->nvml, result));
    return facts_set_bool(facts, "persistence", on != 0);
}

static int tell_hardware(const struct cuda_gpu *gpu, struct facts *facts)
{
    const struct nvml *nvml = gpu->nvml;
    int rc = tell_attributes(gpu, facts);
    if (!rc)
        rc = tell_number(gpu, facts, "cores", nvml->gpu_cores, 1);
    if (!rc)
        rc = tell_number(gpu, facts, "pcie_gen_max", nvml->pcie_generation_max, 1);
    if (!rc)
        rc = tell_number(gpu, facts, "pcie_width_max", nvml->pcie_width_max, 1);
    return rc;
}

static int tell_driver(const struct cuda_gpu *gpu, struct facts *facts)
{
    char text[NVML_TEXT_MAX];
    int result = gpu->nvml->system_driver_version
                     ? gpu->nvml->system_driver_version(text, sizeof text)
                     : NVML_FUNCTION_NOT_FOUND;
    int rc;
    if (!gpu->nvml->library)
        rc = facts_set_unknown(facts, "driver", gpu->nvml->missing);
    else if (result != NVML_OK)
        rc = facts_set_unknown(facts, "driver", nvml_reason(gpu->nvml, result));
    else
        rc = facts_set_text(facts, "driver", text);
    snprintf(text, sizeof text, "%d.%d", gpu->driver->version / 1000,
             gpu->driver->version % 1000 / 10);
    return rc ? rc : facts_set_text(facts, "cuda", text);
}

static int tell_board(const struct cuda_gpu *gpu, struct facts *facts)
{
    const struct nvml *nvml = gpu->nvml;
    int rc = tell_text(gpu, facts, "serial", nvml->serial);
    if (!rc)
        rc = tell_text(gpu, facts, "part", nvml->board_part_number);
    if (!rc)
        rc = tell_text(gpu, facts, "vbios", nvml->vbios_version);
    if (!rc)
        rc = tell_driver(gpu, facts);
    if (!rc)
        rc = tell_text(gpu, facts, "inforom", nvml->inforom_version);
    return rc;
}

static int tell_config(const struct cuda_gpu *gpu, struct facts *facts)
{
    const struct nvml *nvml = gpu->nvml;
    const struct {
        const char *key;
        nvml_get_number *get;
        unsigned divisor;
    } numbers[] = {
        {"power_limit_w", nvml->power_limit, 1000},
        {"power_limit_default_w", nvml->power_default_limit, 1000},
    };
    int rc = tell_compute_mode(gpu, facts);
    if (!rc)
        rc = tell_persistence(gpu, facts);
    if (!rc)
        rc = tell_mode(gpu, facts, "ecc", "ecc_pending", nvml->ecc_mode);
    if (!rc)
        rc = tell_mode(gpu, facts, "mig", "mig_pending", nvml->mig_mode);
    for (size_t i = 0; !rc && i < sizeof numbers / sizeof *numbers; i++)
        rc = tell_number(gpu, facts, numbers[i].key, numbers[i].get, numbers[i].divisor);
    if (!rc)
        rc = tell_clock(gpu, facts, "sm_clock_limit_mhz", nvml->clock_max, NVML_CLOCK_SM);
    if (!rc)
        rc = tell_clock(gpu, facts, "memory_clock_limit_mhz", nvml->clock_max, NVML_CLOCK_MEMORY);
    if (!rc)
        rc = tell_clock(gpu, facts, "sm_clock_application_mhz", nvml->clock_application,
                        NVML_CLOCK_SM);
    if (!rc)
        rc = tell_clock(gpu, facts, "memory_clock_application_mhz", nvml->clock_application,
                        NVML_CLOCK_MEMORY);
    return rc;
}

int cuda_identify(struct device *device, struct facts *hardware, struct facts *board,
                  struct facts *config, struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    int rc = tell_capability(gpu, hardware, err);
    if (rc)
        return rc;
    rc = tell_hardware(gpu, hardware);
    if (!rc)
        rc = tell_board(gpu, board);
    if (!rc)
        rc = tell_config(gpu, config);
    return rc ? err_no_memory(err) : 0;
}

int cuda_read_health(struct device *device, struct facts *config, struct facts *health,
                     struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    (void)health;
    int rc = tell_number(gpu, config, "pcie_gen", gpu->nvml->pcie_generation, 1);
    if (!rc)
        rc = tell_number(gpu, config, "pcie_width", gpu->nvml->pcie_width, 1);
    return rc ? err_no_memory(err) : 0;
}
