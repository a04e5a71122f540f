/* One open GPU of the CUDA backend: what its files share. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_GPU_H
#define GPUMEMTOPO_DEVICE_CUDA_GPU_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cuda/driver.h"
#include "device/cuda/flavour.h"
#include "device/cuda/health.h"
#include "device/cuda/layout.h"
#include "device/cuda/nvml.h"
#include "device/device.h"
#include "device/source.h"
#include "device/turn.h"

/* Chains that are already written, so that the same layout is not written twice. */
struct memory_pool_region {
    struct layout_chain chains[DEVICE_STEPS_MAX];
    uint32_t chain_count;
    uint64_t offset_bytes, size_bytes;
};

/* Memory for arrays: device memory, or pinned host memory mapped into the GPU. No word of it is
 * ever 0xffffffff: the kernels use that to wait for a value. */
struct memory_pool {
    enum memory memory;
    CUdeviceptr base;
    void *host; /* MEMORY_HOST only */
    uint64_t size_bytes, used_bytes, limit_bytes;
    struct memory_pool_region *regions;
    size_t region_count, region_capacity;
};

/* Pinned memory and its counterpart on the GPU. */
struct staging {
    void *host;
    CUdeviceptr device;
    size_t size_bytes;
};

/* The GPUs that this process sees, this one among them. All belong to the source. */
struct cuda_seen {
    const struct device_info *infos;
    const CUdevice *devices;
    size_t count, own;
    struct turn *turn;   /* of this GPU: held while nobody else of the survey may use it */
    struct flag *coming; /* of this GPU: raised until it is open to others */
};

/* Names that belong to a GPU, the same in all processes: its turn; flags that are up while its
 * worker may still come to a meeting, and while the worker of another GPU has its turn; and its
 * meetings. */
uint64_t cuda_turn_name(const char *uuid);
uint64_t cuda_coming_name(const char *uuid);
uint64_t cuda_visit_name(const char *uuid);
uint64_t cuda_share_name(const char *uuid);

/* Takes the turn of a GPU. While the worker of another GPU measures its link to this one, it waits.
 * If something else has the turn for long, it goes on without. */
void cuda_take_turn(struct turn *turn, const char *uuid);

/* The CPUs of this thread before it was moved to those near the GPU (host_link.c). */
struct affinity {
    bool changed;
    cpu_set_t before;
};

enum { CUDA_STREAMS = 2, CUDA_EVENTS = 3 };

struct cuda_gpu {
    struct device base;
    const struct driver *driver;
    struct nvml_gpu nvml_gpu;
    struct watch watch;
    struct turn link;
    struct affinity affinity;
    struct cuda_seen seen;
    bool lost; /* a call of the driver did not come back: make no other one */

    CUdevice device;
    CUcontext context;
    const struct flavour *flavour;        /* of the kernels that run on this GPU */
    CUmodule modules[CUDA_KERNELS_COUNT]; /* of its kernels; loaded when first needed */
    CUmodule straight_module;             /* compiled when first needed */
    CUfunction straight;
    CUmodule walk_module; /* the same for jumping code of one stride */
    CUfunction walk;
    CUdeviceptr walk_constants;
    uint32_t walk_stride;
    CUstream streams[CUDA_STREAMS];
    CUevent events[CUDA_EVENTS];
    CUfunction chase[DEVICE_PATH_COUNT]; /* by path */
    CUfunction chase_mixed, link_chain, flush_l2, scrub_l1;
    CUdeviceptr constant_bank;
    uint64_t l2_bytes;

    uint64_t free_bytes; /* free GPU memory when the device was opened */
    uint32_t *sm_ids;    /* the hardware's id of each SM */
    uint32_t sm_id_count;

    struct memory_pool global, host;
    CUdeviceptr whole; /* all memory that can be had; 0: not yet needed */
    uint64_t whole_bytes;
    uint64_t whole_free_bytes; /* before it was taken */
    bool whole_cleared;
    CUdeviceptr wide_base; /* within it: where jobs begin that reach further than the global pool */
    CUtexObject texture;   /* over the global pool, up to the largest size of a texture */
    uint64_t texture_bytes;
    uint64_t places_used;   /* places that streams have used so far */
    uint64_t loaded_chunks; /* that were read beside chases so far */
    uint32_t loaded_slots;  /* and slots that these have used */
    CUdeviceptr flush;      /* twice L2's size, allocated when first needed */
    bool textured;          /* the last wave left lines of a texture in L1 */

