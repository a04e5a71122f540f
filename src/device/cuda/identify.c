/* What the driver and NVML tell of a GPU. Each fact is known or unknown by itself. */
#include <stdio.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernel_code.h"

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
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    snprintf(text, sizeof text, "%d.%d", major, minor);
    if (facts_set_text(facts, "architecture", architecture_name(major, minor)) ||
        facts_set_text(facts, "compute_capability", text))
        return err_no_memory(err);
    return 0;
}

static int tell_attributes(const struct cuda_gpu *gpu, struct facts *facts)
{
    for (size_t i = 0; i < COUNT_OF(attribute_facts); i++) {
        const struct attribute_fact *fact = &attribute_facts[i];
        struct err why = {0};
        int value, rc;
        if (cuda_attribute(gpu, fact->attribute, &value, &why))
            rc = facts_set_unknown(facts, fact->key, why.text);
        else
            rc = facts_set_int(facts, fact->key, value / fact->divisor);
        if (rc)
            return rc;
    }
    size_t bytes;
    if (gpu->driver->cuDeviceTotalMem(&bytes, gpu->device) != CUDA_SUCCESS)
        return facts_set_unknown(facts, "memory_bytes", "the driver does not say");
    return facts_set_int(facts, "memory_bytes", (int64_t)bytes);
}

static int tell_driver(const struct nvml *nvml, const struct driver *driver, struct facts *facts)
{
    char text[NVML_TEXT_BYTES] = "";
    int rc, result = NVML_FUNCTION_NOT_FOUND;
    if (nvml->library && nvml->system_driver_version)
        result = nvml->system_driver_version(text, sizeof text);
    if (!nvml->library)
        rc = facts_set_unknown(facts, "driver", nvml->missing);
    else if (result != NVML_OK)
        rc = facts_set_unknown(facts, "driver", nvml_reason(nvml, result));
    else
        rc = facts_set_text(facts, "driver", text);
    snprintf(text, sizeof text, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    return rc ? rc : facts_set_text(facts, "cuda", text);
}

int cuda_tell_board(const struct nvml_gpu *told, const struct driver *driver, struct facts *board)
{
    nvml_tell_settings(told, INVENTORY_BOARD, board);
    return tell_driver(told->nvml, driver, board);
}

int cuda_tell_config(const struct nvml_gpu *told, struct facts *config)
{
    nvml_tell_settings(told, INVENTORY_CONFIG, config);
    return 0;
}

static int tell_l2_fetch_limit(const struct cuda_gpu *gpu, struct facts *config)
{
    static const char key[] = "l2_fetch_limit_bytes";
    struct err why = {0};
    uint32_t bytes;
    if (cuda_l2_fetch_limit(gpu, &bytes, &why))
        return facts_set_unknown(config, key, why.text);
    return facts_set_int(config, key, bytes);
}

int cuda_identify(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    struct device_identity *identity = answer;
    struct facts *hardware = &identity->hardware, *board = &identity->board,
                 *config = &identity->config;
    (void)request;
    int rc = tell_capability(gpu, hardware, err);
    if (rc)
        return rc;
    nvml_tell_settings(&gpu->told, INVENTORY_HARDWARE, hardware);
    if (tell_attributes(gpu, hardware) || cuda_tell_board(&gpu->told, gpu->driver, board) ||
        kernel_code_tell(gpu, board) || cuda_tell_config(&gpu->told, config) ||
        facts_set_int(config, "memory_free_bytes", (int64_t)gpu->free_bytes) ||
        tell_l2_fetch_limit(gpu, config))
        return err_no_memory(err);
    return 0;
}

int cuda_read_health(struct device *device, const void *request, void *answer, struct err *err)
{
    static const struct nvml_question generation = {NVML_SHAPE_NUMBER,
                                                    "nvmlDeviceGetCurrPcieLinkGeneration"},
                                      width = {NVML_SHAPE_NUMBER, "nvmlDeviceGetCurrPcieLinkWidth"};
    struct cuda_gpu *gpu = cuda_of(device);
    struct facts *config = &((struct device_health *)answer)->config,
                 *health = &((struct device_health *)answer)->health;
    struct link_seen seen;
    struct device_link link;
    if (gpu->watch.counted) /* peers may measure their links to this GPU */
        cuda_take_turn(gpu->seen.turn, gpu->seen.infos[gpu->seen.own].uuid);
    watch_poll(&gpu->watch, &gpu->told);
    cuda_begin_link(device, request, &link, err);
    bool loaded = !gpu->lost && cuda_watch_link(gpu, &seen, NULL) == 0;
    cuda_end_link(device);
    nvml_tell(&gpu->told, "pcie_gen", &generation, config);
    nvml_tell(&gpu->told, "pcie_width", &width, config);
    if (loaded && seen.generation && facts_set_int(config, "pcie_gen", seen.generation))
        return err_no_memory(err);
    if (loaded && seen.width && facts_set_int(config, "pcie_width", seen.width))
        return err_no_memory(err);
    if (facts_set_bool(config, "pcie_under_load", loaded) ||
        health_tell(&gpu->told, &gpu->watch, health) ||
        health_tell_slow(&gpu->told, &gpu->watch, health))
        return err_no_memory(err);
    return 0;
}
