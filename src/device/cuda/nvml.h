/* NVML, loaded at run time; this file declares only what is used of it. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_NVML_H
#define GPUMEMTOPO_DEVICE_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalogue/facts.h"
#include "catalogue/nvml.h"
#include "schema/facts.h"

typedef struct nvmlDevice_st *nvml_device;
typedef struct nvmlEventSet_st *nvml_events;

/* The names differ from those of NVIDIA's nvml.h, so that a test can compare both. */
enum {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_TOO_SMALL = 7,
    NVML_TIMED_OUT = 10,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_CORRUPTED_INFOROM = 14,
};
enum { NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };
enum { NVML_LINKS = 18, NVML_LINK_COUNTERS = 4 };
enum { NVML_NEAR_NODE = 0 };
enum { NVML_EVENT_XID = 8 };
enum {
    NVML_FABRIC_NOT_SUPPORTED,
    NVML_FABRIC_NOT_STARTED,
    NVML_FABRIC_IN_PROGRESS,
    NVML_FABRIC_COMPLETED
};
enum { NVML_TEXT_BYTES = 96, NVML_PROFILE_BYTES = 48 };

/* nvmlPciInfo_t. */
struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned pci_device_id;    /* device id << 16 | vendor id */
    unsigned pci_subsystem_id; /* the same of the board */
    char bus_id[32];
};

/* nvmlValue_t and nvmlValueType_t. */
union nvml_number {
    double real;
    int signed_int;
    unsigned unsigned_int;
    unsigned long unsigned_long;
    unsigned long long unsigned_long_long;
    long long signed_long_long;
};
enum {
    NVML_IS_REAL,
    NVML_IS_UNSIGNED,
    NVML_IS_UNSIGNED_LONG,
    NVML_IS_UNSIGNED_LONG_LONG,
    NVML_IS_SIGNED_LONG_LONG,
    NVML_IS_SIGNED,
};

/* nvmlFieldValue_t. */
struct nvml_field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    int type;
    int result;
    union nvml_number value;
};

/* nvmlViolationTime_t. */
struct nvml_violation {
    unsigned long long reference_us, violation_ns;
};

/* nvmlRowRemapperHistogramValues_t: number of banks by how many of their spare rows are left. */
struct nvml_banks {
    unsigned max, high, partial, low, none;
};

/* nvmlProcessInfo_v2_t. The drivers of one release, R535, wrote 8 bytes more per entry. */
struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
enum { NVML_PROCESS_R535_BYTES = 32 };

/* nvmlDeviceAttributes_t, of a MIG instance. */
struct nvml_attributes {
    unsigned sms, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

/* nvmlGpuInstanceProfileInfo_t: what an instance of a profile has. */
struct nvml_profile {
    unsigned id, peers, slices, instances;
    unsigned sms, copy_engines, decoders, encoders, jpegs, ofas;
    unsigned long long memory_mib;
};
enum { NVML_PROFILES = 32 }; /* NVML 13 has 17; it refuses numbers that it does not know */

/* nvmlSystemConfComputeSettings_v1_t. */
struct nvml_confidential {
    unsigned version;
    unsigned environment, enabled, devtools;
    unsigned multi_gpu; /* NVML_MULTI_GPU_*; if not 0, `enabled` may be 0 */
};
enum { NVML_CONFIDENTIAL_VERSION = sizeof(struct nvml_confidential) | 1 << 24 };
enum { NVML_MULTI_GPU_PROTECTED_PCIE = 1, NVML_MULTI_GPU_ENCRYPTED_NVLINK = 2 };

/* nvmlConfComputeSystemState_t, of drivers that do not have the settings. */
struct nvml_confidential_state {
    unsigned environment, enabled, devtools;
};

/* nvmlMarginTemperature_v1_t. */
struct nvml_margin {
    unsigned version;
    int margin_c;
};
enum { NVML_MARGIN_VERSION = sizeof(struct nvml_margin) | 1 << 24 };

/* nvmlEventData_t. */
struct nvml_event {
    nvml_device device;
    unsigned long long type;
    unsigned long long data; /* of NVML_EVENT_XID: its number; 999 if that is not known */
    unsigned gpu_instance, compute_instance;
};

/* nvmlGpuFabricInfo_t: the first version, which says nothing about the bandwidth. */
struct nvml_fabric_v1 {
    unsigned char cluster[16];
    int status; /* only of a registration that is completed */
    unsigned clique;
    unsigned char state;
};

/* nvmlGpuFabricInfo_v2_t. */
struct nvml_fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health; /* a mask, see inventory/fabric.h */
};
enum { NVML_FABRIC_VERSION = sizeof(struct nvml_fabric) | 2 << 24 };

