/* The project's own declarations of NVML against NVIDIA's header, where that is installed. */
#include <stddef.h>
#include <stdio.h>

#include "device/cuda/nvml.h"

enum { SKIPPED = 77 };

#if defined __has_include && __has_include(<nvml.h>)
#include <nvml.h>

#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #own)
SAME(NVML_OK, NVML_SUCCESS);
SAME(NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_TOO_SMALL, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_TIMED_OUT, NVML_ERROR_TIMEOUT);
SAME(NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(NVML_CORRUPTED_INFOROM, NVML_ERROR_CORRUPTED_INFOROM);
SAME(NVML_CLOCK_OF_SM, NVML_CLOCK_SM);
SAME(NVML_CLOCK_OF_MEMORY, NVML_CLOCK_MEM);
SAME(NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME(NVML_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME(NVML_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME(NVML_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME(NVML_SINCE_RESET, NVML_VOLATILE_ECC);
SAME(NVML_EVER, NVML_AGGREGATE_ECC);
SAME(NVML_PLACE_L1, NVML_MEMORY_LOCATION_L1_CACHE);
SAME(NVML_PLACE_L2, NVML_MEMORY_LOCATION_L2_CACHE);
SAME(NVML_PLACE_DRAM, NVML_MEMORY_LOCATION_DRAM);
SAME(NVML_PLACE_REGISTERS, NVML_MEMORY_LOCATION_REGISTER_FILE);
SAME(NVML_PLACE_TEXTURE, NVML_MEMORY_LOCATION_TEXTURE_MEMORY);
SAME(NVML_PLACE_SHARED, NVML_MEMORY_LOCATION_TEXTURE_SHM);
SAME(NVML_PLACE_CBU, NVML_MEMORY_LOCATION_CBU);
SAME(NVML_PLACE_SRAM, NVML_MEMORY_LOCATION_SRAM);
SAME(NVML_RETIRED_CORRECTED, NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS);
SAME(NVML_RETIRED_UNCORRECTED, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR);
SAME(NVML_POLICY_POWER, NVML_PERF_POLICY_POWER);
SAME(NVML_POLICY_THERMAL, NVML_PERF_POLICY_THERMAL);
SAME(NVML_FIELD_MEMORY_TEMPERATURE, NVML_FI_DEV_MEMORY_TEMP);
SAME(NVML_FIELD_ENERGY, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
#ifdef NVML_FI_DEV_POWER_INSTANT
SAME(NVML_FIELD_POWER_NOW, NVML_FI_DEV_POWER_INSTANT);
#endif
SAME(NVML_LINKS, NVML_NVLINK_MAX_LINKS);
SAME(NVML_IS_REAL, NVML_VALUE_TYPE_DOUBLE);
SAME(NVML_IS_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(NVML_IS_UNSIGNED_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME(NVML_IS_UNSIGNED_LONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(NVML_IS_SIGNED_LONG_LONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
#if NVML_API_VERSION > 11
SAME(NVML_IS_SIGNED, NVML_VALUE_TYPE_SIGNED_INT);
#endif
#ifdef nvmlMarginTemperature_v1
SAME(NVML_MARGIN_VERSION, nvmlMarginTemperature_v1);
SAME(sizeof(struct nvml_margin), sizeof(nvmlMarginTemperature_v1_t));
SAME(offsetof(struct nvml_margin, margin_c),
     offsetof(nvmlMarginTemperature_v1_t, marginTemperature));
#endif

#define SAME_PLACE(own, field, theirs, their_field)                                                \
    SAME(offsetof(struct own, field), offsetof(theirs, their_field))
SAME(sizeof(struct nvml_pci), sizeof(nvmlPciInfo_t));
SAME_PLACE(nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_PLACE(nvml_pci, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(nvml_pci, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_PLACE(nvml_pci, bus_id, nvmlPciInfo_t, busId);
SAME(sizeof(union nvml_number), sizeof(nvmlValue_t));
SAME(sizeof(struct nvml_field), sizeof(nvmlFieldValue_t));
SAME_PLACE(nvml_field, id, nvmlFieldValue_t, fieldId);
SAME_PLACE(nvml_field, type, nvmlFieldValue_t, valueType);
SAME_PLACE(nvml_field, result, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(nvml_field, value, nvmlFieldValue_t, value);
SAME(sizeof(struct nvml_violation), sizeof(nvmlViolationTime_t));
SAME_PLACE(nvml_violation, violation_ns, nvmlViolationTime_t, violationTime);
SAME(sizeof(struct nvml_banks), sizeof(nvmlRowRemapperHistogramValues_t));
SAME_PLACE(nvml_banks, high, nvmlRowRemapperHistogramValues_t, high);
SAME_PLACE(nvml_banks, partial, nvmlRowRemapperHistogramValues_t, partial);
SAME_PLACE(nvml_banks, low, nvmlRowRemapperHistogramValues_t, low);
SAME_PLACE(nvml_banks, none, nvmlRowRemapperHistogramValues_t, none);
SAME(sizeof(struct nvml_process), sizeof(nvmlProcessInfo_t));
SAME_PLACE(nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_PLACE(nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME(sizeof(struct nvml_attributes), sizeof(nvmlDeviceAttributes_t));
SAME_PLACE(nvml_attributes, sms, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_PLACE(nvml_attributes, gpu_slices, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
SAME_PLACE(nvml_attributes, compute_slices, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_PLACE(nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME(sizeof(struct nvml_profile), sizeof(nvmlGpuInstanceProfileInfo_t));
SAME_PLACE(nvml_profile, sms, nvmlGpuInstanceProfileInfo_t, multiprocessorCount);
SAME_PLACE(nvml_profile, memory_mib, nvmlGpuInstanceProfileInfo_t, memorySizeMB);
SAME(NVML_VIRTUALIZATION_VGPU, NVML_GPU_VIRTUALIZATION_MODE_VGPU);
#ifdef NVML_CC_SYSTEM_FEATURE_ENABLED
SAME(sizeof(struct nvml_confidential_state), sizeof(nvmlConfComputeSystemState_t));
SAME_PLACE(nvml_confidential_state, enabled, nvmlConfComputeSystemState_t, ccFeature);
SAME_PLACE(nvml_confidential_state, devtools, nvmlConfComputeSystemState_t, devToolsMode);
#endif
#ifdef nvmlSystemConfComputeSettings_v1
SAME(NVML_CONFIDENTIAL_VERSION, nvmlSystemConfComputeSettings_v1);
SAME(sizeof(struct nvml_confidential), sizeof(nvmlSystemConfComputeSettings_v1_t));
SAME_PLACE(nvml_confidential, enabled, nvmlSystemConfComputeSettings_v1_t, ccFeature);
SAME_PLACE(nvml_confidential, devtools, nvmlSystemConfComputeSettings_v1_t, devToolsMode);
SAME_PLACE(nvml_confidential, multi_gpu, nvmlSystemConfComputeSettings_v1_t, multiGpuMode);
SAME(NVML_MULTI_GPU_PROTECTED_PCIE, NVML_CC_SYSTEM_MULTIGPU_PROTECTED_PCIE);
#endif
SAME(NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME(sizeof(struct nvml_event), sizeof(nvmlEventData_t));
SAME_PLACE(nvml_event, type, nvmlEventData_t, eventType);
SAME_PLACE(nvml_event, data, nvmlEventData_t, eventData);
#ifdef NVML_GPU_FABRIC_STATE_COMPLETED
SAME(NVML_FABRIC_NOT_STARTED, NVML_GPU_FABRIC_STATE_NOT_STARTED);
SAME(NVML_FABRIC_IN_PROGRESS, NVML_GPU_FABRIC_STATE_IN_PROGRESS);
SAME(NVML_FABRIC_COMPLETED, NVML_GPU_FABRIC_STATE_COMPLETED);
SAME(sizeof(struct nvml_fabric_v1), sizeof(nvmlGpuFabricInfo_t));
SAME_PLACE(nvml_fabric_v1, status, nvmlGpuFabricInfo_t, status);
SAME_PLACE(nvml_fabric_v1, state, nvmlGpuFabricInfo_t, state);
#endif
#ifdef nvmlGpuFabricInfo_v2
SAME(NVML_FABRIC_VERSION, nvmlGpuFabricInfo_v2);
SAME(sizeof(struct nvml_fabric), sizeof(nvmlGpuFabricInfo_v2_t));
SAME_PLACE(nvml_fabric, status, nvmlGpuFabricInfo_v2_t, status);
SAME_PLACE(nvml_fabric, state, nvmlGpuFabricInfo_v2_t, state);
SAME_PLACE(nvml_fabric, health, nvmlGpuFabricInfo_v2_t, healthMask);
SAME_PLACE(nvml_fabric, cluster, nvmlGpuFabricInfo_v2_t, clusterUuid);
SAME_PLACE(nvml_fabric, clique, nvmlGpuFabricInfo_v2_t, cliqueId);
#endif

int main(void)
{
    printf("as in NVIDIA's header of version %d\n", NVML_API_VERSION);
    return 0;
}
#else
int main(void)
{
    printf("skipped: no nvml.h\n");
    return SKIPPED;
}
#endif