    struct staging jobs, claims, turns, results, outputs, images, constants;
};

/* Opens the device; freed with its ops->destroy. The driver and NVML must outlive it. -EBUSY when
 * another process holds it exclusively, -EACCES when its compute mode is prohibited. */
int cuda_open(const struct driver *driver, const struct nvml_gpu *nvml_gpu,
              const struct cuda_seen *seen, struct device **out_device, struct err *err);

static inline struct cuda_gpu *cuda_of(struct device *device)
{
    return (struct cuda_gpu *)device;
}

/* driver_check for this GPU's driver. */
int cuda_check(const struct cuda_gpu *gpu, CUresult result, const char *what, struct err *err);
int cuda_attribute(const struct cuda_gpu *gpu, CUdevice_attribute attribute, int *out_value,
                   struct err *err);
int cuda_capability(const struct cuda_gpu *gpu, int *out_major, int *out_minor, struct err *err);

/* The largest fetch into L2 that the driver allows: a setting of the context. */
int cuda_l2_fetch_limit(const struct cuda_gpu *gpu, uint32_t *out_bytes, struct err *err);

/* Makes the GPU's context that of this thread. */
int cuda_set_current(const struct cuda_gpu *gpu, struct err *err);

/* Loads the embedded kernels of a file if they are not yet. Finding one of them does that, too;
 * -ENOTSUP if the flavour does not have it. */
int cuda_load_kernels(struct cuda_gpu *gpu, enum cuda_kernels file, struct err *err);
int cuda_find_kernel(struct cuda_gpu *gpu, enum cuda_kernels file, const char *name,
                     CUfunction *out_function, struct err *err);
/* The index of the SM with this id of the hardware. */
int cuda_sm_of(const struct cuda_gpu *gpu, uint32_t sm_id, uint32_t *out_sm, struct err *err);
struct kernel_check_result;
/* The hashes of a launch; results: one per SM. */
struct cuda_hashes {
    const struct kernel_check_result *results;
    uint32_t warps; /* of a block */
    uint32_t set;   /* of operands */
    uint64_t expected;
};
/* Adds them. cycles: set to those of the slowest warp of each place, 0 where none ran; may be NULL.
 */
int cuda_add_hashes(const struct cuda_gpu *gpu, const struct cuda_hashes *hashes,
                    struct device_check_place *places, uint64_t *cycles, struct err *err);
/* All wrong hashes so far. */
uint64_t cuda_wrong_hashes(const struct device_check_place *places, size_t count);
/* Keeps the cycles of a launch where they are fewer than those so far. */
void cuda_keep_fastest(struct device_check_place *places, const uint64_t *cycles, size_t count);
/* What the GPU draws at this moment; NAN: the driver does not say (load.c). */
double cuda_power_w(const struct cuda_gpu *gpu);
/* Sets clocks, power, energy, temperatures and throttle reasons of the sample (load.c). */
void cuda_read_sensors(const struct cuda_gpu *gpu, struct device_load_sample *sample);
int cuda_record(const struct cuda_gpu *gpu, CUevent event, CUstream stream, struct err *err);
int cuda_launch(const struct cuda_gpu *gpu, CUfunction function, uint32_t blocks, uint32_t threads,
                uint32_t shared_bytes, void **parameters, struct err *err);
int cuda_wait(struct cuda_gpu *gpu, struct err *err); /* waits for streams[0] */

/* The time between two events that have both come. */
int cuda_elapsed(const struct cuda_gpu *gpu, CUevent from, CUevent to, uint64_t *out_ns,
                 struct err *err);

/* At least size_bytes on both sides; the content is lost when it grows. */
int staging_grow(struct cuda_gpu *gpu, struct staging *staging, size_t size_bytes, struct err *err);
int staging_upload(struct cuda_gpu *gpu, const struct staging *staging, size_t size_bytes,
                   struct err *err);
int staging_download(struct cuda_gpu *gpu, const struct staging *staging, size_t size_bytes,
                     struct err *err);
void staging_fini(struct cuda_gpu *gpu, struct staging *staging);

