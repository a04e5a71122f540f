/* A path of the screen on a GPU: what the screen and its pulses share. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREENING_H
#define GPUMEMTOPO_DEVICE_CUDA_SCREENING_H

#include "device/cuda/gpu.h"

struct screening {
    struct cuda_gpu *gpu;
    enum device_screen_path path;
    uint32_t warps; /* of a block */
    CUfunction kernel;
    uint32_t shared_bytes;
    uint64_t code;     /* names the machine code; 0: it has no name */
    uint64_t expected; /* the hash of a warp that is right */
};

/* Finds the kernel. -ENOTSUP if the GPU does not have this path. */
int screening_begin(struct screening *screening, struct cuda_gpu *gpu, enum device_screen_path path,
                    struct err *err);

/* Queues a launch. slot: where its results go, one kernel_check_result per SM. */
int screening_launch(const struct screening *screening, uint32_t periods, uint32_t launch,
                     uint32_t slot, struct err *err);

/* The hash of most warps of a launch; results: one per SM. */
struct kernel_check_result;
uint64_t screening_most_frequent(const struct screening *screening,
                                 const struct kernel_check_result *results);

#endif
