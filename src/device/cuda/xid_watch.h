/* The Xid events of a GPU while it is open. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_XID_WATCH_H
#define GPUMEMTOPO_DEVICE_CUDA_XID_WATCH_H

#include "device/cuda/nvml_facts.h"
#include "inventory/xid.h"

struct xid_watch {
    nvml_events events; /* NULL: none are reported */
    int result;         /* why, then; otherwise what the last question was answered */
    unsigned numbers[XID_LIST_MAX];
    size_t count; /* different numbers so far, in the order in which they came */
};

/* Asks NVML to collect events. Never fails: a driver that reports none is an unknown fact. */
void xid_watch_begin(struct xid_watch *watch, const struct nvml_gpu *gpu);

/* Sets `xid`: the events since xid_watch_begin, or why they are not known. 0 or -ENOMEM. */
int xid_watch_tell(struct xid_watch *watch, const struct nvml_gpu *gpu, struct facts *health);

/* Accepts a zeroed struct. */
void xid_watch_end(struct xid_watch *watch, const struct nvml_gpu *gpu);

#endif
