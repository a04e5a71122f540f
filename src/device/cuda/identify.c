/* What the driver and NVML report of a GPU. Each fact is known or unknown by itself. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda/gpu.h"

/* The driver makes code from PTX although there is machine code. */
static bool is_forced(void)
{
    const char *text = getenv("CUDA_FORCE_PTX_JIT");
    return text && *text && strcmp(text, "0") != 0;
}

/* The fact `kernels`: what the driver says it has loaded, and the toolkit that made it: "sm_90 of
 * CUDA 13.0" or "JIT of compute_90 of CUDA 13.0". The machine code of each architecture was made
 * from its own PTX. */
static void report_kernels(const struct cuda_gpu *gpu, struct facts *board)
{
    const struct driver *driver = gpu->driver;
    CUfunction kernel = gpu->chase[DEVICE_GLOBAL_CA];
    int binary = 0, ptx = 0;
    struct err why = {0};
    char text[64];
    if (cuda_check(gpu,
                   driver->cuFuncGetAttribute(&binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel),
                   "cuFuncGetAttribute", &why) ||
        cuda_check(gpu, driver->cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel),
                   "cuFuncGetAttribute", &why)) {
        facts_set_unknown(board, "kernels", why.text);
        return;
    }
    bool jit = binary != ptx || !flavour_is_built(gpu->flavour, binary) || is_forced();
    snprintf(text, sizeof text, "%s%d of CUDA %d.%d", jit ? "JIT of compute_" : "sm_",
             jit ? ptx : binary, gpu->flavour->toolkit / 1000, gpu->flavour->toolkit % 1000 / 10);
    facts_set_text(board, "kernels", text);
}

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
    {"l2_persisting_max_bytes", CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 1},
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
    case 3:
        return "kepler";
    case 5:
        return "maxwell";
    case 6:
        return "pascal";
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
        return major < 7 ? "older than kepler" : "newer than blackwell";
    }
}

static int report_capability(const struct cuda_gpu *gpu, struct facts *facts, struct err *err)
{
    int major, minor;
    char text[32];
    int rc = cuda_capability(gpu, &major, &minor, err);
    if (rc)
        return rc;
    snprintf(text, sizeof text, "%d.%d", major, minor);
    facts_set_text(facts, "architecture", architecture_name(major, minor));
    facts_set_text(facts, "compute_capability", text);
    return 0;
}

static void report_attributes(const struct cuda_gpu *gpu, struct facts *facts)
{
    for (size_t i = 0; i < COUNT_OF(attribute_facts); i++) {
        const struct attribute_fact *fact = &attribute_facts[i];
        struct err why = {0};
        int value;
        if (cuda_attribute(gpu, fact->attribute, &value, &why))
            facts_set_unknown(facts, fact->key, why.text);
        else
            facts_set_int(facts, fact->key, value / fact->divisor);
    }
    size_t bytes;
    if (gpu->driver->cuDeviceTotalMem(&bytes, gpu->device) != CUDA_SUCCESS)
        facts_set_unknown(facts, "memory_bytes", "the driver does not say");
    else
        facts_set_int(facts, "memory_bytes", (int64_t)bytes);
}