/* Makes the pool at least size_bytes large. If it must grow, its content is lost. */
int memory_pool_reserve(struct cuda_gpu *gpu, struct memory_pool *pool, uint64_t size_bytes,
                        struct err *err);

/* Finds a place for the arrays of the layout that lie in this pool's memory, and writes their
 * chains. The offset is a multiple of 2 MiB, so that alignment does not depend on the place. With
 * may_forget, places given before may become invalid; without it, 1 is returned when there is no
 * room beside them. */
int memory_pool_place(struct cuda_gpu *gpu, struct memory_pool *pool, const struct layout *layout,
                      bool may_forget, uint64_t *out_offset, struct err *err);

/* Forgets the chains, because other work has overwritten them. */
void memory_pool_forget(struct memory_pool *pool);
void memory_pool_fini(struct cuda_gpu *gpu, struct memory_pool *pool);

/* Takes all memory that can be had (gpu->whole). It is kept until the device is closed: what is
 * freed the driver clears, and that slows down whatever is measured meanwhile (H200: copies from
 * the host by half, for a second). Hence probes that need it come last. */
int cuda_whole_take(struct cuda_gpu *gpu, struct err *err);

/* Memory for jobs whose arrays end beyond limits.global_bytes: a part of that (memory_pool.c). It
 * also serves jobs that end beyond the pool's present size when all memory is taken, since the pool
 * cannot grow then. The limit: of what is free, less the pool. It has no word of 0xffffffff. -EBUSY
 * if the GPU or its memory is in use; all memory that was taken is then given back. */
uint64_t cuda_wide_limit(uint64_t free_bytes, uint64_t pool_bytes);
bool cuda_wide_serves(const struct cuda_gpu *gpu, const struct device_job *job,
                      const struct layout *layout);
int cuda_wide_reserve(struct cuda_gpu *gpu, struct err *err);

/* The link to the host as NVML reports it while copies run; 0 where NVML does not say. */
struct link_seen {
    uint32_t generation, width;
};

/* Copies for some milliseconds and asks NVML meanwhile, since an idle link runs at a lower speed.
 * -ENODATA when no answer came while a copy ran. */
int cuda_watch_link(struct cuda_gpu *gpu, struct link_seen *out_seen, struct err *err);

/* What NVML reports without opening the GPU (identify.c). */
void cuda_report_board(const struct nvml_gpu *nvml_gpu, const struct driver *driver,
                       struct facts *board);
void cuda_report_config(const struct nvml_gpu *nvml_gpu, struct facts *config);

/* The operations, one file each. */
#define CUDA_DECLARED(name, function) device_function cuda_##function;
DEVICE_CALLS(CUDA_DECLARED)
void cuda_end_link(struct device *device);

/* A job in a wave: placed, with its SMs chosen. */
struct wave_job {
    const struct device_job *job;
    struct device_answer *answer;
    struct layout layout;
    uint64_t offset_bytes[MEMORY_COUNT]; /* where its arrays of each memory begin */
    uint32_t sms[DEVICE_AGENTS_MAX];
    bool wide; /* its arrays lie in the memory of cuda_wide_reserve */
};

/* What one block runs of a job: all steps on its SM. A job on two SMs has two blocks, one after the
 * other in the array. */
struct block {
    struct wave_job *job;
    uint32_t sm;
    bool paired;
};

/* What all jobs of one launch have in common. */
struct launch_shape {
    uint32_t warps;
    uint32_t path_mask;
    uint32_t shared_bytes;
    bool paired; /* some jobs run on two SMs */
};

/* Whether what a job keeps fits into KERNEL_SMALL_BYTES of shared memory: L1 is then as large as it
 * can be. */
bool cuda_job_is_small(const struct device_job *job);

/* Runs each block on its SM and adds the samples to the answers. -EBUSY when an SM did not take its
 * block in several tries. */
int cuda_launch_blocks(struct cuda_gpu *gpu, const struct launch_shape *shape,
                       const struct block *blocks, size_t count, struct err *err);

/* Evicts everything from the L1 of all SMs. */
int cuda_launch_scrub_l1(struct cuda_gpu *gpu, struct err *err);

/* Evicts everything from L2. */
int cuda_launch_flush_l2(struct cuda_gpu *gpu, struct err *err);

#endif
