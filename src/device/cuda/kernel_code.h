/* Which of the embedded kernels a GPU runs: machine code, or what the driver makes of PTX (JIT).
 *
 * The build has each of its architectures in both forms. Machine code runs on GPUs of the same
 * major compute capability and the same or a higher minor one. PTX runs on any newer GPU, with a
 * driver of the toolkit's version or newer. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_KERNEL_CODE_H
#define GPUMEMTOPO_DEVICE_CUDA_KERNEL_CODE_H

#include "device/cuda/gpu.h"

/* -ENOTSUP, with the reason, if no kernel of this build can run on the GPU. Needs no context. */
int kernel_code_check(const struct cuda_gpu *gpu, struct err *err);

/* Adds the fact `kernels`: what the driver says it has loaded, "sm_90" or "JIT of compute_90".
 * -ENOMEM. */
int kernel_code_tell(const struct cuda_gpu *gpu, struct facts *board);

#endif
