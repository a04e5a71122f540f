/* NVML, loaded at run time; the project's own declarations of what is used of it. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_NVML_H
#define GPUMEMTOPO_DEVICE_CUDA_NVML_H

#include <stdbool.h>

#include "base/err.h"

typedef struct nvmlDevice_st *nvml_device;

enum {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_TEXT_MAX = 96,
};
enum nvml_clock { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

/* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3. */
struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned pci_device_id;    /* device id << 16 | vendor id */
    unsigned pci_subsystem_id; /* the same of the board */
    char bus_id[32];
};

typedef int nvml_get_number(nvml_device device, unsigned *value);
typedef int nvml_get_pair(nvml_device device, unsigned *current, unsigned *pending);
typedef int nvml_get_text(nvml_device device, char *text, unsigned length);
typedef int nvml_get_clock(nvml_device device, enum nvml_clock clock, unsigned *mhz);

/* Functions that the installed NVML has not are NULL. */
struct nvml {
    void *library;               /* NULL: none */
    char missing[NVML_TEXT_MAX]; /* why, when there is none */

    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*system_driver_version)(char *text, unsigned length);
    int (*handle_by_pci)(const char *bus_id, nvml_device *device);
    int (*pci_info)(nvml_device device, struct nvml_pci *pci);
    int (*throttle_reasons)(nvml_device device, unsigned long long *reasons);
    nvml_get_number *minor_number, *persistence_mode, *compute_mode;
    nvml_get_number *power_limit, *power_default_limit;
    nvml_get_number *pcie_generation, *pcie_width, *pcie_generation_max, *pcie_width_max;
    nvml_get_number *gpu_cores;
    nvml_get_pair *ecc_mode, *mig_mode;
    nvml_get_text *serial, *board_part_number, *vbios_version, *inforom_version;
    nvml_get_clock *clock, *clock_max, *clock_application;
};

/* Never fails: without NVML everything it would tell is unknown. Released with nvml_unload. */
void nvml_load(struct nvml *nvml);
void nvml_unload(struct nvml *nvml); /* zeroed is fine */

/* The device at a PCI address ("0000:1b:00.0"); NULL when NVML has none there. */
nvml_device nvml_find(const struct nvml *nvml, const char *pci);

/* Why a call gave nothing: "not supported", ... */
const char *nvml_reason(const struct nvml *nvml, int result);

#endif
