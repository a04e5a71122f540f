/* The GPU behind the stand-in driver: what its kernels do. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_KERNELS_H
#define GPUMEMTOPO_TESTS_DEVICE_CUDA_FAKE_KERNELS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/cuda/kernels.h"

/* What is as large as FAKE_LARGE_BYTES is neither moved nor looked at. */
enum { FAKE_SMS = 4, FAKE_LARGE_BYTES = 32 << 20 };

struct fake_gpu {
    uint32_t constant_words[KERNEL_CONSTANT_BYTES / 4];
    CUdeviceptr texture_base;

    /* As on Hopper: lines that a texture brought into L1 outlast the launch, and loads of later
     * launches miss until scrub_l1 has run. */
    bool textured;

    float load_ms; /* what events tell: each launch of the load takes 20 ms more, all else 1 ms */
};
extern struct fake_gpu fake_gpu;

/* Executes a launch of the kernel on the host; kernels that nobody looks at do nothing. */
void fake_kernels_run(const char *name, unsigned grid, unsigned block, void **parameters);

#endif