typedef int nvml_get_number(nvml_device device, unsigned *value);
typedef int nvml_get_wide(nvml_device device, unsigned long long *value);
typedef int nvml_get_chosen(nvml_device device, int which, unsigned *value);
typedef int nvml_get_pair(nvml_device device, unsigned *current, unsigned *pending);
typedef int nvml_get_text(nvml_device device, char *text, unsigned length);
typedef int nvml_get_ecc_total(nvml_device device, int error, int counter,
                               unsigned long long *count);
typedef int nvml_get_ecc_at(nvml_device device, int error, int counter, int place,
                            unsigned long long *count);
typedef int nvml_get_retired(nvml_device device, int cause, unsigned *count,
                             unsigned long long *addresses);
typedef int nvml_get_remapped(nvml_device device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
typedef int nvml_get_banks(nvml_device device, struct nvml_banks *banks);
typedef int nvml_get_fields(nvml_device device, int count, struct nvml_field *fields);
typedef int nvml_get_processes(nvml_device device, unsigned *count, struct nvml_process *processes);
typedef int nvml_check(nvml_device device);
typedef int nvml_get_confidential(struct nvml_confidential *settings);
typedef int nvml_get_confidential_state(struct nvml_confidential_state *state);

/* Functions that the installed NVML does not have are NULL. */
struct nvml {
    void *library;                 /* NULL: none */
    char missing[NVML_TEXT_BYTES]; /* why, when there is none */

    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int result);
    int (*system_driver_version)(char *text, unsigned length);
    int (*handle_by_pci)(const char *bus_id, nvml_device *device);
    int (*handle_by_uuid)(const char *uuid, nvml_device *device);
    int (*pci_info)(nvml_device device, struct nvml_pci *pci);
    int (*attributes)(nvml_device device, struct nvml_attributes *attributes);
    int (*profile)(nvml_device device, unsigned number, struct nvml_profile *profile);
    int (*margin)(nvml_device device, struct nvml_margin *margin);
    int (*violation)(nvml_device device, int policy, struct nvml_violation *violation);
    int (*link_state)(nvml_device device, unsigned link, unsigned *active);
    int (*link_errors)(nvml_device device, unsigned link, int counter, unsigned long long *count);
    int (*fabric)(nvml_device device, struct nvml_fabric *fabric);
    int (*fabric_v1)(nvml_device device, struct nvml_fabric_v1 *fabric);
    int (*events_create)(nvml_events *events);
    int (*events_register)(nvml_device device, unsigned long long types, nvml_events events);
    int (*events_wait)(nvml_events events, struct nvml_event *event, unsigned timeout_ms);
    int (*events_free)(nvml_events events);
    int (*cpu_affinity)(nvml_device device, unsigned words, unsigned long *cpus);
    nvml_get_wide *throttle_reasons;
    nvml_get_number *minor_number, *virtualization;
    nvml_get_pair *mig_mode;
    nvml_get_processes *processes, *mps_processes;
};

/* Never fails: without NVML, everything it would report is unknown. Released with nvml_unload. */
void nvml_load(struct nvml *nvml);
void nvml_unload(struct nvml *nvml); /* accepts a zeroed struct */

/* A function of NVML by its name; NULL: this NVML does not have it. */
void *nvml_symbol(const struct nvml *nvml, const char *name);

/* The device at a PCI address ("0000:1b:00.0"), or with a UUID; NULL when NVML has none. */
nvml_device nvml_find(const struct nvml *nvml, const char *pci);
nvml_device nvml_find_uuid(const struct nvml *nvml, const char *uuid);

/* Why a call gave nothing: "not supported", ... */
const char *nvml_reason(const struct nvml *nvml, int result);

/* A GPU as NVML knows it. */
struct nvml_gpu {
    const struct nvml *nvml;
    nvml_device handle;               /* NULL: NVML does not know it */
    nvml_device instance;             /* the MIG instance, if it is one; else the same as handle */
    char profile[NVML_PROFILE_BYTES]; /* of the MIG instance: "1g.18gb"; "": a whole GPU */
};

/* What a call gave: NVML_OK and the answer, or why there is none. */
struct nvml_value {
    int result;
    int64_t number;
    char text[NVML_TEXT_BYTES];
};
struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_question *question);

/* Sets the fact `key` to what NVML answers; if it does not, to unknown, with the reason. */
void nvml_report(const struct nvml_gpu *gpu, const char *key, const struct nvml_question *question,
                 struct facts *facts);

/* The same for all facts of this set that a row of the catalogue has a question for. */
void nvml_report_settings(const struct nvml_gpu *gpu, enum inventory_facts set,
                          struct facts *facts);

/* Sets one fact: the number, or why it is unknown. */
void nvml_report_number(const struct nvml_gpu *gpu, const char *key, int result, int64_t number,
                        struct facts *facts);

#endif
