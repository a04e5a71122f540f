/* What NVML reports of a GPU's health, and what is observed for it while the GPU is open. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_HEALTH_H
#define GPUMEMTOPO_DEVICE_CUDA_HEALTH_H

#include "device/cuda/nvml.h"
#include "device/device.h"
#include "inventory/xid.h"

/* Which processes compute on a GPU. */
struct processes {
    int result;     /* NVML_OK, or why NVML does not know them */
    uint32_t count; /* all of them */
    bool own;       /* this process is among them, by its id */
};

/* Counts ordinary processes and clients of MPS. */
struct processes processes_count(const struct nvml_gpu *gpu);

/* The Xid events of a GPU while it is open. */
struct xid_watch {
    nvml_events events; /* NULL: none are reported */
    int result;         /* why, then; otherwise what the last question was answered */
    unsigned numbers[XID_LIST_MAX];
    size_t count; /* different numbers so far, in the order in which they came */
};

/* The counters when the GPU was opened, and what was seen since. */
struct watch {
    uint64_t begun_ns;
    struct nvml_value ecc_uncorrected, ecc_corrected;
    struct nvml_value pcie_replays, nvlink_errors;
    struct nvml_value violation_power, violation_thermal;
    bool counted;    /* others: counted before workers of other GPUs came, and not again */
    uint32_t others; /* other processes */
    bool hidden;     /* listed under another process id (pid namespace) */
    uint64_t polled_ns;
    uint64_t throttle_reasons; /* union over all polls that were answered */
    bool throttle_known;
    int throttle_result; /* of the last poll */
    struct xid_watch xids;
};

/* Called before and after this process creates its context on the GPU. */
void watch_begin(struct watch *watch, const struct nvml_gpu *gpu);
void watch_opened(struct watch *watch, const struct nvml_gpu *gpu, uint32_t processes_before);

/* Releases what watch_begin took; accepts a zeroed struct. */
void watch_end(struct watch *watch, const struct nvml_gpu *gpu);

/* Called while the GPU works. Asks NVML for throttling at most every 20 ms, since one call takes
 * most of a millisecond. */
void watch_poll(struct watch *watch, const struct nvml_gpu *gpu);

/* How many other processes compute on the GPU; 0 if that is not known. watch: NULL for a GPU that
 * is not open. */
uint32_t watch_others(const struct watch *watch, const struct nvml_gpu *gpu);

/* Reads the error counters since the driver was loaded. False if the GPU does not count. */
bool health_read_ecc(const struct nvml_gpu *gpu, struct device_ecc *out_ecc);

/* What can be read at any time. watch: NULL for a GPU that is not open. */
void health_report(const struct nvml_gpu *gpu, const struct watch *watch, struct facts *health);

/* What NVML reads from the board's flash, or for each link with five calls: once per GPU is enough.
 * The errors since watch_begin are among it; watch: as above. */
void health_report_slow(const struct nvml_gpu *gpu, struct watch *watch, struct facts *health);

#endif