static void report_driver(const struct nvml *nvml, const struct driver *driver, struct facts *facts)
{
    char text[NVML_TEXT_BYTES] = "";
    int result = NVML_FUNCTION_NOT_FOUND;
    if (nvml->library && nvml->system_driver_version)
        result = nvml->system_driver_version(text, sizeof text);
    if (!nvml->library)
        facts_set_unknown(facts, "driver", nvml->missing);
    else if (result != NVML_OK)
        facts_set_unknown(facts, "driver", nvml_reason(nvml, result));
    else
        facts_set_text(facts, "driver", text);
    snprintf(text, sizeof text, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    facts_set_text(facts, "cuda", text);
}

void cuda_report_board(const struct nvml_gpu *nvml_gpu, const struct driver *driver,
                       struct facts *board)
{
    nvml_report_settings(nvml_gpu, INVENTORY_BOARD, board);
    report_driver(nvml_gpu->nvml, driver, board);
}

/* The share that a MIG instance has of what the largest profile of its GPU has. */
static void report_share(const struct nvml_gpu *gpu, const char *key, double own, double whole,
                         struct facts *config)
{
    if (own > 0 && own <= whole)
        facts_set_real(config, key, round(1000 * own / whole) / 1000);
    else
        nvml_report_number(gpu, key, NVML_NOT_SUPPORTED, 0, config);
}

/* NVML knows health, power and clocks of whole GPUs only. */
static void report_instance(const struct nvml_gpu *gpu, struct facts *config)
{
    const struct nvml *nvml = gpu->nvml;
    struct nvml_attributes own = {0};
    double sms = 0, memory_mib = 0;
    if (!gpu->instance || !nvml->attributes || nvml->attributes(gpu->instance, &own) != NVML_OK)
        own = (struct nvml_attributes){0};
    for (unsigned i = 0; gpu->handle && nvml->profile && i < NVML_PROFILES; i++) {
        struct nvml_profile profile = {0};
        if (nvml->profile(gpu->handle, i, &profile) != NVML_OK)
            continue;
        sms = fmax(sms, profile.sms);
        memory_mib = fmax(memory_mib, (double)profile.memory_mib);
    }
    facts_set_text(config, "mig_profile", gpu->profile);
    facts_set_text(config, "health_of", "whole GPU");
    report_share(gpu, "mig_sm_share", own.sms, sms, config);
    report_share(gpu, "mig_memory_share", (double)own.memory_mib, memory_mib, config);
}

void cuda_report_config(const struct nvml_gpu *nvml_gpu, struct facts *config)
{
    nvml_report_settings(nvml_gpu, INVENTORY_CONFIG, config);
    if (nvml_gpu->profile[0])
        report_instance(nvml_gpu, config);
}

int cuda_identify(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct cuda_gpu *gpu = cuda_of(device);
    struct device_identity *identity = answer;
    struct facts *hardware = &identity->hardware, *board = &identity->board,
                 *config = &identity->config;
    (void)request;
    struct err why = {0};
    uint32_t fetch_bytes;
    int rc = report_capability(gpu, hardware, err);
    if (rc)
        return rc;
    nvml_report_settings(&gpu->nvml_gpu, INVENTORY_HARDWARE, hardware);
    report_attributes(gpu, hardware);
    cuda_report_board(&gpu->nvml_gpu, gpu->driver, board);
    report_kernels(gpu, board);
    cuda_report_config(&gpu->nvml_gpu, config);
    facts_set_int(config, "memory_free_bytes", (int64_t)gpu->free_bytes);
    if (cuda_l2_fetch_limit(gpu, &fetch_bytes, &why))
        facts_set_unknown(config, "l2_fetch_limit_bytes", why.text);
    else
        facts_set_int(config, "l2_fetch_limit_bytes", fetch_bytes);
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
    watch_poll(&gpu->watch, &gpu->nvml_gpu);
    cuda_begin_link(device, request, &link, err);
    bool loaded = !gpu->lost && cuda_watch_link(gpu, &seen, NULL) == 0;
    cuda_end_link(device);
    nvml_report(&gpu->nvml_gpu, "pcie_gen", &generation, config);
    nvml_report(&gpu->nvml_gpu, "pcie_width", &width, config);
    if (loaded && seen.generation)
        facts_set_int(config, "pcie_gen", seen.generation);
    if (loaded && seen.width)
        facts_set_int(config, "pcie_width", seen.width);
    facts_set_bool(config, "pcie_under_load", loaded);
    health_report(&gpu->nvml_gpu, &gpu->watch, health);
    health_report_slow(&gpu->nvml_gpu, &gpu->watch, health);
    return 0;
}
