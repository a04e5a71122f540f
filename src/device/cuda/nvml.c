/* Loading libnvidia-ml.so.1. */
#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct symbol {
    const char *name;
    size_t offset;
    bool required;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, handle_by_pci), true},
    {"nvmlErrorString", offsetof(struct nvml, error_string), false},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, system_driver_version), false},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, pci_info), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, throttle_reasons), false},
    {"nvmlDeviceGetMinorNumber", offsetof(struct nvml, minor_number), false},
    {"nvmlDeviceGetPersistenceMode", offsetof(struct nvml, persistence_mode), false},
    {"nvmlDeviceGetComputeMode", offsetof(struct nvml, compute_mode), false},
    {"nvmlDeviceGetPowerManagementLimit", offsetof(struct nvml, power_limit), false},
    {"nvmlDeviceGetPowerManagementDefaultLimit", offsetof(struct nvml, power_default_limit), false},
    {"nvmlDeviceGetCurrPcieLinkGeneration", offsetof(struct nvml, pcie_generation), false},
    {"nvmlDeviceGetCurrPcieLinkWidth", offsetof(struct nvml, pcie_width), false},
    {"nvmlDeviceGetMaxPcieLinkGeneration", offsetof(struct nvml, pcie_generation_max), false},
    {"nvmlDeviceGetMaxPcieLinkWidth", offsetof(struct nvml, pcie_width_max), false},
    {"nvmlDeviceGetNumGpuCores", offsetof(struct nvml, gpu_cores), false},
    {"nvmlDeviceGetEccMode", offsetof(struct nvml, ecc_mode), false},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig_mode), false},
    {"nvmlDeviceGetSerial", offsetof(struct nvml, serial), false},
    {"nvmlDeviceGetBoardPartNumber", offsetof(struct nvml, board_part_number), false},
    {"nvmlDeviceGetVbiosVersion", offsetof(struct nvml, vbios_version), false},
    {"nvmlDeviceGetInforomImageVersion", offsetof(struct nvml, inforom_version), false},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock), false},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, clock_max), false},
    {"nvmlDeviceGetApplicationsClock", offsetof(struct nvml, clock_application), false},
};

static bool find_symbols(struct nvml *nvml)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(nvml->library, symbols[i].name);
        if (!address && symbols[i].required) {
            snprintf(nvml->missing, sizeof nvml->missing, "NVML has no %s", symbols[i].name);
            return false;
        }
        memcpy((char *)nvml + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

void nvml_load(struct nvml *nvml)
{
    *nvml = (struct nvml){0};
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(nvml->missing, sizeof nvml->missing, "libnvidia-ml.so.1 not found");
        return;
    }
    bool usable = find_symbols(nvml);
    if (usable) {
        int result = nvml->init();
        usable = result == NVML_OK;
        if (!usable)
            snprintf(nvml->missing, sizeof nvml->missing, "nvmlInit: %s",
                     nvml_reason(nvml, result));
    }
    if (!usable) {
        dlclose(nvml->library);
        nvml->library = NULL;
    }
}

void nvml_unload(struct nvml *nvml)
{
    if (nvml->library) {
        nvml->shutdown();
        dlclose(nvml->library);
    }
    *nvml = (struct nvml){0};
}

nvml_device nvml_find(const struct nvml *nvml, const char *pci)
{
    nvml_device device = NULL;
    if (!nvml->library || nvml->handle_by_pci(pci, &device) != NVML_OK)
        return NULL;
    return device;
}

const char *nvml_reason(const struct nvml *nvml, int result)
{
    if (result == NVML_NOT_SUPPORTED)
        return "not supported";
    if (result == NVML_FUNCTION_NOT_FOUND)
        return "not in this NVML";
    return nvml->error_string ? nvml->error_string(result) : "NVML error";
}
