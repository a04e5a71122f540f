/* Loads libnvidia-ml.so.1. */
#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define AT(field) offsetof(struct nvml, field)

/* `other`: the name in other versions of NVML, for the same arguments. */
static const struct symbol {
    size_t offset;
    const char *name, *other;
    bool required;
} symbols[] = {
    {AT(init), "nvmlInit_v2", NULL, true},
    {AT(shutdown), "nvmlShutdown", NULL, true},
    {AT(handle_by_pci), "nvmlDeviceGetHandleByPciBusId_v2", NULL, true},
    {AT(handle_by_uuid), "nvmlDeviceGetHandleByUUID"},
    {AT(error_string), "nvmlErrorString"},
    {AT(system_driver_version), "nvmlSystemGetDriverVersion"},
    {AT(pci_info), "nvmlDeviceGetPciInfo_v3"},
    {AT(attributes), "nvmlDeviceGetAttributes_v2"},
    {AT(margin), "nvmlDeviceGetMarginTemperature"},
    {AT(violation), "nvmlDeviceGetViolationStatus"},
    {AT(link_state), "nvmlDeviceGetNvLinkState"},
    {AT(link_errors), "nvmlDeviceGetNvLinkErrorCounter"},
    {AT(fabric), "nvmlDeviceGetGpuFabricInfoV"},
    {AT(fabric_v1), "nvmlDeviceGetGpuFabricInfo"},
    {AT(events_create), "nvmlEventSetCreate"},
    {AT(events_register), "nvmlDeviceRegisterEvents"},
    {AT(events_wait), "nvmlEventSetWait_v2", "nvmlEventSetWait"},
    {AT(events_free), "nvmlEventSetFree"},
    {AT(cpu_affinity), "nvmlDeviceGetCpuAffinity"},
    {AT(throttle_reasons), "nvmlDeviceGetCurrentClocksEventReasons",
     "nvmlDeviceGetCurrentClocksThrottleReasons"},
    {AT(minor_number), "nvmlDeviceGetMinorNumber"},
    {AT(mig_mode), "nvmlDeviceGetMigMode"},
    {AT(processes), "nvmlDeviceGetComputeRunningProcesses_v3",
     "nvmlDeviceGetComputeRunningProcesses_v2"},
    {AT(mps_processes), "nvmlDeviceGetMPSComputeRunningProcesses_v3",
     "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
};

static bool find_symbols(struct nvml *nvml)
{
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        void *address = dlsym(nvml->library, symbols[i].name);
        if (!address && symbols[i].other)
            address = dlsym(nvml->library, symbols[i].other);
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

void *nvml_symbol(const struct nvml *nvml, const char *name)
{
    return nvml->library ? dlsym(nvml->library, name) : NULL;
}

nvml_device nvml_find(const struct nvml *nvml, const char *pci)
{
    nvml_device device = NULL;
    if (!nvml->library || nvml->handle_by_pci(pci, &device) != NVML_OK)
        return NULL;
    return device;
}

nvml_device nvml_find_uuid(const struct nvml *nvml, const char *uuid)
{
    nvml_device device = NULL;
    if (!nvml->library || !nvml->handle_by_uuid || nvml->handle_by_uuid(uuid, &device) != NVML_OK)
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
