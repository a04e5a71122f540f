/* A path of the screen on a GPU: what the screen and its pulses share. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_SCREENING_H
#define GPUMEMTOPO_DEVICE_CUDA_SCREENING_H

#include "device/cuda/gpu.h"

struct kernel_screen_flip;
struct screening {
    struct cuda_gpu *gpu;
    enum device_screen_path path;
    uint32_t warps; /* of a block */
    CUfunction kernel, fill;
    uint32_t shared_bytes;
    CUdeviceptr data, filled; /* chunks; what is filled before each launch: they, constants, or 0 */
    uint32_t chunks, l1_chunks; /* all, and those that L1 holds */
    CUtexObject texture;
    const struct kernel_screen_flip *flip; /* of the armed build; else NULL */
    uint64_t code;                         /* names the machine code; 0: it has no name */
};

/* Finds the kernel and what it reads. -ENOTSUP if the GPU does not have this path. */
int screening_begin(struct screening *screening, struct cuda_gpu *gpu, enum device_screen_path path,
                    struct err *err);
void screening_end(struct screening *screening);

/* One launch. */
struct screening_launch {
    uint32_t periods, number; /* of the launch */
    uint32_t set;             /* of operands */
    uint32_t slot;            /* where its results go, one kernel_check_result per SM */
    CUdeviceptr trace;        /* where a warp's words go; 0: nowhere */
    uint32_t trace_sm, trace_warp;
};

/* Queues it. */
int screening_launch(const struct screening *screening, const struct screening_launch *launch,
                     struct err *err);

/* The hash of most warps of a launch; results: one per SM. */
struct kernel_check_result;
uint64_t screening_most_frequent(const struct screening *screening,
                                 const struct kernel_check_result *results);

/* If some but not most places were wrong, looks again at the worst of them (second_look.c). If that
 * fails, the answer is as if it had not been tried. */
void screening_look_again(const struct screening *screening, struct device_screen_answer *answer);

#endif
